"""`llmd chat` on a terminal and with piped input."""

from __future__ import annotations

import io
import json
import re
import stat
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from llmd.api.errors import DaemonUnreachableError
from llmd.cli.chat import DEFAULT_MODEL, default_model
from llmd.client import Client
from tests.serving.home import LLMD, Home
from tests.serving.model import CONTEXT_LEN, write_model
from tests.serving.running import MODEL, RunningDaemon, directories_below, running_daemon
from tests.serving.terminal import terminal

Llmd = Callable[..., Any]


def typed(monkeypatch: pytest.MonkeyPatch, *lines: str) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("".join(f"{line}\n" for line in lines)))


def test_answers_line_by_line_until_the_end_of_input(asked: Llmd, monkeypatch: pytest.MonkeyPatch) -> None:
    typed(monkeypatch, "hello", "and now?")
    done = asked("chat", MODEL, "--temp", "0", "-n", "5", "--stats")
    assert done.code == 0
    assert done.err.count("answer 5 tokens") == 2


def test_the_only_loaded_model_is_the_default(asked: Llmd, monkeypatch: pytest.MonkeyPatch) -> None:
    typed(monkeypatch, "/exit")
    assert asked("chat").err.startswith(f"{MODEL}; ")


def test_bytes_that_are_no_utf_8_do_not_end_the_conversation(
    asked: Llmd, monkeypatch: pytest.MonkeyPatch
) -> None:
    piped = io.TextIOWrapper(io.BytesIO(b"/system caf\xe9\ncaf\xe9\n"), encoding="utf-8", errors="strict")
    monkeypatch.setattr("sys.stdin", piped)
    done = asked("chat", MODEL, "--temp", "0", "-n", "5", "--stats")
    assert done.code == 0
    assert "caf\ufffd" in done.err
    assert "answer 5 tokens" in done.err


def test_else_the_guide_is_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = {"name": "a", "status": "loaded"}, {"name": "b", "status": "loading"}
    for rows in ([], [a, b], [{"name": "a", "status": "failed"}]):
        monkeypatch.setattr(Client, "ps", lambda _, rows=rows: rows)
        assert default_model(Client("127.0.0.1:1")) == DEFAULT_MODEL == "guide"


def test_options_reach_the_first_question(asked: Llmd, monkeypatch: pytest.MonkeyPatch) -> None:
    typed(monkeypatch, "/set", "/system", "/exit")
    done = asked("chat", MODEL, "--system", "be brief", "--top-k", "4", "--seed", "1")
    assert done.err.splitlines()[1:] == ["top_k 4", "seed 1", "be brief"]


def test_without_a_daemon_and_leave_to_start_one_it_ends_with_six(home: Home) -> None:
    done = home.llmd("chat", MODEL, "--no-start")
    assert done.returncode == DaemonUnreachableError.exit_code
    assert str(home.socket) in done.stderr


def test_tab_completes_commands_also_where_no_history_is_kept(home: Home, daemon: RunningDaemon) -> None:
    environment = home.environment | {"LLMD_HOST": f"unix:{daemon.socket}"}
    with terminal([*LLMD, "chat", MODEL, "--no-history"], environment) as screen:
        screen.wait_for("> ")
        screen.type("/sy\t\n")
        screen.wait_for("there is no system prompt")
        screen.type("/by\t\n")
        assert screen.end() == 0


def test_a_saved_conversation_goes_on_in_another_process(home: Home, daemon: RunningDaemon) -> None:
    arguments = ("chat", MODEL, "--host", f"unix:{daemon.socket}", "--temp", "0", "-n", "5")
    first = home.llmd(*arguments, "--stats", stdin="hello\n/save talk\n")
    second = home.llmd(*arguments, "--stats", stdin="/load talk\n/show\nand now?\n")
    assert "saved 1 turn as talk" in first.stderr
    assert "loaded 1 turn\n" in second.stderr
    assert "capabilities   completion, tools\n" in second.stderr
    assert f"context        {CONTEXT_LEN} tokens\n" in second.stderr
    prompts = [int(re.findall(r"prompt (\d+) tokens", done.stderr)[0]) for done in (first, second)]
    assert prompts[1] > prompts[0] + len("and now?")


def test_a_model_that_does_not_think_is_not_told_to(asked: Llmd, monkeypatch: pytest.MonkeyPatch) -> None:
    typed(monkeypatch, "/think on", "/exit")
    assert asked("chat", MODEL).err.endswith(
        f"{MODEL} cannot think before it answers, so /think has no effect\n"
    )


