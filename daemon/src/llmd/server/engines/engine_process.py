"""An engine child process and the frames exchanged with it."""

from __future__ import annotations

import asyncio
import logging
import signal
from collections import deque
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import cast

from llmd.api.messages import FromEngine, Loaded, Shutdown, ToEngine
from llmd.api.reports import GetReport
from llmd.engine.log_lines import STACKS_SIGNAL, read_event
from llmd.process.frames import FrameDecoder, FrameError, encode_frame
from llmd.process.limits import processor_seconds
from llmd.server.engines.engine_child import EngineChild
from llmd.server.engines.hang_detector import NO_HANG_LIMITS, HangDetector, HangLimits
from llmd.server.tasks import OwnedTask

logger = logging.getLogger(__name__)

GRACE_S = 2.0
"""Seconds that a process gets to end by itself."""

SPOOL_GRACE_S = 30.0
"""The same if the process writes its prefix cache first; its own limit is shorter (`llmd.engine.process`)."""

STACKS_S = 0.2
"""Seconds that an engine which hangs gets to write its stacks."""

READ_BYTES = 1 << 16
LAST_LINES = 30


class EngineProcess:
    """A running engine. Messages go both ways until it closes its end or dies.

    ``model`` is the model's name in the log, empty until it is known.
    """

    def __init__(
        self,
        process: asyncio.subprocess.Process,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        hangs: HangLimits = NO_HANG_LIMITS,
    ) -> None:
        self.model = ""
        self._process = process
        self._reader = reader
        self._writer = writer
        self._last_lines: deque[str] = deque(maxlen=LAST_LINES)
        self._log = OwnedTask(self._log_stderr(), f"log of engine {process.pid}")
        self._detector = HangDetector(hangs)
        self._answers = False
        self._hung = ""
        self._watch = OwnedTask(self._watch_for_hangs(hangs), f"watch of engine {process.pid}")

    @classmethod
    async def adopt(cls, child: EngineChild, hangs: HangLimits = NO_HANG_LIMITS) -> EngineProcess:
        """Connect to a process that was started, and take ownership of it."""
        try:
            reader, writer = await asyncio.open_connection(sock=child.socket)
        except BaseException:
            await child.end()
            raise
        return cls(child.process, reader, writer, hangs)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def silent_s(self) -> float:
        """For how long it has neither sent nor computed anything, as of the last look."""
        return self._detector.silent_s

    @property
    def has_ended(self) -> bool:
        return self._process.returncode is not None

    def send(self, message: ToEngine) -> None:
        """Queue a message. If the engine has just died, it is lost: the supervisor sends it to the next
        one.
        """
        if isinstance(message, Shutdown):
            self._answers = False
        if not self._writer.is_closing():
            self._writer.write(encode_frame(message))

    async def messages(self) -> AsyncIterator[FromEngine]:
        """Yield each message until the engine ends."""
        frames: FrameDecoder[FromEngine] = FrameDecoder(cast("type[FromEngine]", FromEngine))
        while received := await self._read():
            try:
                messages = frames.feed(received)
            except FrameError:
                logger.exception("engine_frame_unreadable", extra={"model": self.model})
                return
            for message in messages:
                self._detector.heard(message)
                self._answers = self._answers or isinstance(message, Loaded)
                yield message

    async def _read(self) -> bytes:
        try:
            return await self._reader.read(READ_BYTES)
        except ConnectionError:
            return b""

    @property
    def last_lines(self) -> tuple[str, ...]:
        """The last lines of its standard error; if it died, they include the reason."""
        return tuple(self._last_lines)

    async def end(self, grace_s: float) -> str:
        """Wait ``grace_s`` seconds for the process to end, then kill it; return how it ended."""
        self._writer.close()
        await self._watch.close()
        try:
            await asyncio.wait_for(self._process.wait(), grace_s)
        except TimeoutError:
            self._process.kill()
            await self._process.wait()
        await self._log.join()
        return self._hung or _ending(self._process.returncode or 0)

    async def _watch_for_hangs(self, limits: HangLimits) -> None:
        """Kill the process if it hangs; the supervisor then starts another one."""
        while limits.probe_s:
            await asyncio.sleep(limits.probe_s)
            used_s = processor_seconds(self.pid, with_children=False)
            hangs = self._detector.look(used_s)
            # An idle engine is silent until it is asked. One that writes its cache at the end is not asked:
            # any message would end that.
            if self._answers:
                self.send(GetReport())
            if hangs:
                stalled_s = self._detector.stalled_s
                self._hung = f"it made no progress for {stalled_s:.0f} s"
                logger.error("engine_hung", extra={"model": self.model, "stalled_s": round(stalled_s, 1)})
                await self._kill_with_stacks()
                return

    async def _kill_with_stacks(self) -> None:
        """Have the engine write to its standard error what each thread runs, then kill it."""
        with suppress(ProcessLookupError):  # it has just ended
            self._process.send_signal(STACKS_SIGNAL)
            await asyncio.sleep(STACKS_S)
            self._process.kill()

    async def _log_stderr(self) -> None:
        assert self._process.stderr is not None
        while line := await _next_line(self._process.stderr):
            text = line.decode(errors="replace").rstrip()
            event = read_event(text)
            self._last_lines.append(text if event is None else str(event))
            if event is None:
                logger.info("engine_said", extra={"model": self.model, "line": text})
            else:
                logger.log(event.level, event.event, extra={**event.fields, "model": self.model})


async def _next_line(reader: asyncio.StreamReader) -> bytes:
    """Return the next line, or only the end of a line beyond the reader's limit.

    Unread output would block the process that writes it.
    """
    while True:
        try:
            return await reader.readline()
        except ValueError:
            continue


def _ending(status: int) -> str:
    if status >= 0:
        return f"exit status {status}"
    return f"signal {-status}, {signal.Signals(-status).name}"
