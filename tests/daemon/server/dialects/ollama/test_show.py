from __future__ import annotations

import json
from pathlib import Path

import pytest

from llmd.registry.derived import DerivedModel
from llmd.server.dialects.ollama.show import default_parameters, modelfile, parameter_lines
from tests.serving.http import send
from tests.serving.model import CONTEXT_LEN, TEMPLATE, write_model
from tests.serving.running import MODEL, RunningDaemon, directories_below, running_daemon


@pytest.mark.parametrize("body", [{"model": "other"}, {"name": "other:latest"}, {"model": "oth"}])
def test_model_is_described_by_every_name(daemon: RunningDaemon, body: dict[str, str]) -> None:
    shown = send(daemon, "POST", "/api/show", body).json
    assert shown["model_info"]["llama.context_length"] == CONTEXT_LEN
    assert shown["template"] == TEMPLATE
    assert shown["capabilities"] == ["completion", "tools"]
    assert shown["details"]["family"] == "llama"
    assert shown["modelfile"].splitlines()[1] == "FROM other"
    assert (shown["system"], shown["messages"], shown["license"]) == ("", [], "")


def test_model_is_not_loaded_to_be_described(tmp_path: Path, probes: Path) -> None:
    directories = directories_below(tmp_path, cache=probes)
    write_model(directories.models / MODEL)
    with running_daemon(directories, models=()) as daemon:
        assert send(daemon, "POST", "/api/show", {"model": MODEL}).status == 200
        assert send(daemon, "GET", "/api/tags").status == 200
        assert send(daemon, "GET", "/api/ps").json["models"] == []


def test_unknown_model_is_not_found(daemon: RunningDaemon) -> None:
    reply = send(daemon, "POST", "/api/show", {"model": "nobody"})
    assert (reply.status, reply.json) == (404, {"error": "model 'nobody' not found"})
    assert send(daemon, "POST", "/api/show", {}).status == 400


def test_directories_are_shown_on_the_socket_alone(daemon: RunningDaemon, model_directory: Path) -> None:
    body = {"model": str(model_directory)}
    assert send(daemon, "POST", "/api/show", body).status == 404
    assert send(daemon, "POST", "/api/show", body, unix=True).status == 200


def test_sampling_of_the_models_makers_has_ollamas_names(tmp_path: Path) -> None:
    values = {"temperature": 0.6, "top_k": 20, "repetition_penalty": 1.1, "eos_token_id": 2}
    (tmp_path / "generation_config.json").write_text(json.dumps(values))
    assert default_parameters(tmp_path) == {"temperature": 0.6, "top_k": 20, "repeat_penalty": 1.1}
    (tmp_path / "generation_config.json").write_text("{")
    assert default_parameters(tmp_path) == {}


def test_parameters_are_lines_and_texts_are_quoted() -> None:
    lines = parameter_lines({"temperature": 0.6, "stop": ["<a>", "b c"]}).splitlines()
    assert [line.split(maxsplit=1) for line in lines] == [
        ["temperature", "0.6"],
        ["stop", '"<a>"'],
        ["stop", '"b c"'],
    ]


def test_modelfile_is_a_recipe() -> None:
    record = DerivedModel("base", 0.0, system="Be brief.", messages=({"role": "user", "content": "hi"},))
    assert modelfile(record, "{{ x }}", parameter_lines({"top_k": 5})).splitlines() == [
        "# Modelfile of llmd",
        "FROM base",
        'TEMPLATE """{{ x }}"""',
        'SYSTEM """Be brief."""',
        "PARAMETER top_k 5",
        "MESSAGE user hi",
    ]
    assert modelfile(DerivedModel("base", 0.0), '"""', "").splitlines()[2] == "TEMPLATE '''\"\"\"'''"
