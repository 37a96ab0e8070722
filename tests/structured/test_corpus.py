"""Every finished answer fits its schema, from the guide and from a random model;
every refusal names the feature.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest

from llmd.api.errors import GrammarError
from llmd.api.messages import Load, StopParams, Submit, Vocabulary
from llmd.api.samplers import SamplingParams
from llmd.builtin.guide import guide_directory
from llmd.chat.model_text import ChatPrompt, ModelText, load_model_text
from llmd.chat.templates.renderer import TemplateRenderer
from llmd.engine.composition import loader_for
from llmd.engine.core import EngineCore
from llmd.engine.loading import LoadedModel
from llmd.grammar.compiler import GrammarCompiler
from llmd.grammar.json_schema import schema_grammar
from tests.serving.model import write_model
from tests.structured.corpus import accepted, problem, refused

SLOTS = 32
MAX_TOKENS = 160
LEAST_FINISHED = 0.8
"""Fewer would leave too much unsaid:
how many answers end within their tokens depends on the weights alone.
"""
BYTES = GrammarCompiler(Vocabulary(tuple(bytes([value]) for value in range(256))), 256)
# A random model closes a text, or a list by null, as rarely as it writes any other character:
# these it likes better.
LIKED = tuple(
    (ord(sign), bias)
    for sign, bias in {'"': 6.0, "}": 6.0, "]": 6.0, "n": 5.0, " ": -4.0, "\n": -4.0}.items()
)


class Writer(msgspec.Struct, frozen=True):
    """A model with its text and how it samples."""

    text: ModelText
    model: LoadedModel
    prompt: str
    bias: tuple[tuple[int, float], ...] = ()
    penalty: float = 0.0

    def answers(self, schemas: list[Any]) -> list[tuple[str, str | None]]:
        """The text of each answer and why it ended, all in one engine."""
        core = self.model.core
        for number, schema in enumerate(schemas):
            core.submit(self._submit(number, schema))
        return list(_read(core, self.text, len(schemas)))

    def _submit(self, number: int, schema: Any) -> Submit:
        prompt = self.text.encode_chat(ChatPrompt([{"role": "user", "content": self.prompt}]))
        sampling = SamplingParams(
            seed=number, temperature=1.0, logit_bias=self.bias, frequency_penalty=self.penalty
        )
        stop = StopParams(MAX_TOKENS, self.text.stop_ids)
        return Submit(number, prompt, sampling, stop, grammar=schema_grammar(schema))


def _read(core: EngineCore, text: ModelText, count: int) -> Iterator[tuple[str, str | None]]:
    tokens: list[list[int]] = [[] for _ in range(count)]
    finishes: list[str | None] = [None] * count
    failed: list[str] = []
    while core.busy:
        output = core.step()
        failed += [one.message for one in output.failed]
        for token in output.tokens:
            finishes[token.request_id] = token.finish
            if token.finish != "stop":
                tokens[token.request_id].append(token.token)
    assert failed == []
    for ids, finish in zip(tokens, finishes, strict=True):
        yield text.tokenizer.decode(ids), finish


def _writer(directory: Path, cache: Path, renderer: TemplateRenderer, **style: Any) -> Writer:
    text = load_model_text(directory, renderer)
    load = Load(
        str(directory), device="cpu", context_len=512, slots=SLOTS, kv_dtype="f32", kv_memory=256 << 20
    )
    model = loader_for(cache)(load, lambda _: None)
    model.core.set_vocabulary(text.grammars.vocabulary)
    return Writer(text, model, **style)


@pytest.fixture(scope="module", params=["guide", "random"])
def writer(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Writer]:
    folder = tmp_path_factory.mktemp("structured")
    with TemplateRenderer() as renderer:
        if request.param == "guide":
            made = _writer(guide_directory(), folder, renderer, prompt="What can llmd do?", penalty=0.6)
        else:
            directory = write_model(folder / "random")
            made = _writer(directory, folder, renderer, prompt="Hello", bias=LIKED)
        with closing(made.model):
            yield made


@pytest.mark.timeout(120)
def test_every_finished_answer_fits_its_schema(writer: Writer) -> None:
    schemas = accepted()
    answers = writer.answers(schemas)
    finished = [
        (schema, text) for schema, (text, finish) in zip(schemas, answers, strict=True) if finish == "stop"
    ]
    assert [found for schema, text in finished if (found := problem(schema, text))] == []
    assert len(finished) >= LEAST_FINISHED * len(schemas)
    assert len({text for _, text in finished}) > 200


def test_there_are_three_hundred_schemas_and_most_differ() -> None:
    schemas = accepted()
    assert len(schemas) >= 300
    assert len({json.dumps(schema) for schema in schemas}) >= 300


@pytest.mark.parametrize(("named", "schema"), refused(), ids=range(len(refused())))
def test_every_refusal_names_the_feature(named: str, schema: Any) -> None:
    with pytest.raises(GrammarError) as caught:
        BYTES.compile(schema_grammar(schema))
    assert named in caught.value.message
