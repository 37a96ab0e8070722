from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest

from llmd.api.errors import ConfigError
from llmd.builtin.parsers.plugin import llmd_parsers
from llmd.config import Settings, load_settings
from llmd.host.cache import Cache
from llmd.host.listing import known_states
from llmd.host.names import DEVICE_TRIAL, discover
from llmd.host.plugin_host import PluginHost
from llmd.registry.derived import DerivedModel, DerivedModels
from llmd.server.models.model_settings import (
    check_parsers,
    missing_parser,
    parser_choice,
    settings_without_effect,
    warn_of_unused,
)
from tests.plugin_sites import Site
from tests.serving.http import chat, send
from tests.serving.model import TOOL_TEMPLATE, write_model
from tests.serving.running import MODEL, directories_below, running_daemon

PARSER = """
from llmd.api import Parser, ReasoningMarks, hookimpl
LLMD_API = 2
@hookimpl
def llmd_parsers():
    marks = lambda: ReasoningMarks("<aloud>", "</aloud>")
    return [Parser("loud", "reasoning", matches=lambda template: 0, load=marks)]
"""
SHAKY = """
from llmd.api import CallFormat, CallGrammar, Parser, hookimpl
LLMD_API = 2
class Reader:
    held = 0
    def feed(self, text):
        raise RuntimeError("it cannot read")
    def finish(self):
        return []
def load():
    return CallFormat(lambda tools: Reader(), lambda tools: CallGrammar([], trigger="<call>", separator=""))
@hookimpl
def llmd_parsers():
    return [Parser("shaky", "calls", matches=lambda template: 0, load=load)]
"""
PARSERS = {parser.name: parser for parser in llmd_parsers()}
TOOLS = [{"type": "function", "function": {"name": "now", "parameters": {"properties": {}}}}]


def settings_of(folder: Path, text: str) -> Settings:
    directories = directories_below(folder)
    directories.config.mkdir()
    directories.user_config.write_text(text)
    return load_settings(environ={}, directories=directories)


def test_each_model_has_the_parsers_of_its_table_and_else_those_of_all(tmp_path: Path) -> None:
    settings = settings_of(
        tmp_path,
        '[server]\nreasoning_parser = "think"\n'
        '[models.a]\ntool_parser = "granite"\n[models.b]\nreasoning_parser = "none"\n',
    )
    chosen = [parser_choice(PARSERS, settings.of_model(name)) for name in ("a", "b", "c")]
    names = [(choice.calls, choice.reasoning) for choice in chosen]
    assert names == [("granite", "think"), ("auto", "none"), ("auto", "think")]


@pytest.mark.parametrize(
    ("text", "said", "known"),
    [
        ('[models."org/a"]\ntool_parser = "think"', 'models."org/a".tool_parser from ', "hermes"),
        ('[server]\nreasoning_parser = "hermes"', "server.reasoning_parser from ", "mistral_think"),
    ],
)
def test_unknown_parsers_are_refused_with_where_they_stand_and_those_there_are(
    tmp_path: Path, cache: Cache, text: str, said: str, known: str
) -> None:
    settings = settings_of(tmp_path, text)
    with pytest.raises(ConfigError) as refused:
        check_parsers(PluginHost(discover(), cache), settings)
    assert refused.value.message.startswith(f"{said}{settings.user_file} is ")
    assert known in refused.value.message


def test_a_disabled_plugin_and_what_it_provides_are_named(tmp_path: Path, site: Site, cache: Cache) -> None:
    plugin = site.write("shout", PARSER)
    settings = settings_of(tmp_path, '[models.tiny]\nreasoning_parser = "loud"\n')
    PluginHost([plugin], cache).plugins()  # describes it
    host = PluginHost([plugin], cache, disabled=["shout"])
    check_parsers(host, settings)
    missing = missing_parser(host, "tiny", parser_choice(host.parsers(), settings.of_model("tiny")))
    assert missing is not None
    assert missing.message == (
        "tiny needs the parser loud, but plugin shout (made-shout 1.0) was disabled: you disabled it"
    )
    assert missing.hint.startswith("run `llmd plugins enable shout` and `llmd reload`")
    assert missing_parser(host, "other", parser_choice(host.parsers(), settings.of_model("other"))) is None


