"""The process in which untrusted chat templates render: ``python -m llmd.chat.templates.template_worker MEMORY_BYTES``.

Frames come on standard input and leave on standard output. Imports only jinja2 and msgspec, so that starting it
again after a breach costs a tenth of a second.
"""

from __future__ import annotations

import resource
import signal
import sys
from typing import IO

import jinja2
from jinja2.exceptions import SecurityError

from llmd.chat.templates.template_environment import RefusedByTemplateError, TemplateSandbox
from llmd.chat.templates.template_frames import (
    HEADER_BYTES,
    Failed,
    Ready,
    Rendered,
    RenderJob,
    pack,
    unpack_job,
)

# The front ends a render that takes too long. If the front itself has died, this many seconds end it.
_ORPHAN_LIMIT_S = 60


def main(memory_bytes: int) -> None:
    """Serve jobs until standard input ends or memory runs out."""
    resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    jobs, replies = sys.stdin.buffer, sys.stdout.buffer
    sandbox = TemplateSandbox()
    _send(replies, pack(Ready()))
    out_of_memory = pack(Failed("memory", "out of memory"))
    while header := jobs.read(HEADER_BYTES):
        payload = jobs.read(int.from_bytes(header, "little"))
        try:
            reply = _answer(sandbox, payload)
        except MemoryError:
            _send(replies, out_of_memory)
            return
        _send(replies, reply)


def _answer(sandbox: TemplateSandbox, payload: bytes) -> bytes:
    signal.alarm(_ORPHAN_LIMIT_S)
    try:
        return pack(_render(sandbox, unpack_job(payload)))
    except UnicodeEncodeError:
        return pack(Failed("runtime", "the text holds lone surrogates, which are no characters"))
    finally:
        signal.alarm(0)


def _render(sandbox: TemplateSandbox, job: RenderJob) -> Rendered | Failed:
    try:
        return Rendered(sandbox.render(job))
    except RefusedByTemplateError as exc:
        return Failed("refused", str(exc))
    except jinja2.TemplateSyntaxError as exc:
        return Failed("syntax", f"line {exc.lineno}: {exc.message}")
    except SecurityError as exc:
        return Failed("sandbox", str(exc))
    except MemoryError:
        raise
    except Exception as exc:  # noqa: BLE001 — expressions of a template may raise anything
        return Failed("runtime", f"{type(exc).__name__}: {exc}")


def _send(replies: IO[bytes], frame: bytes) -> None:
    replies.write(frame)
    replies.flush()


if __name__ == "__main__":
    main(int(sys.argv[1]))
