from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from llmd.api.errors import (
    ConfigError,
    ContextLengthError,
    DaemonUnreachableError,
    LlmdError,
    NotFoundError,
    RequestError,
)
from llmd.client import Client, candidates, find_daemon
from llmd.client_errors import EXIT_REFUSED
from llmd.config import Settings, TcpAddress, UnixAddress, load_settings
from llmd.config.addresses import DEFAULT_TCP
from tests.serving.model import CONTEXT_LEN, TURN_END, write_embedding_model, write_model
from tests.serving.running import EMBEDDER, MODEL, RunningDaemon, directories_below, running_daemon

MESSAGES = [{"role": "user", "content": "Hello"}]


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningDaemon]:
    directories = directories_below(tmp_path_factory.mktemp("client"))
    write_model(directories.models / MODEL)
    with running_daemon(directories) as running:
        yield running


@pytest.fixture(params=["tcp", "unix"])
def client(request: pytest.FixtureRequest, daemon: RunningDaemon) -> Client:
    host = daemon.url if request.param == "tcp" else f"unix:{daemon.socket}"
    return Client(host, settings=load_settings(environ={}, directories=daemon.directories))


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return load_settings(environ={}, directories=directories_below(tmp_path))


def test_streams_the_text_of_the_whole_answer(client: Client) -> None:
    whole = client.chat(MESSAGES, model=MODEL, max_tokens=9, temperature=0)
    pieces = list(client.stream_chat(MESSAGES, model=MODEL, max_tokens=9, temperature=0))
    assert "".join(piece.text for piece in pieces) == whole.text
    assert pieces[-1].usage == whole.usage
    assert [piece.finish for piece in pieces if piece.finish] == [whole.finish] == ["length"]


def test_counts_the_tokens_of_a_conversation_as_they_are_answered(client: Client) -> None:
    usage = client.chat(MESSAGES, model=MODEL, max_tokens=1).usage
    assert usage is not None
    assert client.count_tokens(MESSAGES, model=MODEL) == usage.prompt_tokens


def test_a_prompt_that_is_too_long_says_both_lengths(client: Client) -> None:
    messages = [{"role": "user", "content": "x" * CONTEXT_LEN}]
    with pytest.raises(ContextLengthError) as caught:
        list(client.stream_chat(messages, model=MODEL))
    assert caught.value.context_len == CONTEXT_LEN
    assert caught.value.prompt_len == client.count_tokens(messages, model=MODEL) > CONTEXT_LEN
    assert caught.value.param == "messages"


def test_completes_text_and_token_ids_alike(client: Client) -> None:
    whole = client.complete("Hi", model=MODEL, max_tokens=5, temperature=0)
    ids = client.complete([*b"Hi"], model=MODEL, max_tokens=5, temperature=0)
    streamed = client.stream_complete("Hi", model=MODEL, max_tokens=5, temperature=0)
    assert whole.text == ids.text == "".join(piece.text for piece in streamed)


def test_embeds_texts_and_token_ids_alike(tmp_path: Path) -> None:
    directories = directories_below(tmp_path)
    write_embedding_model(directories.models / EMBEDDER)
    with running_daemon(directories, models=(EMBEDDER,)) as running:
        client = running.client()
        first, second = client.embed(["Hello", "Hi"], model=EMBEDDER)
        assert client.embed("Hello", model=EMBEDDER) == [first]
        assert client.embed([*b"Hi", TURN_END], model=EMBEDDER) == [second]
        assert len(client.embed("Hi", model=EMBEDDER, dimensions=4)[0]) == 4


def test_tells_what_the_daemon_has(client: Client) -> None:
    assert [model["id"] for model in client.models()] == [MODEL]
    assert [row["name"] for row in client.ps()] == [MODEL]
    assert "reference" in [device["name"] for device in client.devices()]
    assert "openai" in [plugin["name"] for plugin in client.plugins()]
    assert client.show(MODEL)["capabilities"] == ["completion", "tools"]
    assert client.version()


def test_leaving_a_client_ends_its_streams_and_it_cannot_be_used_again(daemon: RunningDaemon) -> None:
    with daemon.client() as client:
        stream = client.stream_complete("a b c", model=MODEL, max_tokens=200, ignore_eos=True)
        assert next(stream).text
    with pytest.raises(LlmdError, match="the client is closed"):
        list(stream)
    client.close()
    with pytest.raises(LlmdError, match="the client is closed"):
        client.version()


