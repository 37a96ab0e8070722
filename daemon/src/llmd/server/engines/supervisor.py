"""Runs one model's engine by carrying out the decisions of `Supervision`."""

from __future__ import annotations

import asyncio
import itertools
import logging
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, assert_never

from msgspec import structs

from llmd.api.errors import LlmdError
from llmd.api.messages import (
    EmbedText,
    FromEngine,
    Load,
    Loaded,
    Loading,
    Replanned,
    Shutdown,
    Submit,
    Vocabulary,
)
from llmd.api.reports import Blocks, GetBlocks, GetReport, Report, SequenceState
from llmd.api.results import BeamOutput, Embedded, Output, Started, TextVector
from llmd.server.engines.admission_limits import DEFAULT_LIMITS, AdmissionLimits, QueueLimits
from llmd.server.engines.engine_process import GRACE_S, SPOOL_GRACE_S, EngineProcess
from llmd.server.engines.engine_starter import EngineStarter
from llmd.server.engines.live_sequences import LiveSequences
from llmd.server.engines.load_log import log_placement
from llmd.server.engines.mailbox import Mailbox
from llmd.server.engines.pending_answers import PendingAnswers
from llmd.server.engines.supervision import (
    BACKOFF_S,
    Command,
    Deliver,
    Fail,
    Phase,
    Request,
    Send,
    Start,
    Supervision,
)
from llmd.server.engines.token_stream import TokenStream
from llmd.server.errors import UnavailableError
from llmd.server.request_record import QueueEntry, RequestRecord
from llmd.server.tasks import OwnedTask, unless
from llmd.server.telemetry.model_metrics import ModelMetrics, SequenceRecord, no_metrics

logger = logging.getLogger(__name__)

Sleep = Callable[[float], Coroutine[None, None, None]]
UNNUMBERED = 0
"""The id of a request before `Supervisor.open` or `Supervisor.search` gives it one."""

Admit = Callable[[Load], Awaitable[Load]]
"""Waits until a model may be loaded. Returns its load with the devices that it gets, and with the most bytes
that it may take of their memory."""


