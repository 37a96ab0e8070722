"""`llmd.Engine`: a model in this process."""

from __future__ import annotations

import inspect
import json
from pathlib import Path

import numpy as np
import pytest

from llmd.api import ACTIVATION_DTYPES, KV_DTYPES
from llmd.api.errors import ConfigError, LlmdError, MemoryBudgetError, NotFoundError, RequestError
from llmd.embedded.engine import Engine
from llmd.embedded.generated import Generated
from tests.golden.meta_layout import write_meta
from tests.golden.models.tiny import TinyModel
from tests.serving.adapters import write_adapter
from tests.serving.model import SEED, write_model

QUESTION = "hello"


def test_knows_its_model_its_device_and_its_memory(engine: Engine) -> None:
    assert (engine.model_name, engine.device_name) == ("tiny", "reference")
    (stage,) = engine.loaded.stages
    assert engine.memory_bytes == stage.size_bytes == stage.weight_bytes + stage.kv_bytes + stage.step_bytes
    assert stage.kv_bytes <= 16 << 20


def test_a_model_in_metas_layout_answers_the_same(engine: Engine, directory: Path, tmp_path: Path) -> None:
    case = TinyModel("served", json.loads((directory / "config.json").read_text()), seed=SEED)
    rewritten = write_meta(case, tmp_path / "meta")
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (rewritten / name).write_bytes((directory / name).read_bytes())
    with Engine.load(rewritten, "reference", kv_dtype="f32", kv_memory=16 << 20) as other:
        answers = [one.generate(QUESTION, max_tokens=12, temperature=0).text for one in (engine, other)]
    assert answers[0] == answers[1]


def test_adapters_answer_beside_the_model(engine: Engine, directory: Path, tmp_path: Path) -> None:
    adapters = {name: write_adapter(tmp_path / name, directory, seed=len(name)) for name in ("sql", "formal")}
    plain = engine.generate(QUESTION, max_tokens=12, temperature=0).text
    with Engine.load(
        directory, "reference", kv_dtype="f32", kv_memory=16 << 20, adapters=adapters
    ) as adapted:
        said = [
            adapted.generate(QUESTION, max_tokens=12, temperature=0, adapter=name).text
            for name in (None, "sql", "formal")
        ]
        ids = adapted.tokenize(QUESTION)
        logits = [adapted.forward(ids, adapter=name) for name in (None, "sql", "formal")]
        for ask in (
            lambda: adapted.generate(QUESTION, adapter="sq"),
            lambda: adapted.forward(ids, adapter="sq"),
        ):
            with pytest.raises(RequestError, match="no adapter sq; those that were loaded are sql, formal"):
                ask()
    assert said[0] == plain
    assert len(set(said)) == 3
    np.testing.assert_array_equal(logits[0], engine.forward(ids))
    assert not np.allclose(logits[1], logits[2])


def test_the_callback_gets_every_token_and_its_text_is_the_answer(engine: Engine) -> None:
    seen: list[tuple[str, int, float]] = []
    answer = engine.generate(QUESTION, lambda *token: seen.append(token), max_tokens=12, temperature=0)
    assert "".join(text for text, _, _ in seen) == answer.text
    assert tuple(token for _, token, _ in seen) == answer.token_ids
    assert all(logprob < 0 for _, _, logprob in seen)
    assert (answer.output_tokens, answer.finish) == (12, "length")
    assert answer.prompt_tokens > len(QUESTION)
    assert answer.tokens_per_s is not None
    assert answer.tokens_per_s > 0


def test_the_callback_ends_the_answer_by_returning_false(engine: Engine) -> None:
    calls: list[int] = []

    def twice(_text: str, token: int, _logprob: float) -> bool:
        calls.append(token)
        return len(calls) < 2

    answer = engine.generate(QUESTION, twice, max_tokens=12, temperature=0)
    assert (len(calls), answer.output_tokens, answer.finish) == (2, 2, "cancelled")
    assert engine.stats().running == 0


def test_what_the_callback_raises_ends_the_answer(engine: Engine) -> None:
    def fail(*_token: object) -> None:
        raise KeyError("the caller's own")

    with pytest.raises(KeyError, match="the caller's own") as caught:
        engine.generate(QUESTION, fail, temperature=0)
    assert caught.tb is not None  # the traceback keeps the stream alive
    assert (engine.stats().running, engine.stats().kv_blocks_used) == (0, 0)


def test_none_is_not_false(engine: Engine) -> None:
    assert engine.generate(QUESTION, lambda *_: None, max_tokens=3, temperature=0).output_tokens == 3


def test_streams_the_tokens_that_it_generates(engine: Engine) -> None:
    whole = engine.generate(QUESTION, max_tokens=6, seed=4)
    tokens = list(engine.stream(QUESTION, max_tokens=6, seed=4))
    assert tuple(token.id for token in tokens) == whole.token_ids
    assert [token.finish for token in tokens] == [None] * 5 + ["length"]


