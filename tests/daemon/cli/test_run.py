"""`llmd run` answers one prompt on standard output."""

from __future__ import annotations

import io
import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest

from llmd.api.errors import DaemonUnreachableError, NotFoundError, RequestError
from llmd.cli import run as module
from llmd.cli.answer_writer import AnswerWriter
from llmd.cli.run import EXIT_INTERRUPTED, messages_of, whole_prompt
from llmd.cli.streaming import Printed
from tests.serving.home import LLMD, Home
from tests.serving.running import MODEL, RunningDaemon
from tests.serving.terminal import terminal

Llmd = Callable[..., Any]

GREEDY = ("--temp", "0", "-n", "6")


class Stdin(io.StringIO):
    """A standard input with a text, on a terminal or not."""

    def __init__(self, text: str = "", *, on_terminal: bool = False) -> None:
        super().__init__(text)
        self._on_terminal = on_terminal

    def isatty(self) -> bool:
        return self._on_terminal


def answered(llmd: Llmd, *arguments: str) -> str:
    """Return the exact text of an answer."""
    done = llmd("run", MODEL, "hello", "--json", *arguments)
    assert done.code == 0, done.err
    return str(json.loads(done.out)["text"])


def test_prints_the_answer_alone(asked: Llmd, daemon: RunningDaemon) -> None:
    expected = daemon.client().chat(messages_of(None, "hello"), model=MODEL, temperature=0, max_tokens=6).text
    done = asked("run", MODEL, "hello", *GREEDY)
    assert (done.code, done.err) == (0, "")
    assert done.out.rstrip("\n") == expected.rstrip("\n")


def test_json_is_one_object(asked: Llmd) -> None:
    document = json.loads(asked("run", MODEL, "hello", "--json", *GREEDY).out)
    assert document["schema"] == 1
    assert (document["model"], document["finish"]) == (MODEL, "length")
    assert document["usage"]["completion_tokens"] == 6
    assert document["usage"]["prompt_tokens"] > 5


def test_max_tokens_limits_the_answer(asked: Llmd) -> None:
    for count in (2, 9):
        document = json.loads(asked("run", MODEL, "hello", "--json", "--max-tokens", str(count)).out)
        assert document["usage"]["completion_tokens"] <= count


def test_a_seed_repeats_an_answer_and_another_does_not(asked: Llmd) -> None:
    first = answered(asked, "-n", "12", "--seed", "1")
    assert answered(asked, "-n", "12", "--seed", "1") == first
    assert answered(asked, "-n", "12", "--seed", "2") != first


@pytest.mark.parametrize("narrowed", [("--top-k", "1"), ("--top-p", "0.000001"), ("--min-p", "1")])
def test_narrowed_to_one_token_sampling_is_greedy(asked: Llmd, narrowed: tuple[str, str]) -> None:
    greedy = answered(asked, *GREEDY)
    assert answered(asked, "-n", "6", "--seed", "3", *narrowed) == greedy
    assert answered(asked, "-n", "6", "--seed", "3") != greedy


def test_instructions_stand_before_the_prompt(asked: Llmd) -> None:
    counted = [
        json.loads(asked("run", MODEL, "hello", "--json", *GREEDY, *extra).out)["usage"]["prompt_tokens"]
        for extra in ((), ("--system", "be brief"))
    ]
    assert counted[1] - counted[0] == len("<|im_start|>system\nbe brief\n") - len("<|im_start|>") + 2
    assert messages_of("be brief", "hello")[0] == {"role": "system", "content": "be brief"}


def test_statistics_go_to_standard_error(asked: Llmd) -> None:
    done = asked("run", MODEL, "hello", *GREEDY, "--stats")
    assert "answer 6 tokens" in done.err
    assert "tokens/s" in done.err
    assert "first text after" in done.err
    assert "tokens/s" not in done.out


def test_an_answer_that_was_cut_is_marked_on_a_terminal_and_in_the_statistics(
    asked: Llmd, home: Home, daemon: RunningDaemon
) -> None:
    assert asked("run", MODEL, "hello", *GREEDY, "--stats").err.endswith(", finish reason length\n")
    environment = home.environment | {"LLMD_HOST": f"unix:{daemon.socket}"}
    with terminal([*LLMD, "run", MODEL, "hello", *GREEDY], environment) as screen:
        assert screen.end() == 0
    assert screen.shown.endswith("[cut at max_tokens 6]\r\n")