class Supervisor:
    """Keeps the engine of one model alive. Use on the event loop only, and await `close` in the end.

    ``load_sent`` is set when its load message was sent, or when it is certain that none will be. ``last_end``
    describes how the last engine that died has ended.
    """

    def __init__(
        self,
        model: str,
        load: Load,
        engines: EngineStarter,
        *,
        buffer_tokens: int = 1024,
        limits: QueueLimits = DEFAULT_LIMITS,
        backoff_s: tuple[float, ...] = BACKOFF_S,
        sleep: Sleep = asyncio.sleep,
        clock: Callable[[], float] = time.monotonic,
        admit: Admit | None = None,
        metrics: ModelMetrics | None = None,
    ) -> None:
        self.model = model
        self.progress: Loading | None = None
        self.last_end = ""
        self.load_sent = asyncio.Event()
        self.asked = load
        """What the user has set."""
        self._load = load
        self.buffer_tokens = buffer_tokens
        self._engines = engines
        self._sleep = sleep
        self._admit = admit
        self._state = Supervision(model, backoff_s)
        self._process: EngineProcess | None = None
        self._next_start: float | None = 0.0
        self._clock = clock
        self.admission = AdmissionLimits(model, load.slots, limits, clock())
        self._metrics = metrics or no_metrics(model)
        self._live_sequences = LiveSequences(self.admission, self._metrics, clock)
        self._ids = itertools.count()
        self._reports: PendingAnswers[Report] = PendingAnswers()
        self._blocks: PendingAnswers[Blocks] = PendingAnswers()
        self._settled = asyncio.Event()
        self._closing = asyncio.Event()
        self._task = OwnedTask(self._run(), f"supervisor of {model}")

    @property
    def phase(self) -> Phase:
        return self._state.phase

    @property
    def error(self) -> LlmdError | None:
        """Why the model has failed or was closed."""
        return self._state.error

    @property
    def known(self) -> Loaded | None:
        """What the engine reported when it had loaded, also while it restarts."""
        return self._state.loaded

    @property
    def slots(self) -> int:
        """Number of sequences that run at once."""
        return self._load.slots

    @property
    def load(self) -> Load:
        """What engines are sent: with the devices that were chosen, once the model was admitted."""
        return self._load

    @property
    def lost_devices(self) -> tuple[str, ...]:
        """Devices that its engine has lost since it was loaded."""
        return self._state.lost_devices

    @property
    def restarts(self) -> int:
        return self._state.restarts

    @property
    def waiting(self) -> int:
        """Sequences beyond those that can run at once."""
        return self.admission.waiting

    @property
    def pid(self) -> int | None:
        """The process id of the engine; None if none runs."""
        return self._process.pid if self._process else None

    async def loaded(self) -> Loaded:
        """Wait until the model has been loaded for the first time.

        Raises:
            LlmdError: it could not be loaded, was closed before, or has failed since.
        """
        await self._settled.wait()
        return self._state.usable()

    def set_vocabulary(self, vocabulary: Vocabulary) -> None:
        """Set the vocabulary, before the first request with a grammar."""
        self._state.set_vocabulary(vocabulary)

    @contextmanager
    def reserve(self, record: RequestRecord) -> Iterator[None]:
        """Hold a place in the queue for a request while its model loads and its prompt is tokenized.

        Raises:
            BusyError: the queue is full.
        """
        entry = self.admission.admit(record.key, 1, 0, self._clock())
        self._metrics.queued(record, "model" if self.phase is Phase.LOADING else None)
        try:
            yield
        finally:
            self.admission.release(entry, self._clock(), served=False)

    def open(
        self, requests: Sequence[Submit], record: RequestRecord | None = None, *, together: bool = False
    ) -> TokenStream:
        """Run sequences; return the stream of their tokens. Close it; it ends at the request's deadline.

        With ``together``, they count as one sequence in the queue.

        Raises:
            BusyError: the queue is full.
        """
        record, last = record or RequestRecord(), len(requests) - 1
        counts = [int(not together or index == last) for index in range(len(requests))]
        sequences = self._live_sequences.admit_submits(requests, counts, record)
        submits = self._numbered(requests)
        stream = TokenStream(tuple(s.request_id for s in submits), self, self.buffer_tokens)
        self._run_sequences(stream, submits, sequences, record)
        return stream

    def search(self, requests: Sequence[Submit], record: RequestRecord) -> Mailbox[BeamOutput]:
        """Run beam searches, as `open` runs sequences. In the queue, each counts as one sequence per beam.

        Raises:
            BusyError: the queue is full.
        """
        counts = [1 if r.beams is None else r.beams.width for r in requests]
        sequences = self._live_sequences.admit_submits(requests, counts, record)
        submits = self._numbered(requests)
        mailbox: Mailbox[BeamOutput] = Mailbox(tuple(s.request_id for s in submits), self)
        self._run_sequences(mailbox, submits, sequences, record)
        return mailbox

    def _numbered(self, requests: Sequence[Submit]) -> list[Submit]:
        return [structs.replace(request, request_id=next(self._ids)) for request in requests]

    def embed(self, texts: Sequence[EmbedText], record: RequestRecord) -> Mailbox[TextVector]:
        """Embed texts; return the mailbox of their vectors. Close it; it ends at the request's deadline.

        Sets the ids and the group of ``texts``. They count as one sequence in the queue.

        Raises:
            BusyError: the queue is full.
        """
        # The engine answers in order: the last text holds the entry for all of them.
        last = len(texts) - 1
        entries = [QueueEntry(record.key, int(i == last), len(text.tokens)) for i, text in enumerate(texts)]
        sequences = self._live_sequences.admit(entries, [True] * len(texts), record)
        group = next(self._ids)
        requests = [structs.replace(text, request_id=next(self._ids), group=group) for text in texts]
        mailbox: Mailbox[TextVector] = Mailbox(tuple(r.request_id for r in requests), self)
        self._run_sequences(mailbox, requests, sequences, record)
        return mailbox

    def _run_sequences(
        self,
        mailbox: Mailbox[Any],
        requests: Sequence[Request],
        sequences: Sequence[SequenceRecord],
        record: RequestRecord,
    ) -> None:
        self._metrics.opened(record, len(requests))
        if record.deadline is not None:
            mailbox.expire_at(record.deadline, record.too_late())
        record.stops.append(mailbox.expire)
        for request, sequence in zip(requests, sequences, strict=True):
            self._live_sequences.add(request.request_id, sequence, mailbox)
        for request in requests:
            self._perform(self._state.submit(request))

    def cancel(self, request_id: int) -> None:
        self._live_sequences.end(request_id)
        self._perform(self._state.cancel(request_id))

    def pause(self, request_id: int) -> None:
        self._perform(self._state.pause(request_id))

    def resume(self, request_id: int) -> None:
        self._perform(self._state.resume(request_id))

    async def report(self, *, sequences: bool = False) -> Report | None:
        """Get the engine's counters; None if it does not run or is too busy with one step to answer.

        With ``sequences``, the records of requests get the progress that the engine reports.
        """
        if self._process is None or self.phase is not Phase.READY:
            return None
        self._process.send(GetReport(sequences))
        return await self._reports.wait(lambda report: report.sequences is not None or not sequences)

    async def blocks(self) -> Blocks | None:
        """Get the state of every KV block; None as in `report`."""
        if self._process is None or self.phase is not Phase.READY:
            return None
        self._process.send(GetBlocks())
        return await self._blocks.wait()

    async def close(self, error: LlmdError | None = None, *, spool: bool = False) -> None:
        """End the engine, and live requests with ``error``. ``spool``: it writes its cache to disk first."""
        error = error or UnavailableError(f"{self.model} was unloaded", code="model_unloaded")
        self._perform(self._state.close(error, spool=spool))
        self.load_sent.set()
        self._settled.set()
        self._closing.set()
        if not await self._task.join(SPOOL_GRACE_S if spool else GRACE_S):
            await self._task.close()
        self._metrics.closed()

    def close_now(self) -> None:
        """Make an engine that writes its cache during `close` stop writing; what it has written stays."""
        if self._process is not None:
            self._process.send(Shutdown())

    async def _run(self) -> None:
        await unless(self._closing, self._admitted(), "admission")
        while self._next_start is not None:
            delay, self._next_start = self._next_start, None
            await unless(self._closing, self._sleep(delay), "back-off")
            if self._closing.is_set():
                return
            try:
                how = await self._live()
            except Exception as error:
                logger.exception("engine_lost", extra={"model": self.model})
                how = f"the daemon could not run it: {error}"
            self.last_end = how
            self._perform(self._state.died(how))
            if not self._closing.is_set():
                self._metrics.died(how, starts_again=self._next_start is not None)
            self._reports.fail(how)
            self._blocks.fail(how)
        self.load_sent.set()
        self._settled.set()

    async def _admitted(self) -> None:
        """Wait until there is memory for the model. Requests wait meanwhile; they fail if it does not fit."""
        try:
            if self._admit:
                self._load = await self._admit(self._load)
        except Exception as error:
            if not isinstance(error, LlmdError):
                logger.exception("admission_failed", extra={"model": self.model})
                error = LlmdError(f"the daemon could not make room for {self.model}: {error}")
            self._next_start = None
            self._perform(self._state.fail(error))

    async def _live(self) -> str:
        """Run one engine from start to end; return how it ended."""
        process = await self._engines.start(self.model)
        self._process = process
        try:
            if not self._closing.is_set():
                process.send(self._load)
                self.load_sent.set()
                async for message in process.messages():
                    self._receive(message)
        finally:
            self._process = None
            how = await process.end(GRACE_S)
        if self.phase in {Phase.LOADING, Phase.READY} and not self._closing.is_set():
            fields = {"model": self.model, "how": how, "last_lines": process.last_lines}
            logger.error("engine_died", extra=fields)
        return how

    def _receive(self, message: FromEngine) -> None:
        if isinstance(message, Loading):
            self.progress = message
            self._metrics.loading(message)
        elif isinstance(message, Report):
            if message.sequences is not None:
                self._note(message.sequences)
            self._reports.answer(message)
        elif isinstance(message, Blocks):
            self._blocks.answer(message)
        else:
            if isinstance(message, Loaded | Replanned):
                log_placement(self.model, message, self.known)
                self._metrics.placed(message)
            elif isinstance(message, Output | Embedded):
                self._begin(message.started)
            self._perform(self._state.receive(message))
            if self.phase is not Phase.LOADING:
                self._settled.set()

    def _perform(self, commands: Sequence[Command]) -> None:
        for command in commands:
            match command:
                case Start():
                    self._next_start = command.after_s
                case Send():
                    if self._process is not None:
                        self._process.send(command.message)
                case Deliver():
                    self._live_sequences.deliver(command.output)
                case Fail():
                    if stream := self._live_sequences.end(command.request_id):
                        stream.fail(command.error)
                case _:
                    assert_never(command)

    def _begin(self, started: Sequence[Started]) -> None:
        for one in started:
            request_id = self._state.reader_of(one.request_id)
            if request_id is not None:
                self._live_sequences.begin(request_id, one)

    def _note(self, states: Sequence[SequenceState]) -> None:
        found: defaultdict[int, list[SequenceState]] = defaultdict(list)
        for one in states:
            request_id = self._state.reader_of(one.request_id)
            if request_id is not None:
                found[request_id].append(one)
        self._live_sequences.note(found, self._state.is_paused)
