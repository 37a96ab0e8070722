"""The process that renders untrusted chat templates:
``python -m llmd.chat.templates.template_worker MEMORY_BYTES``.

The only third-party packages it imports are jinja2 and msgspec, so that a restart takes a tenth of a second.
"""

from __future__ import annotations

import sys

import jinja2
from jinja2.exceptions import SecurityError

from llmd.chat.templates.render_messages import Failed, Rendered, RenderJob, pack, unpack_job
from llmd.chat.templates.template_environment import RefusedByTemplateError, TemplateSandbox
from llmd.process.serve import serve


class TemplateWorker:
    """Renders templates in one sandbox."""

    def __init__(self) -> None:
        self._sandbox = TemplateSandbox()

    def answer(self, payload: bytes) -> bytes:
        """Return the packed reply to a packed `RenderJob`."""
        try:
            return pack(self._render(unpack_job(payload)))
        except UnicodeEncodeError:
            return pack(Failed("runtime", "the text contains lone surrogates, which are not characters"))

    def _render(self, job: RenderJob) -> Rendered | Failed:
        try:
            return Rendered(self._sandbox.render(job))
        except RefusedByTemplateError as exc:
            return Failed("refused", str(exc))
        except jinja2.TemplateSyntaxError as exc:
            return Failed("syntax", f"line {exc.lineno}: {exc.message}")
        except SecurityError as exc:
            return Failed("sandbox", str(exc))
        except MemoryError:
            raise
        except Exception as exc:  # noqa: BLE001 — an expression in a template may raise anything
            return Failed("runtime", f"{type(exc).__name__}: {exc}")


if __name__ == "__main__":
    serve(
        TemplateWorker().answer,
        memory_bytes=int(sys.argv[1]),
        out_of_memory=pack(Failed("memory", "out of memory")),
    )
