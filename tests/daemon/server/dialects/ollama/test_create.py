from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.serving.http import Reply, send
from tests.serving.model import write_model
from tests.serving.ndjson import ask_chat, generate
from tests.serving.running import MODEL, RunningDaemon, directories_below, running_daemon

JINJA = "{% for m in messages %}{{ m.content }}{% endfor %}"


@pytest.fixture
def own(tmp_path: Path, probes: Path) -> Iterator[RunningDaemon]:
    """A daemon whose models a test may change."""
    directories = directories_below(tmp_path, cache=probes)
    write_model(directories.models / MODEL)
    with running_daemon(directories, aliases={"gpt-4o": MODEL}) as running:
        yield running


def create(daemon: RunningDaemon, **fields: Any) -> Reply:
    body = {"model": "mario", "from": MODEL, "stream": False, **fields}
    return send(daemon, "POST", "/api/create", body)


def show(daemon: RunningDaemon, name: str = "mario") -> dict[str, Any]:
    shown: dict[str, Any] = send(daemon, "POST", "/api/show", {"model": name}).json
    return shown


def test_created_model_answers_as_it_was_told(own: RunningDaemon) -> None:
    create(own, system="Be Mario.", parameters={"num_predict": 3, "temperature": 0})
    messages = [{"role": "user", "content": "Hello"}]
    body = {"model": "mario", "messages": messages, "stream": False}
    answer = send(own, "POST", "/api/chat", body).json
    system = {"role": "system", "content": "Be Mario."}
    told = ask_chat(own, messages=[system, *messages], options={"num_predict": 3}).json
    assert answer["model"] == "mario"
    assert answer["message"] == told["message"]
    assert answer["eval_count"] == 3
    assert [row["name"] for row in send(own, "GET", "/api/ps").json["models"]] == [MODEL]


def test_created_model_is_listed_and_shown(own: RunningDaemon) -> None:
    shot = {"role": "user", "content": "Who?"}
    create(
        own, system="Be Mario.", template=JINJA, messages=[shot], parameters={"stop": ["a"]}, license="MIT"
    )
    listed = {entry["name"]: entry for entry in send(own, "GET", "/api/tags").json["models"]}
    assert listed["mario"]["details"]["parent_model"] == MODEL
    assert listed["mario"]["digest"] != listed[MODEL]["digest"]
    shown = show(own)
    assert (shown["system"], shown["template"], shown["messages"]) == ("Be Mario.", JINJA, [shot])
    assert (shown["license"], shown["parameters"].split()) == ("MIT", ["stop", '"a"'])
    assert shown["modelfile"].splitlines()[1] == f"FROM {MODEL}"
    assert generate(own, model="mario").json["prompt_eval_count"] == len(b"Be Mario.Who?Hello")


def test_words_of_a_created_model_stand_in_a_context_once(own: RunningDaemon) -> None:
    create(own, system="Be Mario.")
    first = generate(own, model="mario").json
    second = generate(own, "More", model="mario", context=first["context"]).json
    plain = generate(own, "More").json
    added = second["prompt_eval_count"] - len(first["context"])
    assert added == plain["prompt_eval_count"] - 1  # BOS is only at the start


def test_model_derived_from_a_derived_one_keeps_what_it_does_not_change(own: RunningDaemon) -> None:
    create(own, system="Be Mario.", parameters={"top_k": 5, "seed": 1})
    create(own, **{"model": "luigi", "from": "mario", "parameters": {"top_k": 6}})
    shown = show(own, "luigi")
    assert shown["system"] == "Be Mario."
    assert shown["details"]["parent_model"] == MODEL
    assert {tuple(line.split()) for line in shown["parameters"].splitlines()} == {
        ("top_k", "6"),
        ("seed", "1"),
    }
    create(own, system="Be Luigi.")
    assert show(own)["system"] == "Be Luigi."
    assert show(own, "luigi")["system"] == "Be Mario."


@pytest.mark.parametrize(
    ("fields", "status", "word"),
    [
        ({"from": None}, 400, "from"),
        ({"from": "nobody"}, 404, "nobody"),
        ({"model": MODEL}, 400, "already"),
        ({"model": "../../x"}, 400, "'../../x' is not a valid model name (a name is NAME or ORG/NAME"),
        ({"model": "-rf"}, 400, "not a valid model name"),
        ({"model": "a\nb"}, 400, "not a valid model name"),
        ({"model": "x" * 300}, 400, "has 300 characters (a model name has at most 200)"),
        ({"model": "gpt-4o:latest"}, 400, "already"),
        ({"parameters": {"top_p": 7}}, 400, "top_p"),
        ({"template": "{{ .Prompt }}"}, 400, "Jinja"),
        ({"files": {"model.gguf": "sha256:00"}}, 400, "files"),
        ({"adapters": {"a": "sha256:00"}}, 400, "adapters"),
        ({"quantize": "q4_K_M"}, 400, "quantize"),
        ({"modelfile": "FROM tiny"}, 400, "modelfile"),
    ],
)
def test_what_cannot_be_made_is_refused_by_name(
    daemon: RunningDaemon, fields: dict[str, Any], status: int, word: str
) -> None:
    reply = create(daemon, **fields)
    assert reply.status == status
    assert word in reply.json["error"]
