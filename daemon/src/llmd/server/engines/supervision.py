"""What a supervisor decides: events of one engine come in, commands go out. No I/O, no clock.

Tokens are the truth: every live request is kept with the tokens it has, and a new engine is given both. An engine
that dies again before a resubmitted request gained a token is restarted once for each back-off; then the live
requests end with `EngineCrashedError` and the model has failed.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum, auto
from typing import Self

from msgspec import Struct, structs

from llmd.api.errors import EngineCrashedError, LlmdError
from llmd.api.messages import (
    BeamOutput,
    Cancel,
    Embedded,
    EmbedText,
    Failed,
    FromEngine,
    Loaded,
    Output,
    Shutdown,
    Submit,
    TextVector,
    ToEngine,
    TokenOutput,
    Vocabulary,
)
from llmd.engine.failures import error_of
from llmd.server.errors import UnavailableError

Request = Submit | EmbedText
BACKOFF_S = (0.5, 2.0)


class Start(Struct, frozen=True):
    """Start an engine after so many seconds."""

    after_s: float


class Send(Struct, frozen=True):
    """Send a message to the engine."""

    message: ToEngine


class Deliver(Struct, frozen=True):
    """Hand a token, or all that a request gives at once, to the request's reader; its ``request_id`` is the reader's."""

    output: TokenOutput | BeamOutput | TextVector


class Fail(Struct, frozen=True):
    """End a request with an error."""

    request_id: int
    error: LlmdError


Command = Start | Send | Deliver | Fail


class Phase(Enum):
    """Where an engine stands."""

    LOADING = auto()
    READY = auto()
    FAILED = auto()
    CLOSED = auto()


class _Live(Struct):
    """A request that has not ended. ``engine_id`` is new for each submission, so that late tokens of an earlier
    one are told apart; None while no engine has it.
    """

    request: Request
    output: list[int]
    state: bytes
    engine_id: int | None = None
    paused: bool = False

    @classmethod
    def of(cls, request: Request) -> Self:
        if isinstance(request, EmbedText):
            return cls(request, [], b"")
        return cls(request, list(request.output), request.state)

    def message(self, engine_id: int) -> Request:
        """What an engine is told, with all that another one has already answered."""
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
        """How many requests have not ended."""
        return len(self._live)

    def set_vocabulary(self, vocabulary: Vocabulary) -> None:
        """Keep what every engine must know before its first grammar."""
        self._vocabulary = vocabulary

    def reader_of(self, engine_id: int) -> int | None:
        """The request that an engine knows by another number since it was resubmitted; None where it has gone."""
        return self._by_engine_id.get(engine_id)

    def submit(self, request: Request) -> list[Command]:
        """Take a request; it waits here while the engine loads."""
        if self.error is not None:
            return [Fail(request.request_id, self._refusal(self.error))]
        self._live[request.request_id] = _Live.of(request)
        return self._send_to_engine(request.request_id)

    def cancel(self, request_id: int) -> list[Command]:
        """Forget a request that its reader no longer wants."""
        commands = self._take_from_engine(request_id)
        self._live.pop(request_id, None)
        return commands

    def pause(self, request_id: int) -> list[Command]:
        """Take a request from the engine because its reader is slow; its tokens are kept."""
        if live := self._live.get(request_id):
            live.paused = True
        return self._take_from_engine(request_id)

    def resume(self, request_id: int) -> list[Command]:
        """Give a paused request back to the engine, with the tokens that it has."""
        live = self._live.get(request_id)
        if live is None or not live.paused:
            return []
        live.paused = False
        return self._send_to_engine(request_id)

    def receive(self, message: FromEngine) -> list[Command]:
        """Act on a message of the engine."""
        match message:
            case Loaded():
                return self._on_loaded(message)
            case Output():
                told = [command for token in message.tokens for command in self._on_token(token)]
                told += [command for found in message.beams for command in self._on_whole(found)]
                return [*told, *(command for one in message.failed for command in self._on_failed(one))]
            case Embedded():
                return [command for vector in message.vectors for command in self._on_whole(vector)]
            case Failed(request_id=None):
                return [Send(Shutdown()), *self.fail(error_of(message))]
            case Failed():
                return self._on_failed(message)
            case _:
                return []

    def died(self, how: str) -> list[Command]:
        """Act on the end of the engine process; ``how`` it ended is for people."""
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
        """End the engine, and with ``error`` every request that still runs. ``spool``: it may keep its cache on disk."""
        return [Send(Shutdown(spool)), *self._end(Phase.CLOSED, error)]

    def _end(self, phase: Phase, error: LlmdError) -> list[Command]:
        self.phase, self.error = phase, error
        failures: list[Command] = [Fail(request_id, error) for request_id in self._live]
        self._live.clear()
        self._by_engine_id.clear()
        return failures

    def _on_loaded(self, message: Loaded) -> list[Command]:
        self.phase, self.loaded = Phase.READY, message
        waiting = [request_id for request_id, live in self._live.items() if not live.paused]
        self._resubmitted = set() if self._proven else set(waiting)
        return [command for request_id in waiting for command in self._send_to_engine(request_id)]

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
        """Act on all that a request gives, which ends it."""
        request_id = self._by_engine_id.get(output.request_id)
        if request_id is None:
            return
        self._prove(request_id)
        self._forget(request_id)
        yield Deliver(structs.replace(output, request_id=request_id))

    def _prove(self, request_id: int) -> None:
        """Take that the engine has done something for a request, so that its next death is a first one again."""
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
        """What the engine must be told before a request, once: 150,000 tokens are more than a megabyte."""
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
            f"the engine of {self._model} died {when} ({how})",
            hint="its last lines are in the daemon's log; `llmd doctor` checks the devices",
        )

    def _refusal(self, error: LlmdError) -> LlmdError:
        if self.phase is Phase.CLOSED:
            return error
        return UnavailableError(
            f"{self._model} has failed: {error.message}", code="model_failed", hint=error.hint
        )