def test_an_abandoned_stream_frees_its_request(engine: Engine) -> None:
    stream = engine.stream(QUESTION, temperature=0)
    assert inspect.isgenerator(stream)
    next(stream)
    assert engine.stats().running == 1
    stream.close()
    assert engine.stats().running == 0
    assert engine.stats().kv_blocks_used == 0


def test_streams_that_run_together_share_steps_and_answer_as_alone(engine: Engine) -> None:
    alone = [engine.generate(text, max_tokens=5, seed=1).token_ids for text in ("one", "two")]
    engine.reset_stats()
    streams = [engine.stream(text, max_tokens=5, seed=1) for text in ("one", "two")]
    together = list(zip(*streams, strict=True))
    assert [tuple(token.id for token in answer) for answer in zip(*together, strict=True)] == alone
    assert engine.stats().steps < 10


def test_tokenizes_and_back(engine: Engine) -> None:
    ids = engine.tokenize("héllo")
    assert ids == [*"héllo".encode()]
    assert engine.detokenize(ids) == "héllo"


def test_forward_gives_the_logits_after_each_token(engine: Engine) -> None:
    ids = engine.tokenize("hello")
    logits = engine.forward(ids)
    assert logits.dtype == np.float32
    assert logits.shape == (len(ids), 259)
    assert np.array_equal(engine.forward(ids[:3]), logits[:3])
    greedy = engine.generate(ids, max_tokens=1, temperature=0)
    assert greedy.token_ids == (int(logits[-1].argmax()),)


def test_statistics_count_until_they_are_reset(engine: Engine) -> None:
    answer = engine.generate(QUESTION, max_tokens=4, temperature=0)
    stats = engine.stats()
    assert (stats.prompt_tokens, stats.output_tokens) == (answer.prompt_tokens, 4)
    engine.reset_stats()
    assert engine.stats().output_tokens == 0


def test_loading_takes_a_window_a_device_a_format_and_a_budget(directory: Path) -> None:
    with Engine.load(directory, "cpu", max_ctx=64, quant="q8", kv_dtype="f16", kv_memory=1 << 18) as engine:
        assert engine.device_name == "cpu"
        assert engine.loaded.context_len == 64
        assert "q8" in engine.loaded.formats
        half = engine.loaded.stages[0].kv_bytes
    with Engine.load(directory, "cpu", max_ctx=64, kv_dtype="f32") as engine:
        assert engine.loaded.stages[0].kv_bytes == 2 * half
        assert "q8" not in engine.loaded.formats
    with pytest.raises(MemoryBudgetError):
        Engine.load(directory, "cpu", kv_memory=64)


def test_the_processors_threads_are_the_callers_to_choose(directory: Path) -> None:
    with (
        Engine.load(directory, "cpu", max_ctx=64, threads=1) as one,
        Engine.load(directory, "cpu", max_ctx=64, threads=3) as three,
    ):
        answers = [engine.generate(QUESTION, max_tokens=4, temperature=0) for engine in (one, three)]
    assert answers[0].token_ids == answers[1].token_ids
    with pytest.raises(ConfigError, match="--threads -1"):
        Engine.load(directory, "cpu", threads=-1)


@pytest.mark.parametrize(
    ("argument", "values"), [("kv_dtype", KV_DTYPES), ("activations", ACTIVATION_DTYPES)]
)
def test_the_docstring_of_load_names_every_value_of_a_choice(argument: str, values: tuple[str, ...]) -> None:
    text = inspect.getdoc(Engine.load) or ""
    described = text.partition(f"    {argument}: ")[2].partition("\n    threads:")[0]
    assert [value for value in values if f"``{value}``" not in described] == []


def test_a_stored_name_is_enough(user: Path) -> None:
    write_model(user / "data" / "llmd" / "models" / "mine")
    with Engine.load("mine") as engine:
        assert engine.model_name == "mine"
        assert isinstance(engine.generate("hi", max_tokens=1), Generated)
    with pytest.raises(NotFoundError, match=r"the nearest names are .*mine"):
        Engine.load("nine")


def test_an_unknown_device_is_told(directory: Path) -> None:
    with pytest.raises(NotFoundError, match="no device 'abacus'"):
        Engine.load(directory, "abacus")


def test_a_closed_engine_says_so(directory: Path) -> None:
    engine = Engine.load(directory, "reference")
    stream = engine.stream(QUESTION, max_tokens=4)
    engine.close()
    engine.close()
    for use in (lambda: engine.generate(QUESTION), engine.stats, lambda: engine.forward([1])):
        with pytest.raises(LlmdError, match="closed"):
            use()
    with pytest.raises(LlmdError, match="closed"):
        next(stream)


def test_a_prompt_that_cannot_run_is_refused(engine: Engine) -> None:
    for ids in ([100_000], [1 << 40]):
        with pytest.raises(RequestError, match="vocabulary"):
            engine.forward(ids)
    for words in ([1.5, 2.0], ["hello"], [[1, 2]]):
        for ask in (engine.forward, engine.generate):
            with pytest.raises(RequestError, match="token ids"):
                ask(words)  # type: ignore[arg-type]
    with pytest.raises(RequestError, match="no tokens"):
        engine.generate([])
