"""Every call of the library against a real daemon."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from llmd.config.keys import KeyFile
from tests.bindings.building import Probe
from tests.serving.model import CONTEXT_LEN, TURN_END
from tests.serving.running import EMBEDDER, MODEL, RunningDaemon, directories_below, running_daemon

OK, CANCELLED, BAD_ARGUMENT, UNREACHABLE, DENIED, NOT_FOUND, REJECTED = 0, 1, 2, 5, 7, 8, 9
TEXT, REASONING, TOOL_CALL, FINISH, USAGE = range(1, 6)
HELLO = ("option", "model", MODEL, "message", "user", "Hello")
GREEDY = ("option", "temperature", "0", "option", "max_tokens", "9")
ENDLESS = ("option", "ignore_eos", "true", "option", "max_tokens", "400")


def report(daemon: RunningDaemon) -> dict[str, Any]:
    """Counters of the engine of the model that generates."""
    (counters,) = [row["report"] for row in daemon.client().ps() if row["name"] == MODEL]
    assert isinstance(counters, dict)
    return counters


def text_of(step: dict[str, object]) -> str:
    pieces = step["pieces"]
    assert isinstance(pieces, list)
    return "".join(text for kind, text in pieces if kind == TEXT)


@pytest.mark.parametrize("place", ["unix", "tcp", "url"])
def test_streams_the_answer_that_other_clients_get(place: str, probe: Probe, daemon: RunningDaemon) -> None:
    where = {"unix": f"unix:{daemon.socket}", "tcp": str(daemon.tcp), "url": daemon.url}[place]
    whole = daemon.client().chat(
        [{"role": "user", "content": "Hello"}], model=MODEL, temperature=0, max_tokens=9
    )
    step = probe.ask(where, *HELLO, *GREEDY, "chat")
    assert step["status"] == OK, step
    assert text_of(step) == step["answer"] == whole.text
    assert [text for kind, text in step["pieces"] if kind == FINISH] == [step["finish"]] == ["length"]
    assert whole.usage is not None
    assert (step["prompt_tokens"], step["answer_tokens"]) == (whole.usage.prompt_tokens, 9)
    assert '"completion_tokens":9' in step["pieces"][-1][1]
    assert [kind for kind, _ in step["pieces"]][-2:] == [FINISH, USAGE]


def test_continues_a_text(probe: Probe, daemon: RunningDaemon, address: str) -> None:
    whole = daemon.client().complete('Hi\n"there"', model=MODEL, temperature=0, max_tokens=9)
    step = probe.ask(address, *HELLO, *GREEDY, "complete", 'Hi\n"there"')
    assert (step["status"], step["answer"], text_of(step)) == (OK, whole.text, whole.text)


def test_a_request_may_be_used_again(probe: Probe, address: str) -> None:
    calls = ("set", "address", address, "connect", "new", *HELLO, *GREEDY, "chat", "chat", "clear")
    steps = probe.run(*calls, "message", "user", "Hello", "chat", "complete", "x", "chat")
    chats = [step["answer"] for step in steps if step["call"] == "chat"]
    assert len(chats) == 4
    assert len(set(chats)) == 1


def test_the_callback_ends_an_answer(probe: Probe, address: str) -> None:
    calls = (
        "set",
        "address",
        address,
        "connect",
        "new",
        *HELLO,
        *ENDLESS,
        "stop-after",
        "3",
        "chat",
        "models",
    )
    *_, chat, models = probe.run(*calls)
    assert (chat["status"], chat["message"]) == (CANCELLED, "the call was cancelled")
    assert len(chat["pieces"]) == 3
    assert models["status"] == OK


def test_another_thread_ends_an_answer(probe: Probe, daemon: RunningDaemon, address: str) -> None:
    calls = ("set", "address", address, "connect", "new", *HELLO, *ENDLESS, "cancel-after", "2", "chat")
    *_, chat, again = probe.run(*calls, "cancel-after", "-1", "option", "max_tokens", "2", "chat")[-4::3]
    assert chat["status"] == CANCELLED
    assert 2 <= len(chat["pieces"]) < 400
    assert again["status"] == OK


@pytest.mark.parametrize("how", ["stop-after", "cancel-after"])
def test_the_daemon_drops_a_cancelled_request(
    how: str, probe: Probe, daemon: RunningDaemon, address: str
) -> None:
    before = report(daemon)["output_tokens"]
    calls = ("set", "address", address, "connect", "new", *HELLO, *ENDLESS, how, "2", "chat")
    with probe.waiting(*calls):  # the process and its handles stay
        while report(daemon)["running"]:
            pass
        assert report(daemon)["output_tokens"] < before + 400


def test_a_cancel_before_the_call_ends_it_and_not_the_next(probe: Probe, address: str) -> None:
    calls = ("set", "address", address, "connect", "new", *HELLO, *GREEDY, "cancel", "cancel", "chat", "chat")
    *_, first, second = probe.run(*calls)
    assert (first["status"], first["pieces"]) == (CANCELLED, [])
    assert second["status"] == OK


def test_embeds_texts_bit_for_bit(probe: Probe, daemon: RunningDaemon, address: str) -> None:
    vectors = daemon.client().embed(["Hello", "Hi"], model=EMBEDDER)
    step = probe.ask(address, "option", "model", EMBEDDER, "embed", "Hello|Hi")
    assert step["status"] == OK, step
    assert step["vectors"] == [pytest.approx(vector, rel=1e-8, abs=0) for vector in vectors]
    step = probe.ask(address, "option", "model", EMBEDDER, "option", "dimensions", "4", "embed", "Hello")
    assert len(step["vectors"][0]) == 4


def test_a_model_that_generates_does_not_embed(probe: Probe, address: str) -> None:
    step = probe.ask(address, "option", "model", MODEL, "embed", "Hello")
    assert (step["status"], step["vectors"]) == (REJECTED, [])


def test_text_becomes_tokens_and_text_again(probe: Probe, address: str) -> None:
    text = "Grüße, 你好 👋"
    calls = (
        "set",
        "address",
        address,
        "connect",
        "new",
        "option",
        "model",
        MODEL,
        "tokenize",
        text,
        "detokenize",
    )
    *_, tokens, back = probe.run(*calls)
    assert tokens["tokens"] == list(text.encode())
    assert back["answer"] == text


def test_counts_the_tokens_of_a_conversation(probe: Probe, daemon: RunningDaemon, address: str) -> None:
    conversation = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hello"}]
    step = probe.ask(address, "option", "model", MODEL, "message", "system", "Be brief.", *HELLO, "count")
    assert step["count"] == daemon.client().count_tokens(conversation, model=MODEL)
    as_json = '{"role": "user", "content": [{"type": "text", "text": "Hello"}]}'
    step = probe.ask(
        address, "option", "model", MODEL, "message", "system", "Be brief.", "json", as_json, "count"
    )
    assert step["count"] == daemon.client().count_tokens(conversation, model=MODEL)


def test_lists_the_models(probe: Probe, address: str) -> None:
    step = probe.last("set", "address", address, "connect", "models")
    assert sorted(step["models"]) == [EMBEDDER, MODEL]


def test_text_may_be_any_unicode(probe: Probe, daemon: RunningDaemon, address: str) -> None:
    text = 'a "quoted" \\ \t\r\n\x01\x7f é 你 \U0001f44b'
    step = probe.ask(address, "option", "model", MODEL, "message", "user", text, "count")
    assert step["count"] == daemon.client().count_tokens([{"role": "user", "content": text}], model=MODEL)


def test_half_characters_never_reach_the_callback(probe: Probe, address: str) -> None:
    """The random model's vocabulary is bytes, so most of what it generates is not UTF-8 by itself."""
    step = probe.ask(address, *HELLO, *ENDLESS, "option", "max_tokens", "60", "option", "seed", "1", "chat")
    assert step["status"] == OK  # the output was decoded strictly
    assert text_of(step) == step["answer"]
    assert "�" in step["answer"]


