"""Qwen3-Reranker as it was first published: nothing in its files says that it ranks, nor how it is asked.

Source: the model card of Qwen3-Reranker, whose words the model was trained with. Later versions have the files that
`llmd.chat.rerankers.reranker_files` reads.
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
    """Whether a model that calls itself nothing but a generating one is known by its name to rank."""
    return ARCHITECTURE in (config.get("architectures") or ()) and NAME.search(name) is not None


def unmarked_reranker(tokenizer: Tokenizer) -> Reranker | None:
    """How such a model is asked; None where its vocabulary lacks the answers."""
    true_id, false_id = tokenizer.token_id("yes"), tokenizer.token_id("no")
    if true_id is None or false_id is None:
        return None
    template = ChatTemplate({"default": TEMPLATE}, *special_variables(tokenizer))
    return Reranker(template, true_id, false_id, INSTRUCTION)