def test_a_model_whose_parser_fails_is_refused_and_the_daemon_runs_on(
    tmp_path: Path, probes: Path, site: Site
) -> None:
    directories = directories_below(tmp_path, probes)
    write_model(directories.models / MODEL)
    directories.config.mkdir()
    directories.user_config.write_text('[models.tiny]\nreasoning_parser = "shout"\n')
    site.write("shout", "raise RuntimeError('broken')")
    with running_daemon(directories, models=(MODEL,)) as daemon:
        refused = chat(daemon)
        assert (refused.status, refused.error["code"]) == (503, "model_failed")
        assert "tiny needs the parser shout, but plugin shout (made-shout 1.0)" in refused.error["message"]
        assert "RuntimeError: broken" in refused.error["message"]
        assert send(daemon, "GET", "/health").status == 200
        (site.folder / "made_shout.py").write_text(PARSER.replace("loud", "shout"))
        assert [change.applies for change in daemon.reload().changed_plugins] == ["now"]
        assert chat(daemon).status == 200


def test_a_parser_that_raises_leaves_text_and_its_plugin_is_listed_as_failed(
    tmp_path: Path, probes: Path, site: Site
) -> None:
    directories = directories_below(tmp_path, tmp_path / "cache")
    write_model(directories.models / MODEL, template=TOOL_TEMPLATE)
    directories.config.mkdir()
    directories.user_config.write_text('[models.tiny]\ntool_parser = "shaky"\n')
    plugin = site.write("shaky", SHAKY)
    with running_daemon(directories) as daemon:
        for _ in range(2):
            answer = chat(daemon, tools=TOOLS, max_tokens=12, ignore_eos=True, reasoning_effort="none")
            assert (answer.status, bool(answer.json["choices"][0]["message"]["content"])) == (200, True)
        listed = send(daemon, "GET", "/llmd/plugins", unix=True).json["plugins"]
    states = {state["name"]: (state["state"], state["reason"]) for state in listed}
    failed = ("failed", "its parser shaky raised RuntimeError: it cannot read")
    assert states["shaky"] == failed
    (known,) = known_states([plugin], Cache(directories.cache), DEVICE_TRIAL)
    assert (known.state, known.reason) == failed
    assert "made-shaky" in known.fix


def test_a_daemon_with_an_unknown_parser_does_not_start(tmp_path: Path, probes: Path) -> None:
    directories = directories_below(tmp_path, probes)
    directories.config.mkdir()
    directories.user_config.write_text('[models.later]\ntool_parser = "hermess"\n')
    refusal = pytest.raises(
        ConfigError, match=r"models\.later\.tool_parser from .* is hermess, but the only parsers are"
    )
    with refusal, running_daemon(directories, models=()):
        pass


def test_models_of_one_daemon_are_read_kept_and_run_each_by_its_own_settings(
    tmp_path: Path, probes: Path
) -> None:
    directories = directories_below(tmp_path, probes)
    for name in (MODEL, "org/own-2.5"):
        write_model(directories.models / name, template=TOOL_TEMPLATE)
    directories.config.mkdir()
    directories.user_config.write_text(
        '[models."org/own-2.5"]\ntool_parser = "none"\nkeep_alive = "1h"\nmax_ctx = 96\n'
    )

    def call(model: str) -> Any:
        asked = {"model": model, "tools": TOOLS, "tool_choice": "required", "max_tokens": 80}
        return chat(daemon, **asked, reasoning_effort="none")

    with running_daemon(directories, models=(MODEL, "org/own-2.5")) as daemon:
        assert call(MODEL).json["choices"][0]["message"]["tool_calls"]
        refused = call("org/own-2.5")
        assert (refused.status, refused.error["param"]) == (400, "tool_choice")
        assert chat(daemon, model="org/own-2.5").status == 200
        found = {row["name"]: row for row in send(daemon, "GET", "/llmd/ps", unix=True).json["models"]}
    assert [found[name]["expires_at"] is None for name in (MODEL, "org/own-2.5")] == [True, False]
    assert [found[name]["context_len"] for name in (MODEL, "org/own-2.5")] == [512, 96]


def test_tables_of_models_that_there_are_not_are_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    settings = settings_of(tmp_path, "[models.guide]\nslots = 2\n[models.guid]\nslots = 3\n")
    with caplog.at_level(logging.WARNING):
        warn_of_unused(settings, ["guide", "other"], DerivedModels(tmp_path / "derived"))
    (record,) = caplog.records
    found = [getattr(record, name) for name in ("model", "nearest", "source")]
    assert found == ["guid", "guide", str(settings.user_file)]


def test_settings_of_derived_models_that_their_base_determines_are_named(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    derived = DerivedModels(tmp_path / "derived")
    derived.save("mario", DerivedModel(base="guide", created=0.0))
    settings = settings_of(tmp_path, '[models.mario]\nkeep_alive = "1h"\nslots = 3\n')
    (error,) = settings_without_effect(settings, derived)
    assert error.line == 3
    assert "mario is derived from guide and shares its engine" in error.message
    with caplog.at_level(logging.WARNING):
        warn_of_unused(settings, ["guide"], derived)
    assert [record.getMessage() for record in caplog.records] == ["setting_without_effect"]
