"""`llmd bench serve` against a running daemon and with a temporary one."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.serving.home import LLMD, Home
from tests.serving.processes import children
from tests.serving.running import MODEL, RunningDaemon
from tests.serving.terminal import terminal

Llmd = Callable[..., Any]
SHORT = ("--input-len", "12", "--output-len", "5", "--num-prompts", "4")


@pytest.fixture
def bench(llmd: Llmd, daemon: RunningDaemon) -> Llmd:
    """Runs ``llmd bench serve`` against the running daemon."""
    where = ("--base-url", daemon.url, "--tokenizer", str(daemon.directories.models / MODEL))
    return lambda *arguments: llmd("bench", "serve", *where, *SHORT, *arguments)


def test_shows_figures_of_the_first_model(bench: Llmd) -> None:
    done = bench()
    assert done.code == 0, done.err
    lines = done.out.splitlines()
    assert f"{'Successful requests:':<40} 4" in lines
    assert f"{'Total generated tokens:':<40} 20" in lines
    assert any(line.startswith("P99 E2EL (ms):") for line in lines)


def test_json_has_the_figures_and_the_lists_only_where_they_were_asked_for(bench: Llmd) -> None:
    found = json.loads(
        bench("--json", "--backend", "openai-chat", "--goodput", "ttft:60000", "e2el:60000").out
    )
    assert (found["completed"], found["backend"], found["model_id"]) == (4, "openai-chat", MODEL)
    assert found["request_goodput"] == found["request_throughput"]
    assert "ttfts" not in found
    assert len(json.loads(bench("--json", "--save-detailed").out)["ttfts"]) == 4


def test_the_result_is_written_to_a_file_or_added_to_one(bench: Llmd, tmp_path: Path) -> None:
    folder = ("--result-dir", str(tmp_path / "results"))
    assert bench("--save-result", *folder, "--max-concurrency", "2").code == 0
    (file,) = (tmp_path / "results").iterdir()
    assert file.name.startswith(f"openai-infqps-concurrency2-{MODEL}-")
    found = json.loads(file.read_text())
    assert (found["completed"], found["max_concurrency"]) == (4, 2)
    for label in ("a", "b"):
        bench("--append-result", *folder, "--result-filename", "all.json", "--label", label)
    lines = (tmp_path / "results" / "all.json").read_text().splitlines()
    assert [json.loads(line)["label"] for line in lines] == ["a", "b"]


def test_conversations_of_a_file_are_asked(bench: Llmd, tmp_path: Path) -> None:
    talk = {"conversations": [{"value": "What is it?"}, {"value": "A test."}]}
    (tmp_path / "talks.json").write_text(json.dumps([talk]))
    done = bench(
        "--dataset-name", "sharegpt", "--dataset-path", str(tmp_path / "talks.json"), "--ignore-eos", "--json"
    )
    found = json.loads(done.out)
    assert (found["completed"], found["total_output_tokens"]) == (4, 20)


def test_a_load_of_which_nothing_is_answered_fails_with_the_reason(bench: Llmd) -> None:
    done = bench("--temperature", "9")
    assert done.code == 1
    assert "4 failed: 400: temperature" in done.out
    assert "no request was answered" in done.err


def test_a_daemon_of_its_own_gets_the_options_of_serve_and_is_ended(home: Home) -> None:
    flags = ("--device", "reference", "--max-ctx", "16")
    done = home.llmd("bench", "serve", "--model", "tiny", *SHORT, "--token-ids", "--json", "--", *flags)
    found = json.loads(done.stdout)
    assert (done.returncode, found["model_id"]) == (0, "tiny")
    assert found["total_output_tokens"] == 4 * 4  # 12 tokens of the prompt leave 4 of the window
    assert home.llmd("ps").returncode == 6


def test_a_daemon_of_its_own_reads_the_same_file_of_settings(home: Home) -> None:
    (home.folder / "mine.toml").write_text('[engine]\ndevice = "reference"\nmax_ctx = 16\n')
    config = ("--config", str(home.folder / "mine.toml"))
    found = home.json("bench", "serve", "--model", "tiny", *SHORT, "--token-ids", *config)
    assert found["total_output_tokens"] == 4 * 4


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_shows_what_there_is_and_ends_the_daemon_of_its_own(
    home: Home, number: signal.Signals
) -> None:
    arguments = ("bench", "serve", "--model", "tiny", "--input-len", "12", "--output-len", "5")
    endless = ("--num-prompts", "100000", "--max-concurrency", "2", "--token-ids")
    device = ("--", "--device", "reference")
    with terminal((*LLMD, *arguments, *endless, *device), home.environment) as shell:
        shell.wait_for("/100000 requests")
        own = children(shell.process.pid)
        shell.process.send_signal(number)
        assert shell.end() == 130
    assert "of 100000 requests" in shell.shown
    assert f"{'Failed requests:':<40} 0" in shell.shown
    assert own
    assert not any(Path(f"/proc/{pid}").exists() for pid in own)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "--base-url"),
        (
            ("--base-url", "http://127.0.0.1:1", "--", "--slots", "3"),
            "'--slots 3' applies only to a temporary daemon",
        ),
    ],
)
def test_it_must_be_clear_what_is_measured(llmd: Llmd, arguments: tuple[str, ...], said: str) -> None:
    done = llmd("bench", "serve", *arguments)
    assert done.code == 2
    assert said in done.err


def test_no_server_is_said_with_its_exit_code(llmd: Llmd) -> None:
    done = llmd("bench", "serve", "--base-url", "http://127.0.0.1:1")
    assert (done.code, "127.0.0.1:1" in done.err) == (6, True)
