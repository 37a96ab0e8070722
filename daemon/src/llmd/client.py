"""A client of a running daemon. It uses only the standard library for HTTP, so that commands start fast."""

from __future__ import annotations

import contextlib
import http.client
import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from typing import Any, Self

import msgspec
from msgspec import Struct

from llmd.api.errors import DaemonUnreachableError, LlmdError
from llmd.client_connection import Connection, connected, lost
from llmd.client_errors import error_of, not_llmd
from llmd.config import Address, Settings, TcpAddress, UnixAddress, load_settings, parse_address
from llmd.config.listening import listening_addresses

POLL_S = 0.1
DATA = b"data: "
DONE = b"[DONE]"


class Usage(Struct, frozen=True):
    """The tokens of a request."""

    prompt_tokens: int
    completion_tokens: int


class Answer(Struct, frozen=True):
    """An answer, or a piece of a streamed one."""

    text: str = ""
    reasoning: str = ""
    """What the model thought before it answered."""
    finish: str | None = None
    """``stop`` or ``length``, on a whole answer and on the last piece with text."""
    usage: Usage | None = None
    """On a whole answer and on the very last piece."""


class Client:
    """A client of one daemon, and a context manager that closes it.

    Each call opens its own connection, so threads may share a client. Without ``host`` it uses the daemon
    that ``LLMD_HOST`` names, else the first that answers: on the user's socket, the system's socket, then
    TCP. If the settings define where the user's daemon listens, it looks there instead.
    """

    def __init__(self, host: str | None = None, *, settings: Settings | None = None) -> None:
        """Raises `ConfigError` if ``host`` is not an address. No connection is opened yet."""
        settings = settings or load_settings({"host": host})
        self._timeout_s = settings.config.client.timeout_s
        self._addresses = candidates(settings, host)
        self._key = settings.config.client.api_key
        self._ca_file = settings.config.client.ca_file
        self._address: Address | None = None
        self._connections: set[Connection] = set()
        self._closed = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the client and end its unfinished streams. Closing again is allowed, any other use is not."""
        self._closed = True
        for connection in list(self._connections):
            connection.close()

    @property
    def address(self) -> Address:
        """The address at which the daemon answers.

        Raises:
            DaemonUnreachableError: no daemon answers; the message lists the addresses tried.
        """
        if self._address is None:
            self._address = find_daemon(self._addresses)
        return self._address

    def chat(self, messages: Sequence[Mapping[str, Any]], *, model: str = "", **fields: Any) -> Answer:
        """Answer a conversation. ``fields`` are those of ``/v1/chat/completions``, such as ``max_tokens``.

        Raises:
            LlmdError: the daemon refused or failed; the subclass says why.
        """
        body = {"model": model, "messages": messages, **fields}
        return _answer(self._request("POST", "/v1/chat/completions", body))

    def stream_chat(
        self, messages: Sequence[Mapping[str, Any]], *, model: str = "", **fields: Any
    ) -> Iterator[Answer]:
        """Answer like `chat`, in pieces. Closing the iterator ends the request."""
        return self._stream("/v1/chat/completions", {"model": model, "messages": messages, **fields})

    def count_tokens(self, messages: Sequence[Mapping[str, Any]], *, model: str = "", **fields: Any) -> int:
        """Return the number of tokens of a `chat` prompt; it may be longer than the context window."""
        body = {"model": model, "messages": messages, **fields}
        return int(self._request("POST", "/v1/chat/completions/input_tokens", body)["input_tokens"])

    def complete(self, prompt: str | Sequence[int], *, model: str = "", **fields: Any) -> Answer:
        """Continue a prompt. ``fields`` are those of ``/v1/completions``."""
        return _answer(self._request("POST", "/v1/completions", {"model": model, "prompt": prompt, **fields}))

    def stream_complete(
        self, prompt: str | Sequence[int], *, model: str = "", **fields: Any
    ) -> Iterator[Answer]:
        """Continue a prompt like `complete`, in pieces."""
        return self._stream("/v1/completions", {"model": model, "prompt": prompt, **fields})

    def embed(
        self,
        texts: str | Sequence[str] | Sequence[int] | Sequence[Sequence[int]],
        *,
        model: str = "",
        **fields: Any,
    ) -> list[list[float]]:
        """Return the embedding of each text or token list. ``fields`` are those of ``/v1/embeddings``."""
        data = self._request("POST", "/v1/embeddings", {"model": model, "input": texts, **fields})["data"]
        return [row["embedding"] for row in data]

    def models(self) -> list[dict[str, Any]]:
        """Return the entries of ``/v1/models``."""
        return list(self._request("GET", "/v1/models")["data"])

    def show(self, model: str) -> dict[str, Any]:
        """Return the ``/api/show`` response (Ollama's API) for a model, without loading it."""
        return self._request("POST", "/api/show", {"model": model})

    def ps(self) -> list[dict[str, Any]]:
        """Return the loaded models and their state."""
        return list(self._request("GET", "/llmd/ps")["models"])

    def pull(self, name: str) -> Generator[dict[str, Any], None, None]:
        """Make the daemon pull a model from its hub; yield the progress steps.

        Closing the iterator ends the pull unless another client waits for it. Downloaded data is kept.

        Raises:
            LlmdError: the hub or the disk failed; the subclass says why.
        """
        return self._steps("/llmd/pull", {"model": name})

    def load(
        self, model: str, *, keep_alive: str | float | None = None
    ) -> Generator[dict[str, Any], None, None]:
        """Make the daemon load a model; yield the progress steps. The last has the result.

        ``keep_alive`` is how long it stays loaded without requests, as Ollama writes it; None: unchanged.

        Raises:
            LlmdError: it cannot be loaded; the subclass says why.
        """
        return self._steps("/llmd/load", {"model": model, "keep_alive": keep_alive})

    def create(self, name: str, fields: Mapping[str, Any]) -> tuple[str, ...]:
        """Derive a model and return the names of fields without effect, such as ``parameters.num_gpu``.

        ``fields`` are those of Ollama's ``/api/create``, such as ``system``.
        """
        done = self._request("POST", "/api/create", {"model": name, "stream": False, **fields})
        return tuple(done.get("ignored", ()))

    def devices(self) -> list[dict[str, Any]]:
        """Return the devices that the daemon found."""
        return list(self._request("GET", "/llmd/devices")["devices"])

    def plugins(self) -> list[dict[str, Any]]:
        """Return the plugins with their states in the daemon."""
        return list(self._request("GET", "/llmd/plugins")["plugins"])

    def stop(self, model: str) -> None:
        """Unload a model.

        Raises:
            NotFoundError: it is not loaded.
        """
        self._request("POST", "/llmd/stop", {"model": model})

    def stop_daemon(self) -> None:
        """Make the daemon finish its running requests and exit."""
        self._request("POST", "/llmd/stop", {"daemon": True})

    def stopping(self) -> Generator[int, None, None]:
        """Stop the daemon like `stop_daemon`; yield how many requests it still answers, until it ends.

        It has ended when it closes the connection. No other is opened: a service manager would start the next
        daemon for it. Closing the iterator changes nothing: the daemon goes on answering and then ends.

        Raises:
            LlmdError: the daemon refused.
        """
        connection = self._connection()
        with self._open(connection):
            status, body = self._exchange(connection, "POST", "/llmd/stop", {"daemon": True})
            if status >= http.client.BAD_REQUEST and not _is_shutting_down(body):
                raise error_of(body, status)
            connection.auto_open = 0
            with contextlib.suppress(DaemonUnreachableError):
                while True:
                    _, body = self._exchange(connection, "GET", "/llmd/requests")
                    yield len(body.get("requests", ()))
                    time.sleep(POLL_S)

    def requests(self) -> list[dict[str, Any]]:
        """Return the requests that run or wait, oldest first, with their progress."""
        return list(self._request("GET", "/llmd/requests")["requests"])

    def cancel(self, request_id: str) -> None:
        """End a request of any client.

        Raises:
            NotFoundError: no request with this id runs or waits.
        """
        self._request("POST", "/llmd/cancel", {"request_id": request_id})

    def is_draining(self) -> bool:
        """Return whether the daemon answers its last requests and then ends."""
        connection = self._connection()
        with self._open(connection):
            _, body = self._exchange(connection, "GET", "/ready")
        return body.get("status") == "draining"

    def daemon(self) -> dict[str, Any]:
        """Return the daemon's ``version``, ``pid`` and ``log``: where its log goes."""
        return {name: value for name, value in self._request("GET", "/llmd/ps").items() if name != "models"}

    def reload(self) -> dict[str, Any]:
        """Make the daemon reload keys, certificate, settings and plugins; return what has changed."""
        return self._request("POST", "/llmd/reload", {})

    def version(self) -> str:
        """Return the version of the daemon."""
        return str(self._request("GET", "/version")["version"])

    def _request(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
        with self._reply(method, path, body) as reply:
            return _decoded(reply.read())

    def _steps(self, path: str, body: Mapping[str, Any]) -> Generator[dict[str, Any], None, None]:
        """Yield the lines of a reply that may end with an error."""
        with self._reply("POST", path, body) as reply:
            for line in reply:
                step = _decoded(line)
                if "error" in step:
                    raise error_of(step)
                yield step

    def _stream(self, path: str, body: Mapping[str, Any]) -> Iterator[Answer]:
        options = {"stream": True, "stream_options": {"include_usage": True}}
        with self._reply("POST", path, {**body, **options}) as reply:
            for line in reply:
                if line.startswith(DATA) and line[len(DATA) :].strip() != DONE:
                    chunk = _decoded(line[len(DATA) :])
                    if "error" in chunk:
                        raise error_of(chunk)
                    yield _answer(chunk)
                self._check_open()
            self._check_open()

    @contextlib.contextmanager
    def _reply(
        self, method: str, path: str, body: Mapping[str, Any] | None
    ) -> Iterator[http.client.HTTPResponse]:
        connection = self._connection()
        with self._open(connection):
            try:
                reply = self._begun(connection, method, path, body)
            except (OSError, http.client.HTTPException) as error:
                raise lost(self.address, error) from error
            with reply:
                if reply.status >= http.client.BAD_REQUEST:
                    raise error_of(_decoded(reply.read()), reply.status)
                try:
                    yield reply
                except (OSError, http.client.HTTPException) as error:
                    raise lost(self.address, error) from error

    def _connection(self) -> Connection:
        self._check_open()
        return Connection(self.address, self._timeout_s, self._ca_file)

    def _begun(
        self, connection: Connection, method: str, path: str, body: Mapping[str, Any] | None
    ) -> http.client.HTTPResponse:
        headers = {"Content-Type": "application/json"}
        if self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        content = None if body is None else msgspec.json.encode(body)
        connection.request(method, path, content, headers)
        return connection.getresponse()

    def _exchange(
        self, connection: Connection, method: str, path: str, body: Mapping[str, Any] | None = None
    ) -> tuple[int, dict[str, Any]]:
        """Send one of several requests of a connection; return the status and the body."""
        try:
            reply = self._begun(connection, method, path, body)
            return reply.status, _decoded(reply.read())
        except (OSError, http.client.HTTPException) as error:
            raise lost(self.address, error) from error

    @contextlib.contextmanager
    def _open(self, connection: Connection) -> Iterator[None]:
        """Close the connection after the block, or when the client is closed."""
        self._connections.add(connection)
        try:
            with contextlib.closing(connection):
                yield
        finally:
            self._connections.discard(connection)

    def _check_open(self) -> None:
        if self._closed:
            raise LlmdError("the client is closed", hint="create a new client")


def candidates(settings: Settings, host: str | None) -> tuple[Address, ...]:
    """Return the addresses of a daemon to try, likeliest first; only the named host if there is one.

    If the settings define where the user's daemon listens, those addresses replace the default ones.
    """
    named = host or settings.config.client.host
    if named:
        return (parse_address(named, "the host" if host else settings.origins["client.host"].source),)
    return own_addresses(settings)


def own_addresses(settings: Settings) -> tuple[Address, ...]:
    """Return the addresses where a daemon of this machine may listen, likeliest first."""
    listening = listening_addresses(settings)
    return (
        *(address for address in listening if isinstance(address, UnixAddress)),
        UnixAddress(settings.directories.system_socket),
        *(address for address in listening if isinstance(address, TcpAddress) and address.port),
    )


def find_daemon(addresses: Sequence[Address]) -> Address:
    """Return the first address that accepts connections.

    Raises:
        DaemonUnreachableError: no address does.
    """
    tried = []
    for address in addresses:
        try:
            connected(address).close()
        except OSError as error:
            tried.append(f"{address} ({error.strerror or error})")
        else:
            return address
    raise DaemonUnreachableError(
        f"no daemon answers at {', '.join(tried)}", hint="start one with `llmd serve`, or name it with --host"
    )


def _answer(body: Mapping[str, Any]) -> Answer:
    """Return the first choice of a response or a chunk."""
    usage = body.get("usage")
    counted = Usage(usage["prompt_tokens"], usage["completion_tokens"]) if usage else None
    if not body["choices"]:
        return Answer(usage=counted)
    choice = body["choices"][0]
    message = choice.get("message") or choice.get("delta") or {}
    return Answer(
        text=choice.get("text") or message.get("content") or "",
        reasoning=message.get("reasoning") or "",
        finish=choice["finish_reason"],
        usage=counted,
    )


def _is_shutting_down(body: Mapping[str, Any]) -> bool:
    error = body.get("error")
    return isinstance(error, dict) and error.get("code") == "shutting_down"


def _decoded(content: bytes) -> dict[str, Any]:
    try:
        return msgspec.json.decode(content, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise not_llmd() from error
