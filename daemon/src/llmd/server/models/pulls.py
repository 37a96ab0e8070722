"""Pulls in child processes of the daemon, each shared by all clients that request the same model."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec

from llmd.api import errors
from llmd.api.decoding import prepared
from llmd.api.errors import LlmdError, RequestError
from llmd.registry.names import HubName
from llmd.registry.pull import PullStep
from llmd.server.models.pull_subscriber import PullSubscriber
from llmd.server.tasks import OwnedTask

logger = logging.getLogger(__name__)

GRACE_S = 2.0
BEGUN = PullStep("pulling manifest")
"""Sent at once, because the process needs a moment to start."""


class _Failed(msgspec.Struct, frozen=True):
    error: str
    message: str
    hint: str = ""
    exit_code: int = 1


def pull_command(models: Path, hub: str | None, reserved: Sequence[str]) -> tuple[str, ...]:
    """Return the command of a pull, without the name of the model."""
    named = [word for name in reserved for word in ("--reserved", name)]
    asked = ["--hub", hub] if hub else []
    return (sys.executable, "-m", "llmd.registry", "--models", str(models), *asked, *named)


class _Pull:
    """A child process and its subscribers."""

    def __init__(self, name: HubName, command: Sequence[str]) -> None:
        self.name = name
        self.subscribers: set[PullSubscriber] = set()
        self.ended = False
        self._command = command
        self._seen = {(BEGUN.status, BEGUN.digest): BEGUN}
        self._process: asyncio.subprocess.Process | None = None
        self._error: LlmdError | None = None
        self._task = OwnedTask(self._run(), f"pull of {name}")

    def subscribe(self) -> PullSubscriber:
        self.subscribers.add(subscriber := PullSubscriber(self.seen))
        return subscriber

    @property
    def seen(self) -> tuple[PullStep, ...]:
        return tuple(self._seen.values())

    async def stop(self, error: LlmdError | None = None) -> None:
        """End the process; downloaded data stays on disk."""
        self._error = error
        if self._process is not None and self._process.returncode is None:
            self._process.terminate()
        if not await self._task.join(GRACE_S):
            await self._task.close()

    async def _run(self) -> None:
        error: LlmdError | None = LlmdError(f"the pull of {self.name} failed", hint="see the daemon's log")
        try:
            self._process = await asyncio.create_subprocess_exec(
                *self._command,
                "--",
                str(self.name),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                start_new_session=True,
            )
            error = await self._read(self._process)
        finally:
            await self._end_process()
            self.ended = True
            for subscriber in self.subscribers:
                subscriber.end(self._error or error)

    async def _read(self, process: asyncio.subprocess.Process) -> LlmdError | None:
        """Pass each step on; return why the pull failed, None if it succeeded."""
        assert process.stdout is not None
        async for line in process.stdout:
            message = msgspec.json.decode(line)
            if "error" in message:
                failed = msgspec.convert(message, prepared(_Failed))
                logger.warning("pull_failed", extra={"model": str(self.name), "reason": failed.message})
                return _error_of(failed)
            self._pass_on(msgspec.convert(message, prepared(PullStep)))
        status = await process.wait()
        if status == 0:
            logger.info("model_pulled", extra={"model": str(self.name)})
            return None
        return LlmdError(
            f"the pull of {self.name} ended with {status}", hint="pull again: downloaded data is kept"
        )

    def _pass_on(self, step: PullStep) -> None:
        key = step.status, step.digest
        before = self._seen.get(key)
        if before is not None and before.completed > step.completed:
            return  # The file was started again: clients never see its progress go back.
        self._seen[key] = step
        for subscriber in self.subscribers:
            subscriber.push(step)

    async def _end_process(self) -> None:
        process = self._process
        if process is None or process.returncode is not None:
            return
        try:
            await asyncio.wait_for(process.wait(), GRACE_S)
        except TimeoutError:
            process.kill()
            await process.wait()


class Pulls:
    """The running pulls. Use on the event loop only, and await `close` in the end."""

    def __init__(self, command: Sequence[str]) -> None:
        """``command`` starts a pull, without the name of the model."""
        self._command = command
        self._running: dict[HubName, _Pull] = {}

    @property
    def running(self) -> dict[HubName, tuple[PullStep, ...]]:
        """The last step of each file, by model."""
        return {name: pull.seen for name, pull in self._running.items() if not pull.ended}

    @asynccontextmanager
    async def subscribe(self, name: HubName) -> AsyncIterator[AsyncIterator[PullStep]]:
        """Join the pull of a model; start it if it is not running. It stops when its last subscriber leaves.

        The steps raise `LlmdError` if the pull fails.
        """
        pull = self._running.get(name)
        if pull is None or pull.ended:
            pull = self._running[name] = _Pull(name, self._command)
        subscriber = pull.subscribe()
        try:
            yield subscriber.steps()
        finally:
            pull.subscribers.discard(subscriber)
            if not pull.subscribers:
                if self._running.get(name) is pull:
                    del self._running[name]
                await pull.stop()

    async def close(self, error: LlmdError) -> None:
        """End every pull; its subscribers get ``error``."""
        await asyncio.gather(*(pull.stop(error) for pull in self._running.values()))


def _error_of(failed: _Failed) -> LlmdError:
    kind = getattr(errors, failed.error, LlmdError)
    if not (isinstance(kind, type) and issubclass(kind, LlmdError)):
        kind = LlmdError
    error = (
        RequestError(failed.message, param="model", hint=failed.hint)
        if kind is RequestError
        else kind(failed.message, hint=failed.hint)
    )
    error.exit_code = failed.exit_code
    return error