def test_errors_of_the_daemon_keep_their_meaning(client: Client) -> None:
    with pytest.raises(NotFoundError, match="no model nobody"):
        client.chat(MESSAGES, model="nobody")
    with pytest.raises(RequestError, match="temperature") as caught:
        client.chat(MESSAGES, model=MODEL, temperature=9)
    assert caught.value.param == "temperature"
    with pytest.raises(NotFoundError, match="not loaded"):
        client.stop("nobody")
    with pytest.raises(LlmdError, match="nobody"):
        client.show("nobody")


def test_looks_for_the_users_socket_then_the_systems_then_tcp(settings: Settings) -> None:
    directories = settings.directories
    assert candidates(settings, None) == (
        UnixAddress(directories.user_socket),
        UnixAddress(directories.system_socket),
        DEFAULT_TCP,
    )
    environ = load_settings(environ={"LLMD_HOST": "box:1"}, directories=directories)
    assert candidates(environ, None) == (TcpAddress("box", 1),)
    assert candidates(environ, "http://other:2") == (TcpAddress("other", 2),)


def test_looks_where_settings_say_that_the_daemon_listens(settings: Settings) -> None:
    environ = {"LLMD_ADDR": "127.0.0.1:7,127.0.0.1:0,unix:/run/mine.sock"}
    mine = load_settings(environ=environ, directories=settings.directories)
    assert candidates(mine, None) == (
        UnixAddress(Path("/run/mine.sock")),
        UnixAddress(settings.directories.system_socket),
        TcpAddress("127.0.0.1", 7),
    )


def test_takes_the_first_address_where_somebody_listens(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "second"))
        listening.listen()
        second = UnixAddress(tmp_path / "second")
        assert find_daemon([UnixAddress(tmp_path / "first"), second, DEFAULT_TCP]) == second


def test_names_every_place_that_was_tried_and_the_fix(tmp_path: Path) -> None:
    places = [UnixAddress(tmp_path / "first"), UnixAddress(tmp_path / "second")]
    with pytest.raises(DaemonUnreachableError, match=r"first .*second") as caught:
        find_daemon(places)
    assert "llmd serve" in caught.value.hint
    assert caught.value.exit_code == 6


def test_refuses_a_host_that_is_no_address(settings: Settings) -> None:
    with pytest.raises(ConfigError, match="the host is 'ftp://box'"):
        Client("ftp://box", settings=settings)


@pytest.mark.parametrize(
    ("reply", "error", "message"),
    [
        (b"HTTP/1.1 404 Not Found\r\nContent-Length: 5\r\n\r\nhello", LlmdError, "not an llmd daemon"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", LlmdError, "not an llmd daemon"),
        (b'HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n"\xe9"', LlmdError, "not an llmd daemon"),
        (b"", DaemonUnreachableError, "was lost"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n{", DaemonUnreachableError, "was lost"),
    ],
)
def test_strangers_and_lost_daemons_are_told_apart(
    settings: Settings, reply: bytes, error: type[LlmdError], message: str
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        stranger = threading.Thread(target=answer, args=(server, reply), name="stranger")
        stranger.start()
        with pytest.raises(error, match=message):
            Client(f"127.0.0.1:{port}", settings=settings).version()
        stranger.join()


def test_what_the_daemon_does_not_allow_ends_commands_with_four(settings: Settings) -> None:
    body = b'{"error": {"type": "permission_error", "code": "local_only", "message": "not from there"}}'
    reply = b"HTTP/1.1 403 Forbidden\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)
    with socket.create_server(("127.0.0.1", 0)) as server:
        refusing = threading.Thread(target=answer, args=(server, reply), name="refusing daemon")
        refusing.start()
        with pytest.raises(LlmdError, match="may manage") as caught:
            Client(f"127.0.0.1:{server.getsockname()[1]}", settings=settings).ps()
        refusing.join()
    assert caught.value.exit_code == EXIT_REFUSED


def answer(server: socket.socket, reply: bytes) -> None:
    """Accept the probing connection, then the request, and answer the request."""
    server.accept()[0].close()
    connection = server.accept()[0]
    with connection:
        connection.recv(65536)
        connection.sendall(reply)
