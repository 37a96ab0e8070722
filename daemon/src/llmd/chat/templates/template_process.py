"""The front's end of the template process."""

from __future__ import annotations

import msgspec

from llmd.chat.helper_process import HelperLostError, HelperProcess, ReplyTooLongError
from llmd.chat.templates.template_frames import MAX_FRAME_BYTES, Failed, Ready, Rendered, unpack_reply

WORKER = "llmd.chat.templates.template_worker"


class WorkerLostError(Exception):
    """The process ended, or sent what is no reply."""


class TemplateProcess:
    """One process with a memory limit. Not thread-safe. After any exception it must be ended."""

    def __init__(self, *, memory_bytes: int) -> None:
        """Raises `WorkerLostError` if the process does not start."""
        try:
            self._helper = HelperProcess(WORKER, memory_bytes=memory_bytes, max_reply_bytes=MAX_FRAME_BYTES)
        except HelperLostError as exc:
            raise WorkerLostError(f"the template process was lost: {exc}") from exc
        try:
            _unpacked(self._helper.ready)
        except WorkerLostError:
            self.end()
            raise

    @property
    def pid(self) -> int:
        return self._helper.pid

    @property
    def is_alive(self) -> bool:
        return self._helper.is_alive

    def render(self, frame: bytes, *, limit_s: float) -> Rendered | Failed:
        """Send a packed `RenderJob` and wait for its answer.

        Raises:
            TimeoutError: there is no whole answer within ``limit_s``.
            WorkerLostError: the process ended without one.
        """
        try:
            reply = _unpacked(self._helper.ask(frame, limit_s=limit_s))
        except HelperLostError as exc:
            raise WorkerLostError(f"the template process was lost: {exc}") from exc
        except ReplyTooLongError as exc:
            return Failed("memory", f"the rendered prompt is too long: {exc}")
        if isinstance(reply, Ready):
            raise WorkerLostError("the template process started twice")
        return reply

    def end(self) -> None:
        """Kill the process and wait for its end."""
        self._helper.end()


def _unpacked(payload: bytes) -> Ready | Rendered | Failed:
    try:
        return unpack_reply(payload)
    except msgspec.DecodeError as exc:
        raise WorkerLostError("the template process sent what is no answer") from exc
