"""`llmd serve`: every flag has an effect, and SIGTERM ends it with exit code 0."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import click
import pytest

from llmd.api.errors import ConfigError, NotFoundError, RequestError
from llmd.cli import serve as module
from llmd.cli.serve import kept_models, named_models, read_aliases, typed_arguments
from llmd.client_errors import EXIT_REFUSED
from llmd.config import Settings, load_settings
from llmd.host.blas_threads import VARIABLES
from llmd.registry.store import Store
from llmd.server.http.listeners import EXIT_CONFLICT
from tests.serving.adapters import write_adapter
from tests.serving.gguf_model import write_gguf_model
from tests.serving.home import LLMD, STOP_LIMIT_S, Home
from tests.serving.model import write_model
from tests.serving.processes import children

Llmd = Callable[..., Any]


@pytest.fixture
def store(tmp_path: Path) -> Store:
    for name in ("one", "two"):
        write_model(tmp_path / "models" / name)
    return Store(tmp_path / "models", {})


def settings_of(llmd: Llmd, monkeypatch: pytest.MonkeyPatch, *arguments: str) -> Settings:
    """Return the configuration of a command line."""
    seen: list[Settings] = []
    monkeypatch.setattr(module, "serve", lambda settings, *_, **_options: seen.append(settings))
    done = llmd("serve", *arguments)
    assert done.code == 0, done.err
    return seen[0]


def test_prints_one_line_when_ready_and_ends_with_zero_on_sigterm(home: Home) -> None:
    tcp, unix = "127.0.0.1:0", f"unix:{home.folder}/mine.sock"
    with home.serve("--addr", tcp, "--addr", unix) as served:
        assert served.line.startswith("llmd ")
        assert f"{unix}; models: none loaded" in served.line
        assert home.json("version", "--host", served.url)["daemon"]
        assert home.json("ps", "--host", unix)["models"] == []
        assert served.end() == 0
        assert served.process.stdout is not None
        assert served.process.stdout.read() == ""
    assert not (home.folder / "mine.sock").exists()


def test_the_owner_keeps_the_socket_when_a_tcp_address_requires_a_key(home: Home) -> None:
    with home.serve("--addr", "127.0.0.1:0", "--require-key") as served:
        assert f"unix:{home.socket}" in served.line
        assert home.json("ps")["models"] == []
        assert home.llmd("ps", "--host", served.url).returncode == EXIT_REFUSED
    with home.serve("--addr", "127.0.0.1:0", "--no-user-socket") as served:
        assert "unix:" not in served.line
        assert not home.socket.exists()


def test_a_daemon_that_was_asked_to_ends_with_its_standard_input(home: Home) -> None:
    command = (*LLMD, "serve", "--exit-on-eof")
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=home.environment
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline().startswith(b"llmd ")
        process.stdin.write(b"what comes in does not matter")
        process.stdin.flush()
        assert home.json("ps")["models"] == []
        process.stdin.close()
        assert process.wait(STOP_LIMIT_S) == 0
    assert not home.socket.exists()


def test_without_standard_input_it_ends_at_once(home: Home) -> None:
    command = (*LLMD, "serve", "--exit-on-eof")
    done = subprocess.run(command, stdin=subprocess.DEVNULL, env=home.environment, check=False)
    assert done.returncode == 0


def test_a_detached_daemon_has_no_standard_input_to_wait_for(llmd: Llmd) -> None:
    done = llmd("serve", "--detach", "--exit-on-eof")
    assert (done.code, "drop --exit-on-eof" in done.err) == (2, True)


def test_numpy_has_one_thread_in_the_daemon(monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit is set before the import: the daemon's modules are imported after the engine is started."""
    code = f"""
import asyncio, os, sys
from llmd.cli import serve
def run(coroutine):
    coroutine.close()
    print([os.environ[name] for name in {VARIABLES}], "numpy" in sys.modules)
asyncio.run = run
serve.serve(None)
"""
    for name in VARIABLES:
        monkeypatch.setenv(name, "8")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "['1', '1', '1'] False\n"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_it_starts_ends_it_quietly_with_zero(
    llmd: Llmd, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    monkeypatch.setattr(module, "serve", lambda *_, **_options: signal.raise_signal(number))
    before = signal.getsignal(signal.SIGTERM)
    try:
        done = llmd("serve")
    finally:
        signal.signal(signal.SIGTERM, before)
    assert (done.code, done.out, done.err) == (0, "", "")


def test_flags_say_how_models_are_loaded(home: Home) -> None:
    flags = (
        "--device",
        "reference",
        "--max-ctx",
        "128",
        "--slots",
        "2",
        "--quant",
        "q8",
        "--activations",
        "f32",
        "--kv-dtype",
        "f32",
    )
    with home.serve("tiny", *flags, "--alias", "first", "--alias", "second=tiny") as served:
        row = home.loaded()
        assert served.end() == 0
    (stage,) = row["loaded"]["stages"]
    assert row["aliases"] == ["first", "second"]
    assert row["context_len"] == 128
    assert stage["device"] == "reference"
    assert "q8" in row["loaded"]["formats"]
    # Keys and values of two layers with two heads of 16 (f32), for 2 slots of 128 tokens in blocks.
    assert row["report"]["kv_blocks_total"] * 16 == 2 * 128
    assert stage["kv_bytes"] % (row["report"]["kv_blocks_total"] * 16 * 4) == 0


def test_a_budget_bounds_keys_and_values_and_a_split_chains_devices(home: Home) -> None:
    flags = ("--split", "0-0=reference,1-1=reference", "--kv-memory", "64KiB")
    with home.serve("tiny", *flags) as served:
        row = home.loaded()
        assert served.end() == 0
    stages = row["loaded"]["stages"]
    assert [stage["parts"] for stage in stages] == ["layer 0", "layer 1"]
    assert 0 < sum(stage["kv_bytes"] for stage in stages) <= 64 << 10


@pytest.mark.parametrize("kind", ["directory", "gguf"])
def test_serves_adapters_of_the_only_model(home: Home, kind: str) -> None:
    directory = home.folder / "data" / "llmd" / "models" / "tiny"
    write_adapter(home.folder / "sql", directory)
    model = str(write_gguf_model(home.folder / "other.gguf")) if kind == "gguf" else "tiny"
    with home.serve(model, "--device", "reference", "--lora", f"sql={home.folder}/sql") as served:
        answers = [
            home.llmd("run", name, "Hello", "--max-tokens", "12", "--temp", "0") for name in (model, "sql")
        ]
        assert served.end() == 0
    assert [answer.returncode for answer in answers] == [0, 0], answers[1].stderr
    assert answers[0].stdout != answers[1].stdout


def test_an_adapter_that_cannot_be_used_ends_it_with_its_name(home: Home) -> None:
    missing = home.llmd("serve", "tiny", "--lora", f"sql={home.folder}/none")
    assert missing.returncode == 1
    assert f"{home.folder}/none/adapter_config.json: there is no such file" in missing.stderr
    taken = home.llmd("serve", "tiny", "--lora", f"tiny={home.folder}/none")
    assert taken.returncode == ConfigError.exit_code
    assert "the adapter tiny has the name of a model" in taken.stderr


def test_the_network_is_served_only_where_that_was_asked_for(home: Home) -> None:
    refused = home.llmd("serve", "--addr", "0.0.0.0:0")
    assert (refused.returncode, refused.stdout) == (ConfigError.exit_code, "")
    assert "--no-auth" in refused.stderr
    with home.serve("--addr", "0.0.0.0:0", "--no-auth") as served:
        assert "http://0.0.0.0:" in served.line
        assert served.end() == 0


def test_a_cache_that_cannot_be_written_is_one_warning(home: Home) -> None:
    (home.folder / "cache").touch()
    home.environment["XDG_CACHE_HOME"] = str(home.folder / "cache")
    started = home.llmd("-v", "serve", "tiny", "--device", "reference", "--detach")
    assert started.returncode == 0, started.stderr
    assert home.llmd("stop", "--daemon").returncode == 0
    log = (home.state / "daemon.log").read_text()
    assert "model_loaded" in log
    assert log.count("cache_not_written") == 1


def test_an_address_in_use_ends_it_at_once(home: Home) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        done = home.llmd("serve", "--addr", f"127.0.0.1:{taken.getsockname()[1]}")
    assert done.returncode == EXIT_CONFLICT
    assert "cannot listen" in done.stderr
    assert "`llmd load MODEL`" in done.stderr


def test_an_unknown_model_ends_it_with_three(home: Home) -> None:
    done = home.llmd("serve", "tinny")
    assert (done.returncode, done.stdout) == (NotFoundError.exit_code, "")
    assert "tiny" in done.stderr


def test_who_may_ask_and_how_long_answers_may_go_on_are_flags(
    llmd: Llmd, monkeypatch: pytest.MonkeyPatch
) -> None:
    flags = (
        "--allow-host",
        "box",
        "--allow-origin",
        "http://a",
        "--allow-origin",
        "http://b",
        "--drain-s",
        "2",
    )
    server = settings_of(llmd, monkeypatch, *flags).config.server
    assert server.models.spare_engine
    assert (server.listen.allow_host, server.listen.allow_origin) == (("box",), ("http://a", "http://b"))
    assert server.limits.drain_s == 2.0


def test_a_spare_engine_is_kept_unless_the_flag_says_no(
    llmd: Llmd, monkeypatch: pytest.MonkeyPatch, home: Home
) -> None:
    for flag, kept in (("--spare-engine", True), ("--no-spare-engine", False)):
        assert settings_of(llmd, monkeypatch, flag).config.server.models.spare_engine is kept
        monkeypatch.undo()
        with home.serve(flag) as served:
            assert len(engines_of(served.process.pid)) == int(kept)
            assert served.end() == 0


def engines_of(pid: int) -> list[int]:
    """Return the engine processes among a process's children."""
    commands = {child: Path(f"/proc/{child}/cmdline").read_bytes().split(b"\0") for child in children(pid)}
    return [child for child, command in commands.items() if b"llmd.engine" in command]


def test_a_file_of_settings_may_be_named(llmd: Llmd, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text("[engine]\nslots = 3\n")
    assert settings_of(llmd, monkeypatch, "--config", str(file)).config.engine.slots == 3


def test_models_are_served_by_name_and_directories_by_their_own(store: Store, tmp_path: Path) -> None:
    other = write_model(tmp_path / "elsewhere" / "three")
    assert named_models(["one", str(other)], store) == {"one": "one", "three": str(other)}
    assert named_models(["tw"], store) == {"two": "two"}
    same = write_model(tmp_path / "other" / "three")
    assert named_models([str(other), str(same)], store) == {"three": str(other), str(same): str(same)}
    with pytest.raises(NotFoundError, match="no model 'four'"):
        named_models(["four"], store)


@pytest.mark.parametrize(
    ("texts", "served", "aliases"),
    [
        (["a"], ["one"], {"a": "one"}),
        (["a=one", "b=one"], ["one"], {"a": "one", "b": "one"}),
        (["a=two"], ["one"], {"a": "two"}),
        (["a=/models/three"], ["one", "three"], {"a": "three"}),
        (["a=/b/three"], ["three", "/b/three"], {"a": "/b/three"}),
    ],
)
def test_aliases_mean_what_is_served_or_stored(
    store: Store, texts: list[str], served: list[str], aliases: Mapping[str, str]
) -> None:
    assert read_aliases(texts, served, store) == aliases


def test_the_setting_names_models_and_its_place_is_told(store: Store, tmp_path: Path) -> None:
    def settings(text: str, models: tuple[str, ...] = ()) -> Settings:
        file = tmp_path / "c.toml"
        file.write_text(text)
        return load_settings({"load": models or None}, environ={}, file=file)

    assert kept_models(settings('[server]\nload = ["one", "tw"]'), store) == {"one": "one", "two": "two"}
    assert kept_models(settings('[server]\nload = ["one"]', ("two",)), store) == {"two": "two"}
    with pytest.raises(NotFoundError, match=r"^server.load from .*c.toml:2: there is no model 'four'"):
        kept_models(settings('[server]\nload = "four"'), store)
    with pytest.raises(NotFoundError, match=r"^there is no model 'four'"):
        kept_models(settings("", ("four",)), store)


def test_an_alias_must_say_which_model_it_means(store: Store) -> None:
    for served in ([], ["one", "two"]):
        with pytest.raises(ConfigError, match=f"which of {len(served)} models"):
            read_aliases(["a"], served, store)
    with pytest.raises(NotFoundError, match="four"):
        read_aliases(["a=four"], ["one"], store)
    for alias in ("../x", "-rf", "a\nb", "x" * 300):
        with pytest.raises(RequestError, match="model name"):
            read_aliases([f"{alias}=one"], ["one"], store)


def test_typed_arguments_are_given_on_without_the_flag_that_made_it_detach() -> None:
    line = ["one", "two", "--detach", "--no-auth", "-c", "64", "--addr", "a:1", "--addr", "b:2"]
    context = module.command.make_context("serve", line)
    assert isinstance(context, click.Context)
    words = typed_arguments(context, without="detach")
    assert words[-3:] == ["--", "one", "two"]
    again = module.command.make_context("serve", words)
    assert again.params == context.params | {"detach": False}