@pytest.mark.parametrize("text", [b"\xff", b"a\xc3", b"\xed\xa0\x80", b"\xc0\x80"])
def test_text_that_is_not_utf8_is_refused(text: bytes, probe: Probe, address: str) -> None:
    step = probe.ask(address, "message", "user", text)
    assert (step["status"], step["hint"]) == (BAD_ARGUMENT, "convert the text to UTF-8")
    assert f"not UTF-8 at byte {text.index(text.lstrip(b'a')[0])}" in step["message"]


def test_errors_keep_their_meaning(probe: Probe, address: str) -> None:
    step = probe.ask(address, *HELLO, "option", "model", "nobody", "chat")
    assert (step["status"], step["answer"]) == (NOT_FOUND, "")
    assert "no model nobody" in step["message"]
    assert "llmd_models" in step["hint"]
    step = probe.ask(address, "option", "temperature", "9", *HELLO, "chat")
    assert step["status"] == REJECTED
    assert "temperature must be between 0" in step["message"]
    step = probe.ask(address, *HELLO, "message", "user", "x" * CONTEXT_LEN, "chat")
    assert step["status"] == REJECTED
    assert str(CONTEXT_LEN) in step["message"]
    step = probe.ask(address, "option", "model", MODEL, "chat")
    assert step["status"] == REJECTED


