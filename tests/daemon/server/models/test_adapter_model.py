"""Models with LoRA adapters, each chosen by its name."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from llmd.api.errors import ConfigError, RequestError
from llmd.config import load_settings
from llmd.server.models.adapter_model import adapter_models, check_names, find_adapter
from tests.serving.adapters import use_adapters, write_adapter
from tests.serving.http import Reply, complete, send
from tests.serving.model import write_model
from tests.serving.running import MODEL, RunningDaemon, directories_below, running_daemon

NAMES = tuple(f"adapter-{number}" for number in range(8))
PROMPT = "The same words for all of them, longer than one block of the cache."


@pytest.fixture(scope="module")
def adapted(tmp_path_factory: pytest.TempPathFactory, probes: Path) -> Iterator[RunningDaemon]:
    """A daemon whose model has eight adapters and room for all of them in a step."""
    root = tmp_path_factory.mktemp("adapted")
    directories = directories_below(root, cache=probes)
    model = write_model(directories.models / MODEL)
    adapters = [write_adapter(root / name, model, seed=seed) for seed, name in enumerate(NAMES, 1)]
    use_adapters(directories.config, MODEL, adapters)
    with running_daemon(directories, device="cpu", slots=len(NAMES) + 1) as daemon:
        yield daemon


def answer(daemon: RunningDaemon, model: str, **fields: Any) -> Reply:
    reply = complete(daemon, PROMPT, model=model, max_tokens=40, ignore_eos=True, **fields)
    assert reply.status == 200, reply.content
    return reply


def texts(reply: Reply) -> list[str]:
    return [choice["text"] for choice in reply.json["choices"]]


def cached(reply: Reply) -> int:
    found: int = reply.json["usage"]["prompt_tokens_details"]["cached_tokens"]
    return found


def test_each_of_eight_adapters_has_the_tokens_in_a_batch_that_it_has_alone(adapted: RunningDaemon) -> None:
    models = (MODEL, *NAMES)
    alone = [answer(adapted, model, cache_salt="alone") for model in models]
    assert [cached(reply) for reply in alone] == [0] * len(models), "no adapter reads the keys of another"
    assert cached(answer(adapted, NAMES[3], cache_salt="alone")) > 0
    expected = [texts(reply) for reply in alone]
    assert len({text for (text,) in expected}) == len(models)
    with ThreadPoolExecutor(len(models)) as pool:
        together = list(pool.map(lambda model: answer(adapted, model, cache_salt="together"), models))
    assert [texts(reply) for reply in together] == expected


def test_all_answers_to_a_request_use_its_adapter(adapted: RunningDaemon) -> None:
    (alone,) = texts(answer(adapted, NAMES[0]))
    several = texts(answer(adapted, NAMES[0], n=3, temperature=1.0, top_k=1))
    assert several == [alone] * 3
    best = texts(answer(adapted, NAMES[0], use_beam_search=True, best_of=2))
    assert best != texts(answer(adapted, MODEL, use_beam_search=True, best_of=2))


def test_lists_adapters_with_their_model(adapted: RunningDaemon) -> None:
    listed = {entry["id"]: entry for entry in send(adapted, "GET", "/v1/models", unix=True).json["data"]}
    assert set(listed) == {MODEL, *NAMES}
    assert (listed[MODEL]["parent"], listed[NAMES[0]]["parent"]) == (None, MODEL)
    assert Path(listed[NAMES[0]]["root"]).name == NAMES[0]
    tags = {one["name"]: one for one in send(adapted, "GET", "/api/tags").json["models"]}
    assert tags[NAMES[1]]["details"]["parent_model"] == MODEL
    assert len({one["digest"] for one in tags.values()}) == len(tags)
    rows = {row["name"]: row for row in send(adapted, "GET", "/llmd/models", unix=True).json["models"]}
    assert (rows[NAMES[2]]["base"], rows[NAMES[2]]["state"]) == (MODEL, "loaded")


def test_a_model_with_an_adapter_is_neither_copied_nor_derived_from(adapted: RunningDaemon) -> None:
    copied = send(adapted, "POST", "/api/copy", {"source": NAMES[0], "destination": "mine"})
    assert copied.status == 400
    assert f"name {MODEL}" in copied.json["error"]
    derived = send(adapted, "POST", "/api/create", {"model": "mine", "from": NAMES[0], "stream": False})
    assert derived.status == 400


def test_finds_adapters_by_their_exact_names(tmp_path: Path) -> None:
    directories = directories_below(tmp_path)
    use_adapters(directories.config, "org/base", [tmp_path / "sql"])
    adapters = adapter_models(load_settings(environ={}, directories=directories))
    found = find_adapter(adapters, "sql:latest")
    assert found is not None
    assert (found[0], found[1].base, found[1].adapter) == ("sql", "org/base", str(tmp_path / "sql"))
    assert find_adapter(adapters, "sq") is None
    assert find_adapter(adapters, "base:sql") is None


def test_refuses_an_adapter_with_the_name_of_a_model(tmp_path: Path) -> None:
    directories = directories_below(tmp_path)
    use_adapters(directories.config, "base", [tmp_path / "sql"])
    adapters = adapter_models(load_settings(environ={}, directories=directories))
    check_names(adapters, {"base"})
    with pytest.raises(ConfigError, match="the adapter sql has the name of a model"):
        check_names(adapters, {"base", "sql"})


def test_refuses_an_adapter_whose_name_is_none(tmp_path: Path) -> None:
    directories = directories_below(tmp_path)
    use_adapters(directories.config, "base", [tmp_path / "not a name"])
    adapters = adapter_models(load_settings(environ={}, directories=directories))
    with pytest.raises(RequestError, match="not a name"):
        check_names(adapters, {"base"})
