"""Opens a text in the person's editor."""

from __future__ import annotations

import os
import shlex
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

from textual.app import App, SuspendNotSupported

from llmd.api.errors import LlmdError

FALLBACK = "vi"


def edited(text: str, environ: Mapping[str, str]) -> str:
    """Return a text after its editing in ``$VISUAL`` or ``$EDITOR``. The terminal must be free.

    Raises:
        LlmdError: the editor cannot be started, or it failed.
    """
    command = shlex.split(environ.get("VISUAL") or environ.get("EDITOR") or FALLBACK)
    with tempfile.TemporaryDirectory(prefix="llmd-") as folder:
        path = Path(folder) / "message.md"
        path.touch(mode=0o600)
        path.write_text(text, encoding="utf-8")
        try:
            subprocess.run([*command, str(path)], check=True)
            return path.read_text(encoding="utf-8").removesuffix("\n")
        except OSError as error:
            raise LlmdError(
                f"the editor {command[0]} cannot be started: {error.strerror}", hint="set $EDITOR"
            ) from error
        except (subprocess.CalledProcessError, UnicodeDecodeError) as error:
            raise LlmdError(f"the editor failed, the text stays as it was: {error}") from error


def edited_outside(app: App[None], text: str) -> str:
    """Leave the screen to the editor and return the text after its editing.

    Raises:
        LlmdError: the screen cannot be left, or the editor failed.
    """
    try:
        with app.suspend():
            return edited(text, os.environ)
    except SuspendNotSupported as error:
        raise LlmdError("this terminal cannot be left to an editor") from error
