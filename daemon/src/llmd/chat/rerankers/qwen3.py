"""Qwen3-Reranker as first published: its files do not say that it ranks, nor how to prompt it.

Source: the model card of Qwen3-Reranker; the model was trained with this wording. Later versions have the
files that `llmd.chat.rerankers.reranker_files` reads.
"""

from __future__ import annotations

import re

from llmd.api.plugins import Config
from llmd.chat.rerankers.reranker import Reranker
from llmd.chat.templates.template_files import ChatTemplate, special_variables
from llmd.chat.tokenizers.tokenizer import Tokenizer

ARCHITECTURE = "Qwen3ForCausalLM"
NAME = re.compile(r"qwen3[-_]reranker", re.IGNORECASE)
INSTRUCTION = "Given a web search query, retrieve relevant passages that answer the query"
TEMPLATE = """\
{%- macro of(role) -%}{{ messages | selectattr("role", "eq", role) | map(attribute="content") | first }}{%- endmacro -%}
<|im_start|>system
Judge whether the Document meets the requirements based on the Query and the Instruct provided. \
Note that the answer can only be "yes" or "no".<|im_end|>
<|im_start|>user
<Instruct>: {{ of("system") }}
<Query>: {{ of("query") }}
<Document>: {{ of("document") }}<|im_end|>
<|im_start|>assistant
<think>

</think>{{ "\\n\\n" }}"""


def is_unmarked_reranker(name: str, config: Config) -> bool:
    """Return whether a model is a reranker by its name, although its files describe a generative model."""
    return ARCHITECTURE in (config.get("architectures") or ()) and NAME.search(name) is not None


def unmarked_reranker(tokenizer: Tokenizer) -> Reranker | None:
    """Return the reranker of such a model; None if its vocabulary has no tokens "yes" and "no"."""
    true_id, false_id = tokenizer.token_id("yes"), tokenizer.token_id("no")
    if true_id is None or false_id is None:
        return None
    template = ChatTemplate({"default": TEMPLATE}, *special_variables(tokenizer))
    return Reranker(template, true_id, false_id, INSTRUCTION)