def test_standard_input_is_added_to_the_prompt() -> None:
    assert whole_prompt("write a message", Stdin("a diff\n")) == "write a message\n\na diff"
    assert whole_prompt(None, Stdin("a question\n")) == "a question"
    assert whole_prompt("-", Stdin("a question\n")) == "a question"
    assert whole_prompt("-", Stdin("typed", on_terminal=True)) == "typed"
    assert whole_prompt("alone", Stdin(on_terminal=True)) == "alone"


def test_what_is_piped_in_reaches_the_model(asked: Llmd, monkeypatch: pytest.MonkeyPatch) -> None:
    greedy = answered(asked, *GREEDY)
    monkeypatch.setattr("sys.stdin", Stdin("hello\n"))
    assert json.loads(asked("run", MODEL, "--json", *GREEDY).out)["text"] == greedy


def test_bytes_that_are_no_utf_8_are_replaced(home: Home, daemon: RunningDaemon) -> None:
    assert whole_prompt("caf\udce9", Stdin(on_terminal=True)) == "caf\ufffd"
    done = subprocess.run(
        [*LLMD, "run", MODEL, "--host", f"unix:{daemon.socket}", "-n", "1"],
        env=home.environment,
        input=b"caf\xe9",
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")


def test_no_prompt_on_a_terminal_is_none_and_elsewhere_an_error() -> None:
    assert whole_prompt(None, Stdin(on_terminal=True)) is None
    with pytest.raises(click.UsageError, match="no prompt"):
        whole_prompt(None, Stdin(" \n"))
    with pytest.raises(click.UsageError, match="no prompt"):
        whole_prompt(None, None)


def test_errors_of_the_daemon_have_their_exit_codes(asked: Llmd) -> None:
    done = asked("run", "nobody", "hello")
    assert (done.code, done.out) == (NotFoundError.exit_code, "")
    assert "no model nobody" in done.err
    assert asked("run", MODEL, "hello", "--temp", "9").code == RequestError.exit_code


def test_where_the_named_daemon_does_not_answer_it_ends_with_six(asked: Llmd, tmp_path: Path) -> None:
    done = asked("run", MODEL, "hello", "--host", f"unix:{tmp_path}/none.sock")
    assert (done.code, done.out) == (DaemonUnreachableError.exit_code, "")
    assert "none.sock" in done.err


def test_an_interrupted_answer_keeps_its_text_and_ends_with_130(
    asked: Llmd, monkeypatch: pytest.MonkeyPatch
) -> None:
    printed = Printed("half", "interrupted", None, None, 0.1, 0.2)

    def interrupted(_answers: object, writer: AnswerWriter) -> Printed:
        writer.write("half")
        writer.end()
        return printed

    monkeypatch.setattr(module, "print_answer", interrupted)
    done = asked("run", MODEL, "hello")
    assert (done.code, done.out) == (EXIT_INTERRUPTED, "half\n")


def test_a_directory_of_this_machine_is_loaded_by_the_daemon(asked: Llmd, daemon: RunningDaemon) -> None:
    directory = daemon.directories.models / MODEL
    assert json.loads(asked("run", str(directory), "hi", "--json", *GREEDY).out)["finish"] == "length"


def test_on_a_terminal_without_a_prompt_it_is_a_chat(home: Home, daemon: RunningDaemon) -> None:
    environment = home.environment | {"LLMD_HOST": f"unix:{daemon.socket}"}
    with terminal([*LLMD, "run", MODEL], environment) as screen:
        screen.wait_for("/help lists commands")
        screen.type("/exit\n")
        assert screen.end() == 0


def test_a_reader_that_leaves_ends_it_quietly(home: Home, daemon: RunningDaemon) -> None:
    environment = home.environment | {"LLMD_HOST": f"unix:{daemon.socket}"}
    with subprocess.Popen(
        [*LLMD, "run", MODEL, "hello", "-n", "400", "--temp", "0"],
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.read(1)
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait() == 1
