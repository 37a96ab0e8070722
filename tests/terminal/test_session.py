"""A session in a real terminal: ``llmd tui`` over a real daemon, with keys as a person presses them.

``make pictures`` runs it and puts its pictures into ``docs/pictures``.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from threading import Event

import pytest

from llmd.api.errors import LlmdError
from llmd.builtin.guide import guide_directory
from llmd.client import Client
from tests.serving.home import Home, make_home
from tests.serving.hub import Hub, Repository, running_hub
from tests.terminal.pictures import picture_of
from tests.terminal.tmux import COLUMNS, LIMIT_S, TMUX, Tmux, tmux

pytestmark = [
    pytest.mark.exhaustive,
    pytest.mark.timeout(600),
    pytest.mark.skipif(TMUX is None, reason="needs tmux"),
]

ROOT = Path(__file__).parents[2]
PICTURES = ROOT / ("docs" if os.environ.get("LLMD_UPDATE_PICTURES") else "build") / "pictures"
MODEL, SECOND = "example/helper", "example/second"
WEIGHTS = "model.safetensors"
CONTEXT_LEN = 8192
STREAMS = 12
COUNTED = ", ".join(map(str, range(1, 301)))


@pytest.fixture
def home(probes: Path) -> Iterator[Home]:
    """A home with a short path, which is readable in pictures, and no model but the built-in one."""
    with tempfile.TemporaryDirectory(prefix="llmd-") as folder:
        made = make_home(Path(folder), probes)
        shutil.rmtree(made.folder / "data" / "llmd" / "models")
        yield made


@pytest.fixture
def hub() -> Iterator[Hub]:
    """A hub with the built-in model with a longer context, and with one that has other weights."""
    with running_hub() as hub:
        for name in (MODEL, SECOND):
            hub.repositories[name] = Repository.of(guide_directory())
            (files,) = hub.repositories[name].commits.values()
            config = json.loads(files["config.json"]) | {"max_position_embeddings": CONTEXT_LEN}
            files["config.json"] = json.dumps(config).encode()
        files[WEIGHTS] = files[WEIGHTS][:-1] + bytes([files[WEIGHTS][-1] ^ 1])
        yield hub


@pytest.fixture
def terminal(home: Home, hub: Hub) -> Iterator[Tmux]:
    """A shell that knows the command ``llmd``, and a daemon that pulls from the hub."""
    commands = home.folder / "commands"
    commands.write_text(f'PS1="$ "\nllmd() {{ {sys.executable} -m llmd.cli.main "$@"; }}\n')
    served = Home(home.folder, home.environment | {"HF_ENDPOINT": hub.url})
    with served.serve(), tmux(home.folder, served.environment | {"ENV": str(commands)}) as terminal:
        yield terminal


def picture(terminal: Tmux, name: str) -> None:
    """Keep a picture of the screen."""
    PICTURES.mkdir(parents=True, exist_ok=True)
    (PICTURES / f"{name}.svg").write_text(picture_of(terminal.coloured(), columns=COLUMNS, title="llmd tui"))


def send(terminal: Tmux, text: str) -> None:
    """Type a message or a command, and send it once it is in the prompt."""
    terminal.type(text)
    terminal.wait_for(text)
    terminal.press("Enter")


def leave_prompt(terminal: Tmux) -> None:
    """Press Tab, so that the next keys are no text."""
    terminal.press("Tab")
    terminal.wait_until(lambda shown: "⏎ Send" not in shown, "the prompt is left")


def without_notices(terminal: Tmux) -> None:
    """Wait until no notice covers a part of the screen."""
    terminal.wait_until(lambda shown: "▌" not in shown, "there is no notice")


def test_a_person_pulls_chats_watches_and_goes_on_after_a_crash(terminal: Tmux, home: Home, hub: Hub) -> None:
    opens(terminal)
    pulls(terminal)
    loads(terminal)
    watches_a_pull(terminal, hub)
    chats(terminal)
    branches(terminal)
    counts_while_the_engine_is_killed(terminal, home)
    watches_and_cancels(terminal, home)
    looks_at_the_other_screens(terminal)
    finds_the_crash_in_the_log(terminal)
    quits(terminal)


def opens(terminal: Tmux) -> None:
    terminal.wait_for("$")
    send(terminal, "llmd tui")
    terminal.wait_for("Write a message and press Enter.", "● 0 tok/s", "guide")


def pulls(terminal: Tmux) -> None:
    leave_prompt(terminal)
    terminal.press("2")
    terminal.wait_for("built in", "1 model")
    ask_for_pull(terminal, MODEL)
    terminal.wait_for(f"› {MODEL}", "2 models", "unloaded")


def ask_for_pull(terminal: Tmux, name: str) -> None:
    terminal.press("p")
    terminal.wait_for("Pull a model")
    send(terminal, name)


def loads(terminal: Tmux) -> None:
    terminal.press("l")
    terminal.wait_for("● loaded")


def watches_a_pull(terminal: Tmux, hub: Hub) -> None:
    without_notices(terminal)
    hub.slow.add(WEIGHTS)
    ask_for_pull(terminal, SECOND)
    terminal.wait_until(
        lambda shown: re.search(rf"[2-9]\d%.*{WEIGHTS}", shown) is not None, "a part is there"
    )
    picture(terminal, "models")
    hub.slow.clear()
    terminal.wait_for("3 models")
    terminal.press("Home")
    terminal.wait_for(f"› {MODEL}")


def chats(terminal: Tmux) -> None:
    terminal.press("Enter")
    terminal.wait_for("Message, or / for commands")
    send(terminal, "How do I see my devices?")
    terminal.wait_for("llmd devices lists", " tokens · ", " · first after ")


def branches(terminal: Tmux) -> None:
    """Ask in another way, and look at both branches."""
    leave_prompt(terminal)
    terminal.press("Up")
    terminal.wait_for("█ You")
    terminal.press("e")
    terminal.wait_for("Editing a message")
    send(terminal, " And how fast is each?")
    terminal.wait_for("‹ 2/2 ›", " tokens · ", " · first after ")
    leave_prompt(terminal)
    terminal.press("Up")
    terminal.wait_for("█ You")
    terminal.press("Left")
    terminal.wait_for("‹ 1/2 ›", "llmd devices lists")
    terminal.press("Right")
    terminal.wait_for("‹ 2/2 ›", f"/{CONTEXT_LEN} tokens", "e Edit")
    without_notices(terminal)
    picture(terminal, "chat")


def counts_while_the_engine_is_killed(terminal: Tmux, home: Home) -> None:
    """Stop an answer, have it written again, and kill the engine meanwhile: the answer goes on."""
    schema, written = home.folder / "count.json", home.folder / "chat.json"
    schema.write_text(json.dumps({"const": COUNTED}))
    terminal.press("Escape")
    terminal.wait_for("⏎ Send")
    send(terminal, f"/schema {schema}")
    terminal.wait_for("schema count.json")
    send(terminal, "Count to 300.")
    terminal.wait_for(" 20, ", "Esc stops it")
    terminal.press("Escape")
    assert "299, 300" not in terminal.wait_for("stopped")
    terminal.press("C-r")
    terminal.wait_for("‹ 2/2 ›", " 50, ", "Esc stops it")
    os.kill(engine(home), signal.SIGKILL)
    terminal.wait_for("299, 300", "tokens ·")
    send(terminal, f"/export {written}")
    terminal.wait_for("Written to")
    answer = json.loads(written.read_text())["messages"][-1]
    assert json.loads(answer["content"]["text"]) == COUNTED


def engine(home: Home) -> int:
    """Return the process of the only model's engine."""
    return int(home.loaded()["engine_pid"])


