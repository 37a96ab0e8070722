"""The decisions of a supervisor: events of one engine in, commands out. No I/O, no clock.

Tokens are the only state: every live request is kept with the tokens generated so far, and a new engine
gets both. If an engine dies again before a resubmitted request gained a token, it is restarted once for
each back-off. Then the live requests end with `EngineCrashedError` and the model has failed.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum, auto
from typing import Self

from msgspec import Struct, structs

from llmd.api.errors import EngineCrashedError, LlmdError
from llmd.api.messages import (
    Cancel,
    EmbedText,
    FromEngine,
    Loaded,
    Replanned,
    Shutdown,
    Submit,
    ToEngine,
    Vocabulary,
)
from llmd.api.results import BeamOutput, Embedded, Failed, Output, TextVector, TokenOutput
from llmd.engine.failures import error_of
from llmd.server.errors import UnavailableError

Request = Submit | EmbedText
BACKOFF_S = (0.5, 2.0)


class Start(Struct, frozen=True):
    """Start an engine after a delay."""

    after_s: float


class Send(Struct, frozen=True):
    message: ToEngine


class Deliver(Struct, frozen=True):
    """Hand a token, or the whole result of a request, to its reader. ``request_id`` is the reader's."""

    output: TokenOutput | BeamOutput | TextVector


class Fail(Struct, frozen=True):
    request_id: int
    error: LlmdError


Command = Start | Send | Deliver | Fail


class Phase(Enum):
    """The state of an engine."""

    LOADING = auto()
    READY = auto()
    FAILED = auto()
    CLOSED = auto()


class _Live(Struct):
    """A request that has not ended."""

    request: Request
    output: list[int]
    state: bytes
    engine_id: int | None = None
    """New for each submission, to recognise late tokens of an earlier one; None while no engine runs it."""
    paused: bool = False

    @classmethod
    def of(cls, request: Request) -> Self:
        if isinstance(request, EmbedText):
            return cls(request, [], b"")
        return cls(request, list(request.output), request.state)

    def message(self, engine_id: int) -> Request:
        """The message for an engine, including the tokens that earlier engines generated."""
        if isinstance(self.request, EmbedText):
            return structs.replace(self.request, request_id=engine_id)
        return structs.replace(
            self.request, request_id=engine_id, output=tuple(self.output), state=self.state
        )


