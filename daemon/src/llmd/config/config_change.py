"""Changes a ``config.toml``: checked as a whole, written atomically, never left broken."""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

from llmd.api.errors import ConfigError
from llmd.config.config_file import values_of_text
from llmd.config.private_file import PRIVATE, replace_file
from llmd.config.sources import converted

READABLE = 0o644


def change_file(path: Path, change: Callable[[str], str], *, private: bool) -> None:
    """Replace a file by what ``change`` makes of its text; a file that is missing has an empty text.

    The mode stays; a new file can be read by its owner only if it is ``private``. If the path is a link, the
    file that it leads to is replaced.

    Raises:
        ConfigError: the new text has an error. The file stays as it was.
        LlmdError: the file cannot be written.
    """
    target = path.resolve()
    with _alone(target.parent):
        text, mode = read_text(target)
        new = change(text)
        if errors := errors_of_text(path, new):
            raise joined(errors)
        replace_file(target, new.encode(), mode or (PRIVATE if private else READABLE))


def errors_of_text(path: Path, text: str) -> list[ConfigError]:
    """Return every error of a ``config.toml`` with this text, in the order of their lines."""
    errors: list[ConfigError] = []
    for given in values_of_text(path, text, errors.append):
        try:
            converted(given)
        except ConfigError as error:
            errors.append(error)
    return sorted(errors, key=lambda error: error.line or 0)


def joined(errors: list[ConfigError]) -> ConfigError:
    """Return one error that tells all of them."""
    if len(errors) == 1:
        return errors[0]
    lines = [f"{error.message} ({error.hint})" for error in errors]
    return ConfigError("\n      ".join([f"{len(errors)} errors:", *lines]), hint="nothing was changed")


def read_text(path: Path) -> tuple[str, int | None]:
    """Return the text of a file, with its line breaks as they are, and its mode; None if it is missing.

    Raises:
        ConfigError: it cannot be read.
    """
    try:
        with path.open(newline="") as file:
            return file.read(), stat.S_IMODE(path.stat().st_mode)
    except FileNotFoundError:
        return "", None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(
            f"{path} cannot be read: {error}", hint="make it readable, or move it away"
        ) from error


@contextlib.contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Keep other commands from changing files of a folder: they would undo this change."""
    folder.mkdir(parents=True, exist_ok=True)
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
