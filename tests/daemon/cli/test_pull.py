"""`llmd pull` in a daemon or in this process."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.corrupt import small_model
from tests.serving.home import LLMD, Home
from tests.serving.hub import Hub, Repository

Llmd = Callable[..., Any]
NAME = "org/name"


@pytest.fixture(autouse=True)
def repository(hub: Hub, tmp_path: Path) -> Repository:
    hub.repositories[NAME] = Repository.of(small_model.write_small_model(tmp_path / "original"))
    return hub.repositories[NAME]


@pytest.fixture
def alone(llmd: Llmd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Llmd:
    """``llmd`` without a running daemon."""
    monkeypatch.setenv("LLMD_ADDR", f"unix:{tmp_path}/no.sock")
    return llmd


def test_without_a_daemon_it_pulls_itself(alone: Llmd, hub: Hub, tmp_path: Path) -> None:
    done = alone("pull", NAME, "--hub", hub.url)
    assert (done.code, done.out) == (0, f"{NAME}\n")
    assert re.search(r"model.safetensors: (\S+ KiB) of \1$", done.err, re.MULTILINE)
    listed = alone("list", "--plain", "--columns", "NAME,SOURCE").out
    assert f"{NAME}\t{NAME}@11111111" in listed
    assert f"source  {' ' * 6}{NAME}@{'1' * 40}" in alone("show", NAME).out
    assert (tmp_path / "data/llmd/models" / NAME / "config.json").exists()


def test_json_is_a_line_for_each_step(alone: Llmd, hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LLMD_HUB", hub.url)
    done = alone("pull", NAME, "--json")
    steps = [json.loads(line) for line in done.out.splitlines()]
    assert {step["schema"] for step in steps} == {1}
    assert steps[-1] == {"schema": 1, "status": "success", "model": NAME}
    assert done.err == ""


def test_quiet_shows_the_name_alone(alone: Llmd, hub: Hub) -> None:
    done = alone("pull", NAME, "-q", "--hub", hub.url)
    assert (done.out, done.err) == (f"{NAME}\n", "")


def test_a_version_is_pinned_by_its_revision(alone: Llmd, hub: Hub, repository: Repository) -> None:
    repository.add("v1", "2" * 40, repository.commits["1" * 40])
    assert alone("pull", f"{NAME}@v1", "-q", "--hub", hub.url).out == f"{NAME}@v1\n"


def test_a_short_name_says_what_it_stands_for(alone: Llmd, hub: Hub, repository: Repository) -> None:
    hub.repositories["Qwen/Qwen3-0.6B"] = repository
    done = alone("pull", "qwen3:0.6b", "--hub", hub.url)
    assert (done.code, done.out) == (0, "Qwen/Qwen3-0.6B\n")
    assert done.err.startswith("qwen3:0.6b stands for Qwen/Qwen3-0.6B\n")
    assert "Qwen/Qwen3-0.6B" in alone("show", "Qwen3:0.6b").out
    assert alone("pull", "qwen3:0.6b", "-q", "--hub", hub.url).err == ""


@pytest.mark.parametrize(
    ("name", "code", "says"),
    [
        ("../x", 2, "is not a valid model name"),
        ("org/absent", 3, "has no model org/absent"),
        ("gated", 4, "HF_TOKEN"),
    ],
)
def test_what_cannot_be_pulled_says_what_helps(
    alone: Llmd, hub: Hub, name: str, code: int, says: str
) -> None:
    hub.repositories["gated"] = Repository({}, token="t")
    done = alone("pull", name, "--hub", hub.url)
    assert done.code == code
    assert says in done.err


def test_a_daemon_that_was_named_must_answer(
    alone: Llmd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert alone("pull", NAME, "--host", f"unix:{tmp_path}/other.sock").code == 6
    monkeypatch.setenv("LLMD_HOST", f"unix:{tmp_path}/other.sock")
    assert alone("pull", NAME).code == 6


def test_a_daemon_does_the_work_where_one_runs_and_ctrl_c_keeps_what_has_come(home: Home, hub: Hub) -> None:
    home.environment["LLMD_HUB"] = hub.url
    home.environment.pop("HF_TOKEN", None)
    with home.serve():
        hub.hold.clear()
        command = (*LLMD, "pull", NAME)
        with subprocess.Popen(command, env=home.environment, stderr=subprocess.PIPE, text=True) as process:
            assert process.stderr is not None
            while "config.json" not in process.stderr.readline():
                pass
            process.send_signal(signal.SIGINT)
            hub.hold.set()
            assert process.wait(20) == 130
        assert home.llmd("pull", NAME, "--json").returncode == 0
        assert home.llmd("rm", "--yes", NAME).returncode == 0


def test_asking_for_help_does_not_load_what_pulls() -> None:
    code = """
import sys
from llmd.cli.main import run
run(["pull", "--help"]); run(["rm", "--help"]); run(["serve", "--help"])
heavy = {"huggingface_hub", "httpx2", "rich", "aiohttp", "llmd.registry.hub"} & set(sys.modules)
assert not heavy, heavy
"""
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)