class Supervision:
    """The state of one engine and its requests."""

    def __init__(self, model: str, backoff_s: tuple[float, ...] = BACKOFF_S) -> None:
        self.phase = Phase.LOADING
        self.loaded: Loaded | None = None
        self.error: LlmdError | None = None
        self.restarts = 0
        self.lost_devices: tuple[str, ...] = ()
        self._model = model
        self._backoff_s = backoff_s
        self._live: dict[int, _Live] = {}
        self._by_engine_id: dict[int, int] = {}
        self._next_engine_id = 0
        self._strikes = 0
        self._proven = True
        self._resubmitted: set[int] = set()
        self._vocabulary: Vocabulary | None = None
        self._engine_has_vocabulary = False

    @property
    def live(self) -> int:
        """Number of requests that have not ended."""
        return len(self._live)

    def set_vocabulary(self, vocabulary: Vocabulary) -> None:
        """Keep the vocabulary, which every engine needs before its first grammar."""
        self._vocabulary = vocabulary

    def reader_of(self, engine_id: int) -> int | None:
        """Return the reader's id of the request that the engine calls ``engine_id``; None if it has ended."""
        return self._by_engine_id.get(engine_id)

    def is_paused(self, request_id: int) -> bool:
        """Whether a request waits for its reader."""
        live = self._live.get(request_id)
        return live is not None and live.paused

    def submit(self, request: Request) -> list[Command]:
        """Accept a request; it waits here while the engine loads."""
        if self.error is not None:
            return [Fail(request.request_id, self._refusal(self.error))]
        self._live[request.request_id] = _Live.of(request)
        return self._send_to_engine(request.request_id)

    def cancel(self, request_id: int) -> list[Command]:
        """Drop a request that its reader no longer wants."""
        commands = self._take_from_engine(request_id)
        self._live.pop(request_id, None)
        return commands

    def pause(self, request_id: int) -> list[Command]:
        """Cancel a request at the engine because its reader is slow; its tokens are kept."""
        if live := self._live.get(request_id):
            live.paused = True
        return self._take_from_engine(request_id)

    def resume(self, request_id: int) -> list[Command]:
        """Submit a paused request again, with the tokens generated so far."""
        live = self._live.get(request_id)
        if live is None or not live.paused:
            return []
        live.paused = False
        return self._send_to_engine(request_id)

    def receive(self, message: FromEngine) -> list[Command]:
        """Handle a message from the engine."""
        match message:
            case Loaded():
                return self._on_loaded(message)
            case Replanned():
                self._on_replanned(message)
            case Output():
                commands = [command for token in message.tokens for command in self._on_token(token)]
                commands += [command for found in message.beams for command in self._on_whole(found)]
                return [*commands, *(command for one in message.failed for command in self._on_failed(one))]
            case Embedded():
                return [command for vector in message.vectors for command in self._on_whole(vector)]
            case Failed(request_id=None):
                return [Send(Shutdown()), *self.fail(error_of(message))]
            case Failed():
                return self._on_failed(message)
        return []

    def usable(self) -> Loaded:
        """Return what the engine reported when it had loaded the model.

        Raises:
            LlmdError: it could not be loaded, was closed before, or has failed since.
        """
        if self.loaded is None:
            assert self.error is not None
            raise self.error
        if self.error is not None and self.phase is Phase.FAILED:
            raise self._refusal(self.error)
        return self.loaded

    def died(self, how: str) -> list[Command]:
        """Handle the end of the engine process; ``how`` describes it to people."""
        if self.phase in {Phase.FAILED, Phase.CLOSED}:
            return []
        self._strikes = 0 if self._proven else self._strikes + 1
        if self.loaded is None or self._strikes > len(self._backoff_s):
            return self.fail(self._crashed(how))
        after_s = self._backoff_s[self._strikes - 1] if self._strikes else 0.0
        self.phase = Phase.LOADING
        self.restarts += 1
        self._proven = False
        self._engine_has_vocabulary = False
        self._by_engine_id.clear()
        for live in self._live.values():
            live.engine_id = None
        return [Start(after_s)]

    def fail(self, error: LlmdError) -> list[Command]:
        """End every request with ``error`` and accept no more."""
        return self._end(Phase.FAILED, error)

    def close(self, error: LlmdError, *, spool: bool = False) -> list[Command]:
        """End the engine, and live requests with ``error``. ``spool``: it may write its cache to disk."""
        return [Send(Shutdown(spool)), *self._end(Phase.CLOSED, error)]

    def _end(self, phase: Phase, error: LlmdError) -> list[Command]:
        self.phase, self.error = phase, error
        failures: list[Command] = [Fail(request_id, error) for request_id in self._live]
        self._live.clear()
        self._by_engine_id.clear()
        return failures

    def _on_loaded(self, message: Loaded) -> list[Command]:
        was_ready, self.phase, self.loaded = self.phase is Phase.READY, Phase.READY, message
        self.lost_devices = ()
        if was_ready:
            return []  # it has the requests already
        waiting = [request_id for request_id, live in self._live.items() if not live.paused]
        self._resubmitted = set() if self._proven else set(waiting)
        return [command for request_id in waiting for command in self._send_to_engine(request_id)]

    def _on_replanned(self, message: Replanned) -> None:
        """Update what is known of the engine, which goes on with its requests by itself."""
        if self.loaded is not None:
            now = {stage.device for stage in message.stages}
            lost = (stage.device for stage in self.loaded.stages if stage.device not in now)
            self.lost_devices = tuple(dict.fromkeys((*self.lost_devices, *lost)))
            self.loaded = structs.replace(
                self.loaded,
                stages=message.stages,
                kv_tokens=message.kv_tokens,
                formats=message.formats,
                notices=message.notices,
                memories=(),
            )

    def _on_token(self, token: TokenOutput) -> Iterable[Command]:
        request_id = self._by_engine_id.get(token.request_id)
        if request_id is None:
            return
        self._prove(request_id)
        live = self._live[request_id]
        live.output.append(token.token)
        live.state = token.state
        if token.finish is not None:
            self._forget(request_id)
        yield Deliver(structs.replace(token, request_id=request_id))

    def _on_whole(self, output: BeamOutput | TextVector) -> Iterable[Command]:
        """Handle a whole result, which ends its request."""
        request_id = self._by_engine_id.get(output.request_id)
        if request_id is None:
            return
        self._prove(request_id)
        self._forget(request_id)
        yield Deliver(structs.replace(output, request_id=request_id))

    def _prove(self, request_id: int) -> None:
        """Note that the engine has made progress, so that its next death counts as the first again."""
        if not self._resubmitted or request_id in self._resubmitted:
            self._proven = True

    def _on_failed(self, message: Failed) -> list[Command]:
        assert message.request_id is not None
        request_id = self._by_engine_id.get(message.request_id)
        if request_id is None:
            return []
        self._forget(request_id)
        return [Fail(request_id, error_of(message))]

    def _forget(self, request_id: int) -> None:
        engine_id = self._live.pop(request_id).engine_id
        self._resubmitted.discard(request_id)
        if engine_id is not None:
            del self._by_engine_id[engine_id]

    def _send_to_engine(self, request_id: int) -> list[Command]:
        if self.phase is not Phase.READY:
            return []
        live = self._live[request_id]
        live.engine_id = self._next_engine_id
        self._next_engine_id += 1
        self._by_engine_id[live.engine_id] = request_id
        return [*self._vocabulary_for(live.request), Send(live.message(live.engine_id))]

    def _vocabulary_for(self, request: Request) -> list[Command]:
        """Return the message that an engine needs once before its first grammar.

        It is large: 150,000 tokens exceed 1 MB.
        """
        if isinstance(request, EmbedText) or request.grammar is None:
            return []
        if self._engine_has_vocabulary or self._vocabulary is None:
            return []
        self._engine_has_vocabulary = True
        return [Send(self._vocabulary)]

    def _take_from_engine(self, request_id: int) -> list[Command]:
        live = self._live.get(request_id)
        if live is None or live.engine_id is None:
            return []
        engine_id, live.engine_id = live.engine_id, None
        del self._by_engine_id[engine_id]
        self._resubmitted.discard(request_id)
        return [Send(Cancel(engine_id))]

    def _crashed(self, how: str) -> EngineCrashedError:
        when = "while it loaded" if self.loaded is None else f"{self._strikes + 1} times without a token"
        return EngineCrashedError(
            f"the engine of {self._model}{self._where()} died {when} ({how})",
            hint="see its last output in the daemon's log, and run `llmd doctor` to check the devices;"
            f" `llmd load {self._model}` starts it again",
        )

    def _where(self) -> str:
        return f" on {' and '.join(self.loaded.devices)}" if self.loaded else ""

    def _refusal(self, error: LlmdError) -> LlmdError:
        if self.phase is Phase.CLOSED:
            return error
        return UnavailableError(
            f"{self._model} has failed: {error.message}", code="model_failed", hint=error.hint
        )