def test_without_a_daemon_every_place_is_named(probe: Probe, clean_environment: dict[str, str]) -> None:
    step = probe.last("connect")
    assert step["status"] == UNREACHABLE
    home = clean_environment["HOME"]
    places = f"unix:{home}/.local/state/llmd/run/llmd.sock, unix:/run/llmd/llmd.sock, 127.0.0.1:8642"
    assert step["message"] == f"no daemon answers at {places}"
    assert "llmd serve" in step["hint"]


def test_finds_the_daemon_as_commands_do(probe: Probe, daemon: RunningDaemon, address: str) -> None:
    def found(**variables: str) -> dict[str, object]:
        (step,) = Probe(probe.command, {**probe.environment, **variables}).run("connect")
        return step

    assert found(LLMD_HOST=daemon.url)["status"] == OK
    (folder := daemon.socket.parent / "llmd").mkdir(exist_ok=True)
    (folder / "llmd.sock").symlink_to(daemon.socket)
    assert found(XDG_RUNTIME_DIR=str(daemon.socket.parent))["status"] == OK


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("https://localhost:1", "does not support TLS"),
        ("http://", "not an address"),
        ("http://a/b", "not an address"),
        ("localhost:99999", "not an address"),
        ("user@host", "not an address"),
        ("[::1", "not an address"),
        ("unix:", "has no path"),
        (f"unix:/{'x' * 200}", "the system allows 107"),
    ],
)
def test_addresses_that_cannot_be_used_say_why(text: str, message: str, probe: Probe) -> None:
    step = probe.last("set", "address", text, "connect")
    assert step["status"] == BAD_ARGUMENT
    assert message in step["message"]


def test_a_control_character_in_a_key_is_refused(probe: Probe) -> None:
    assert probe.last("set", "api_key", "a\r\nHost: b")["status"] == BAD_ARGUMENT
    bad = Probe(probe.command, {**probe.environment, "LLMD_API_KEY": "a\nb"})
    assert bad.last("connect")["status"] == BAD_ARGUMENT


def test_the_key_is_an_option_or_a_variable(probe: Probe, tmp_path: Path) -> None:
    with running_daemon(directories_below(tmp_path), models=(), require_key=True) as locked:
        key = KeyFile(locked.directories.keys).add("c")
        locked.client().reload()
        models = ("set", "address", locked.url, "connect", "models")
        assert probe.last("set", "api_key", key, *models)["status"] == OK
        by_variable = Probe(probe.command, {**probe.environment, "LLMD_API_KEY": key})
        assert by_variable.last(*models)["status"] == OK
        step = probe.last("set", "api_key", "llmd-wrong", *models)
        assert (step["status"], step["models"]) == (DENIED, [])
        assert "this API key is unknown" in step["message"]
        assert step["hint"] == "set the option api_key, or LLMD_API_KEY"
        step = probe.last(*models)
        assert (step["status"], "an API key is required" in step["message"]) == (DENIED, True)


def test_tokens_of_the_vocabulary_end_a_turn(probe: Probe, address: str) -> None:
    step = probe.ask(address, "option", "model", MODEL, "tokenize", "<|im_end|>")
    assert step["tokens"] == [TURN_END]