def watches_and_cancels(terminal: Tmux, home: Home) -> None:
    leave_prompt(terminal)
    without_notices(terminal)
    with busy(home) as cancelled:
        terminal.press("4")
        terminal.wait_for("Cancel request", "waiting for a free slot")
        terminal.wait_until(lambda shown: shown.count("decode") >= 8, "several streams run")
        picture(terminal, "monitor")
        terminal.press("5")
        terminal.wait_for("A mark is", "palette")
        picture(terminal, "kv")
        terminal.press("4")
        terminal.wait_for("Cancel request", "decode")
        assert not cancelled.is_set()
        terminal.press("x")
        terminal.wait_for(" cancelled ")
        assert cancelled.wait(LIMIT_S)


@contextmanager
def busy(home: Home) -> Iterator[Event]:
    """Stream many answers until the block ends. The event is set once one of them was cancelled."""
    client = Client(f"unix:{home.socket}")
    done, cancelled = Event(), Event()

    def stream(number: int) -> None:
        question = [{"role": "user", "content": f"Tell me about device {number}."}]
        while not done.is_set():
            try:
                for _ in client.stream_chat(
                    question, model=MODEL, max_tokens=CONTEXT_LEN // 4, ignore_eos=True
                ):
                    if done.is_set():
                        return
            except LlmdError:
                cancelled.set()

    with ThreadPoolExecutor(STREAMS) as pool:
        for number in range(STREAMS):
            pool.submit(stream, number)
        try:
            yield cancelled
        finally:
            done.set()


def looks_at_the_other_screens(terminal: Tmux) -> None:
    for key, name, texts in (
        ("3", "devices", ("Layer map", "GFLOP/s", "layers")),
        ("6", "plugins", ("Copy fix", "PROVIDES")),
    ):
        terminal.press(key)
        terminal.wait_for("palette", *texts)
        without_notices(terminal)
        picture(terminal, name)


def finds_the_crash_in_the_log(terminal: Tmux) -> None:
    terminal.press("7")
    terminal.wait_for("Follow", "palette")
    terminal.press("/")
    terminal.wait_for("Show only lines")
    send(terminal, "engine")
    terminal.wait_for("engine_died", "Follow")
    picture(terminal, "logs")


def quits(terminal: Tmux) -> None:
    """Leave; the terminal is as it was before."""
    terminal.press("C-q")
    terminal.wait_until(lambda shown: shown.rstrip().endswith("$"), "the shell asks for a command")
    modes = ("alternate_on", "cursor_flag", "mouse_any_flag", "bracketed_paste_flag", "keypad_flag")
    assert [terminal.mode(name) for name in modes][:3] == ["0", "1", "0"]
    send(terminal, "echo still here")
    terminal.wait_for("\nstill here")
