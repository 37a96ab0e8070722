"""The daemon's side of the process that renders chat templates."""

from __future__ import annotations

import msgspec

from llmd.chat.templates.render_messages import MAX_REPLY_BYTES, Failed, Rendered, unpack_reply
from llmd.process.worker import ReplyTooLongError, Worker, WorkerLostError

WORKER = "llmd.chat.templates.template_worker"


class TemplateProcess:
    """One process with a memory limit. Not thread-safe. Call `end` after any exception."""

    def __init__(self, *, memory_bytes: int) -> None:
        """Raises `WorkerLostError` if the process does not start."""
        self._worker = Worker(WORKER, memory_bytes=memory_bytes, max_reply_bytes=MAX_REPLY_BYTES)

    @property
    def pid(self) -> int:
        return self._worker.pid

    @property
    def is_alive(self) -> bool:
        return self._worker.is_alive

    def render(self, job: bytes, *, limit_s: float) -> Rendered | Failed:
        """Send a packed `RenderJob` and wait for its reply.

        Raises:
            TimeoutError: no complete reply arrived within ``limit_s``.
            WorkerLostError: the process ended without a reply.
        """
        try:
            return unpack_reply(self._worker.ask(job, limit_s=limit_s))
        except ReplyTooLongError as exc:
            return Failed("memory", f"the rendered prompt is too long: {exc}")
        except msgspec.DecodeError as exc:
            raise WorkerLostError("it sent something that is not a reply") from exc

    def end(self) -> None:
        """Kill the process and wait until it has ended."""
        self._worker.end()
