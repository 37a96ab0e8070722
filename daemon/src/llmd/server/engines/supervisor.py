"""Runs one model's engine by carrying out the decisions of `Supervision`."""

from __future__ import annotations

import asyncio
import itertools
import logging
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, assert_never

from msgspec import structs

from llmd.api.errors import LlmdError
from llmd.api.messages import (
    BeamOutput,
    Embedded,
    EmbedText,
    FromEngine,
    GetReport,
    Load,
    Loaded,
    Loading,
    Output,
    Replanned,
    Report,
    Shutdown,
    Started,
    Submit,
    TextVector,
    TokenOutput,
    Vocabulary,
)
from llmd.server.engines.admission_limits import DEFAULT_LIMITS, AdmissionLimits, QueueLimits
from llmd.server.engines.engine_process import GRACE_S, SPOOL_GRACE_S, EngineProcess
from llmd.server.engines.engine_starter import EngineStarter
from llmd.server.engines.load_log import log_placement
from llmd.server.engines.mailbox import Mailbox
from llmd.server.engines.report_requests import ReportRequests
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

Admit = Callable[[], Awaitable[Mapping[str, int]]]
"""Waits until a model may be loaded. Returns the most bytes that it may take of the memory of each device;
devices that are left out have no limit."""


class Supervisor:
    """Keeps the engine of one model alive. Use on the event loop only, and await `close` in the end.

    ``load_sent`` is set when its load message was sent, or when it is certain that none will be.
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
        self.load_sent = asyncio.Event()
        self._load = load
        self._buffer_tokens = buffer_tokens
        self._engines = engines
        self._sleep = sleep
        self._admit = admit
        self._state = Supervision(model, backoff_s)
        self._process: EngineProcess | None = None
        self._next_start: float | None = 0.0
        self._clock = clock
        self._admission = AdmissionLimits(model, load.slots, limits, clock())
        self._metrics = metrics or no_metrics(model)
        self._sequences: dict[int, SequenceRecord] = {}
        self._streams: dict[int, Mailbox[Any]] = {}
        self._ids = itertools.count()
        self._reports = ReportRequests()
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
    def restarts(self) -> int:
        return self._state.restarts

    @property
    def waiting(self) -> int:
        """Sequences beyond those that can run at once."""
        return self._admission.waiting

    @property
    def pid(self) -> int | None:
        """The process id of the engine; None if none runs."""
        return self._process.pid if self._process else None

    async def loaded(self) -> Loaded:
        """Wait until the model has been loaded for the first time.

        Raises:
            LlmdError: it could not be loaded, or was closed before.
        """
        await self._settled.wait()
        if self._state.loaded is None:
            assert self._state.error is not None
            raise self._state.error
        return self._state.loaded

    def set_limits(self, limits: QueueLimits, buffer_tokens: int) -> None:
        """Change the limits of later requests."""
        self._admission.limits, self._buffer_tokens = limits, buffer_tokens

    def set_vocabulary(self, vocabulary: Vocabulary) -> None:
        """Set the vocabulary, before the first request with a grammar."""
        self._state.set_vocabulary(vocabulary)

    @contextmanager
    def reserve(self, record: RequestRecord) -> Iterator[None]:
        """Hold a place in the queue for a request while its model loads and its prompt is tokenized.

        Raises:
            BusyError: the queue is full.
        """
        entry = self._admission.admit(record.key, 1, 0, self._clock())
        try:
            yield
        finally:
            self._admission.release(entry, self._clock(), served=False)

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
        submits, sequences = self._admit_all(requests, counts, record)
        stream = TokenStream(tuple(s.request_id for s in submits), self, self._buffer_tokens)
        self._run_sequences(stream, submits, sequences, record)
        return stream

    def search(self, requests: Sequence[Submit], record: RequestRecord) -> Mailbox[BeamOutput]:
        """Run beam searches, as `open` runs sequences. In the queue, each counts as one sequence per beam.

        Raises:
            BusyError: the queue is full.
        """
        submits, sequences = self._admit_all(
            requests, [1 if r.beams is None else r.beams.width for r in requests], record
        )
        mailbox: Mailbox[BeamOutput] = Mailbox(tuple(s.request_id for s in submits), self)
        self._run_sequences(mailbox, submits, sequences, record)
        return mailbox

    def _admit_all(
        self, requests: Sequence[Submit], counts: Sequence[int], record: RequestRecord
    ) -> tuple[list[Submit], list[SequenceRecord]]:
        """Admit requests; ``counts`` holds how many sequences each counts as in the queue."""
        leads = [r.sampling.choice == 0 for r in requests]
        entries = [
            QueueEntry(record.key, count, len(r.prompt)) for count, r in zip(counts, requests, strict=True)
        ]
        sequences = self._take(entries, leads, record)
        return [structs.replace(r, request_id=next(self._ids)) for r in requests], sequences

    def _take(
        self, entries: Sequence[QueueEntry], leads: Sequence[bool], record: RequestRecord
    ) -> list[SequenceRecord]:
        """Admit all sequences at once, or raise and admit none."""
        num_sequences = sum(one.sequences for one in entries)
        num_tokens = sum(one.tokens for one in entries)
        self._admission.admit(record.key, num_sequences, num_tokens, self._clock())
        begun, pairs = time.monotonic(), zip(entries, leads, strict=True)
        return [SequenceRecord(record, entry, begun, leads=lead) for entry, lead in pairs]

    def embed(self, texts: Sequence[EmbedText], record: RequestRecord) -> Mailbox[TextVector]:
        """Embed texts; return the mailbox of their vectors. Close it; it ends at the request's deadline.

        Sets the ids and the group of ``texts``. They count as one sequence in the queue.

        Raises:
            BusyError: the queue is full.
        """
        # The engine answers in order: the last text holds the entry for all of them.
        last = len(texts) - 1
        entries = [QueueEntry(record.key, int(i == last), len(text.tokens)) for i, text in enumerate(texts)]
        sequences = self._take(entries, [True] * len(texts), record)
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
        for request, sequence in zip(requests, sequences, strict=True):
            self._sequences[request.request_id] = sequence
            self._metrics.submitted(sequence)
        for request in requests:
            self._streams[request.request_id] = mailbox
            self._perform(self._state.submit(request))

    def cancel(self, request_id: int) -> None:
        self._end_stream(request_id)
        self._perform(self._state.cancel(request_id))

    def pause(self, request_id: int) -> None:
        self._perform(self._state.pause(request_id))

    def resume(self, request_id: int) -> None:
        self._perform(self._state.resume(request_id))

    async def report(self) -> Report | None:
        """Get the engine's counters; None if it does not run or is too busy with one step to answer."""
        if self._process is None or self.phase is not Phase.READY:
            return None
        self._process.send(GetReport())
        return await self._reports.wait()

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
            self._perform(self._state.died(how))
            if not self._closing.is_set():
                self._metrics.died(how, starts_again=self._next_start is not None)
            self._reports.fail(how)
        self.load_sent.set()
        self._settled.set()

    async def _admitted(self) -> None:
        """Wait until there is memory for the model. Requests wait meanwhile; they fail if it does not fit."""
        try:
            limits = await self._admit() if self._admit else {}
        except LlmdError as error:
            self._next_start = None
            self._perform(self._state.fail(error))
            return
        self._load = self._load.within(limits)

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
            self._reports.answer(message)
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
                    self._deliver(command)
                case Fail():
                    if stream := self._end_stream(command.request_id):
                        stream.fail(command.error)
                case _:
                    assert_never(command)

    def _begin(self, started: Sequence[Started]) -> None:
        for one in started:
            request_id = self._state.reader_of(one.request_id)
            if request_id is not None and (stream := self._streams.get(request_id)):
                stream.begin(structs.replace(one, request_id=request_id))
                self._metrics.begun(self._sequences[request_id], one)

    def _deliver(self, command: Deliver) -> None:
        output = command.output
        stream = self._streams.get(output.request_id)
        if sequence := self._sequences.get(output.request_id):
            if isinstance(output, TokenOutput):
                self._metrics.token(sequence)
            elif isinstance(output, BeamOutput):
                self._metrics.found(sequence, sum(len(found.tokens) for found in output.hypotheses))
        if not isinstance(output, TokenOutput) or output.finish is not None:
            self._end_stream(output.request_id)
        if stream is not None:
            stream.push(output)

    def _end_stream(self, request_id: int) -> Mailbox[Any] | None:
        """Drop a sequence that has ended or was cancelled, and release its queue entry."""
        if sequence := self._sequences.pop(request_id, None):
            self._admission.release(sequence.entry, self._clock())
        return self._streams.pop(request_id, None)