def test_keeps_a_private_history_of_what_is_typed(home: Home, daemon: RunningDaemon) -> None:
    environment = home.environment | {"LLMD_HOST": f"unix:{daemon.socket}"}
    path = home.state / "chat_history"
    for arguments in (["--no-history"], []):
        assert not path.exists()
        with terminal([*LLMD, "chat", MODEL, *arguments], environment) as screen:
            screen.wait_for("> ")
            screen.type("/help\n")
            screen.wait_for("/think on|off")
            screen.type("/exit\n")
            assert screen.end() == 0
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert path.read_text().splitlines() == ["/help", "/exit"]


def test_a_full_conversation_goes_on_without_its_oldest_turns(home: Home, daemon: RunningDaemon) -> None:
    environment = home.environment | {"LLMD_HOST": f"unix:{daemon.socket}"}
    message = "x" * 100  # one token per character; three messages fit the window of 512, four do not
    with terminal([*LLMD, "chat", MODEL, "--temp", "0", "-n", "9"], environment) as screen:
        for _ in range(3):
            screen.wait_for("\n> ", after=len(screen.shown) - 4)
            screen.type(f"{message}\n")
            screen.wait_for("[cut at max_tokens 9]", after=len(screen.shown))
        for reply, outcome in (
            ("n", "the message was not sent; /reset clears the whole conversation"),
            ("", "dropped the oldest turn"),
        ):
            screen.type(f"{message}\n")
            screen.wait_for("drop the oldest turn of 3 and send it? [Y/n] ", after=len(screen.shown))
            screen.type(f"{reply}\n")
            screen.wait_for(outcome, after=len(screen.shown))
        screen.wait_for("[cut at max_tokens 9]", after=len(screen.shown))
        screen.type("/exit\n")
        assert screen.end() == 0
    assert (home.state / "chat_history").read_text().splitlines() == [message, "/exit"]


def test_an_answer_that_fills_the_window_says_so_and_sentences_are_wrapped(
    home: Home, daemon: RunningDaemon
) -> None:
    environment = home.environment | {"LLMD_HOST": f"unix:{daemon.socket}"}
    with terminal([*LLMD, "chat", MODEL, "--temp", "0"], environment, columns=40) as screen:
        screen.wait_for("> ")
        screen.type(f"{'x' * 470}\n")
        screen.wait_for("[cut: the context window is full; /reset clears the conversation]")
        screen.type("/dance\n")
        screen.wait_for("there is no command /dance; /help lists\r\nthem\r\n")


def test_what_is_piped_in_is_never_taken_for_an_answer_to_an_offer(
    asked: Llmd, monkeypatch: pytest.MonkeyPatch
) -> None:
    typed(monkeypatch, *["x" * 100] * 4, "y")
    done = asked("chat", MODEL, "--temp", "0", "-n", "9", "--stats")
    assert done.code == 0
    assert done.err.count("answer 9 tokens") == 4
    assert "the message was not sent; /reset clears the whole conversation" in done.err


def test_ctrl_c_ends_the_answer_and_twice_the_chat(home: Home, talkative: RunningDaemon) -> None:
    environment = home.environment | {"LLMD_HOST": f"unix:{talkative.socket}"}
    with terminal([*LLMD, "chat", MODEL], environment) as screen:
        screen.wait_for("> ")
        screen.type("hello\n")
        wait_until_running(talkative, 1)
        shown = len(screen.shown)
        screen.interrupt()
        wait_until_running(talkative, 0)
        screen.wait_for("\n> ", after=shown)
        shown = len(screen.shown)
        screen.interrupt()
        screen.wait_for("press Ctrl-C again or type /exit to leave\r\n> ", after=shown)
        screen.interrupt()
        assert screen.end() == 130


@pytest.fixture
def talkative(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningDaemon]:
    """A daemon whose answers outlast any test: no token ends them."""
    directories = directories_below(tmp_path_factory.mktemp("talkative"))
    model = write_model(directories.models / MODEL, context_len=1 << 15)
    config = json.loads((model / "config.json").read_text())
    del config["eos_token_id"]
    (model / "config.json").write_text(json.dumps(config))
    template = {"chat_template": "{% for m in messages %}{{ m.content }}{% endfor %}"}
    (model / "tokenizer_config.json").write_text(json.dumps(template))
    with running_daemon(directories, device="cpu") as running:
        yield running


def wait_until_running(daemon: RunningDaemon, count: int) -> None:
    """Poll until that many requests run; the time limit of the test bounds the wait."""
    while daemon.client().ps()[0]["report"]["running"] != count:
        pass
