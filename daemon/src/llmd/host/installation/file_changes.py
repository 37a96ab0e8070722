"""Replaces files of an environment, all or nothing.

A journal is written before the first file moves, and replaced files are kept until the change is complete. So
a change that failed or was killed can be undone, by the same process or by the next one that looks.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from llmd.api.decoding import prepared
from llmd.api.errors import ConflictError, NotPermittedError

FOLDER = ".llmd-plugins"
"""Below the folder of installed modules, so that files move within one file system."""


class Journal(msgspec.Struct, frozen=True):
    """A change that began. Paths are relative to the prefix of the environment."""

    purpose: str
    """What it does, such as ``installing llmd-backend-x``."""
    old: list[str]
    """Files that are removed or replaced."""
    new: list[str]
    """Files that are put there."""


class FileChanges:
    """A change of the files below ``prefix``. ``site`` is the folder of installed modules."""

    def __init__(self, prefix: Path, site: Path) -> None:
        self._prefix = prefix
        self._site = site
        self.folder = site / FOLDER
        self.staged = self.folder / "staged"
        """Holds the new files, at the paths that they will have below the prefix."""
        self._kept = self.folder / "kept"
        self._journal = self.folder / "journal.json"

    @contextmanager
    def open(self) -> Iterator[None]:
        """Hold the environment's lock; undo what an earlier change, or this one, did not complete.

        Raises:
            ConflictError: another process is changing this environment.
        """
        with self._locked(), self._readable():
            self._undo()
            self.staged.mkdir(parents=True)
            try:
                yield
            finally:
                self._undo()

    def repair(self) -> str:
        """Undo a change that was interrupted; return its purpose, or an empty string if there is none.

        Raises:
            NotPermittedError: there is one, but this user may not change the environment.
        """
        if not self.folder.exists():
            return ""
        try:
            with self._locked():
                return self._undo()
        except ConflictError:  # not interrupted: it is still going on
            return ""
        except PermissionError as error:
            raise NotPermittedError(
                f"a change of the plugins in {self._prefix} was interrupted, and you may not undo it",
                hint="run `llmd plugins list` as the user who owns that folder",
            ) from error

    def apply(self, purpose: str, old: Iterable[Path]) -> None:
        """Remove the files ``old`` (absolute paths) and move the staged files into place."""
        from llmd.config.private_file import replace_private_file  # not while a group of commands is loaded

        new = [path.relative_to(self.staged) for path in files_below(self.staged)]
        replaced = [self._prefix / path for path in new if os.path.lexists(self._prefix / path)]
        gone = sorted({path.relative_to(self._prefix) for path in [*old, *replaced]})
        journal = Journal(purpose, list(map(str, gone)), list(map(str, new)))
        replace_private_file(self._journal, msgspec.json.encode(journal))
        for path in gone:
            _move(self._prefix / path, self._kept / path)
        for path in new:
            _move(self.staged / path, self._prefix / path)
        self._prune(self._prefix / path for path in gone)

    def complete(self) -> None:
        """Keep the change: from here on it cannot be undone."""
        self._journal.unlink()
        self._remove_folder()

    def _undo(self) -> str:
        """Bring the files back that the journal names, and remove what is left of a change."""
        if not self._journal.exists():
            self._remove_folder()
            return ""
        journal = msgspec.json.decode(self._journal.read_bytes(), type=prepared(Journal))
        untouched = {path for path in journal.old if not os.path.lexists(self._kept / path)}
        for path in journal.new:
            if path not in untouched:
                (self._prefix / path).unlink(missing_ok=True)
        for path in journal.new:
            remove_bytecode(self._prefix / path)
        for path in journal.old:
            if path not in untouched:
                _move(self._kept / path, self._prefix / path)
        self._prune(self._prefix / path for path in journal.new)
        self._journal.unlink()
        self._remove_folder()
        return journal.purpose

    def _prune(self, paths: Iterable[Path]) -> None:
        """Remove the folders of these files that are empty now."""
        for path in paths:
            remove_bytecode(path)
            for folder in path.parents:
                if folder in {self._prefix, self._site}:
                    break
                try:
                    folder.rmdir()
                except OSError:
                    break

    def _remove_folder(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)

    @contextmanager
    def _readable(self) -> Iterator[None]:
        """Let everyone read new files who may read the folder of modules, whatever the mask of this user is.

        The system's service is another user. pip uses the mask, too.
        """
        before = os.umask(0o777 & ~self._site.stat().st_mode)
        try:
            yield
        finally:
            os.umask(before)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Lock the folder of modules itself: a lock file would have to stay there."""
        number = os.open(self._site, os.O_RDONLY)
        try:
            self._lock(number)
            yield
        finally:
            os.close(number)

    def _lock(self, number: int) -> None:
        try:
            fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise ConflictError(
                f"another `llmd plugins` command is changing {self._prefix}",
                hint="run the command again when that one is done",
            ) from error


def files_below(folder: Path) -> list[Path]:
    """Return the files and links below a folder, in order."""
    found = (Path(root) / name for root, _, names in os.walk(folder) for name in names)
    return sorted(found)


def remove_bytecode(source: Path) -> None:
    """Remove what Python compiled from a source file that is gone, and the folder if that was all."""
    if source.suffix != ".py" or source.exists():
        return
    folder = source.parent / "__pycache__"
    for compiled in folder.glob(f"{source.stem}.*.pyc"):
        compiled.unlink(missing_ok=True)
    with contextlib.suppress(OSError):
        folder.rmdir()


def _move(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    source.replace(target)
