"""Files change all together or not at all, whenever the process is killed."""

from __future__ import annotations

import fcntl
import os
import signal
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from llmd.api.errors import ConflictError
from llmd.host.installation import file_changes
from llmd.host.installation.file_changes import FOLDER, FileChanges

OLD = {"bin/tool": "1", "lib/site/plugin.py": "1", "lib/site/gone/part.py": "1", "lib/site/other.py": "other"}
NEW = {"bin/tool": "2", "lib/site/plugin.py": "2", "lib/site/fresh/part.py": "2"}
REMOVED = ("bin/tool", "lib/site/plugin.py", "lib/site/gone/part.py")
DONE = {**NEW, "lib/site/other.py": "other"}


@pytest.fixture
def prefix(tmp_path: Path) -> Path:
    write(tmp_path / "prefix", OLD)
    return tmp_path / "prefix"


def write(folder: Path, files: dict[str, str]) -> None:
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)


def read(prefix: Path) -> dict[str, str]:
    return {str(path.relative_to(prefix)): path.read_text() for path in prefix.rglob("*") if path.is_file()}


def changes(prefix: Path) -> FileChanges:
    return FileChanges(prefix, prefix / "lib" / "site")


def replace_all(prefix: Path) -> None:
    files = changes(prefix)
    with files.open():
        write(files.staged, NEW)
        files.apply("replacing the plugin", [prefix / path for path in REMOVED])
        files.complete()


def test_a_complete_change_leaves_nothing_but_the_new_files(prefix: Path) -> None:
    write(prefix, {"lib/site/gone/__pycache__/part.cpython-311.pyc": ""})
    replace_all(prefix)
    assert read(prefix) == DONE
    assert not (prefix / "lib/site/gone").exists()


def test_an_error_before_the_end_undoes_everything(prefix: Path) -> None:
    files = changes(prefix)
    with suppress(ZeroDivisionError), files.open():
        write(files.staged, NEW)
        files.apply("replacing the plugin", [prefix / path for path in REMOVED])
        assert read(prefix) != OLD
        raise ZeroDivisionError
    assert read(prefix) == OLD
    assert not (prefix / "lib/site/fresh").exists()


def test_a_process_killed_at_any_step_is_undone_by_the_next(prefix: Path) -> None:
    """Each child is killed one step later than the one before it, until one is complete."""
    steps = 0
    while killed_after(steps, prefix):
        undone = changes(prefix).repair()
        if read(prefix) == DONE:  # only the clean-up was missing
            break
        assert undone in {"", "replacing the plugin"}
        assert read(prefix) == OLD, f"killed after {steps} steps"
        steps += 1
    assert steps > len(NEW) + len(REMOVED)
    assert read(prefix) == DONE


def test_a_process_killed_while_it_undoes_is_undone_too(prefix: Path) -> None:
    steps = 0
    while True:
        assert killed_after(6, prefix)
        ended = not killed_after(steps, prefix, repairing=True)
        changes(prefix).repair()
        assert read(prefix) == OLD, f"killed after {steps} steps of the repair"
        if ended:
            break
        steps += 1
    assert steps > 3


def killed_after(steps: int, prefix: Path, *, repairing: bool = False) -> bool:
    """Change or repair in a child that kills itself after this number of renames and removals."""
    child = os.fork()
    if child == 0:
        sys.setprofile(_Killer(steps))
        changes(prefix).repair() if repairing else replace_all(prefix)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) or os.waitstatus_to_exitcode(status) == 0
    return os.WIFSIGNALED(status)


class _Killer:
    """A profiler that kills its process after some renames and removals of files."""

    def __init__(self, steps: int) -> None:
        self._left = steps
        self._counted = {os.rename, os.replace, os.unlink, os.rmdir}

    def __call__(self, _frame: object, event: str, called: object) -> None:
        if event == "c_return" and called in self._counted:
            if self._left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            self._left -= 1


def test_new_files_are_readable_as_their_folder_is(prefix: Path) -> None:
    (prefix / "lib" / "site").chmod(0o755)
    before = os.umask(0o077)
    try:
        replace_all(prefix)
        assert os.umask(0o077) == 0o077, "the mask is as before"
    finally:
        os.umask(before)
    modes = {path: path.stat().st_mode & 0o777 for path in (prefix / "lib" / "site" / "fresh").rglob("*")}
    assert set(modes.values()) == {0o644}
    assert (prefix / "lib" / "site" / "fresh").stat().st_mode & 0o777 == 0o755


def test_only_one_process_changes_an_environment(prefix: Path) -> None:
    number = os.open(prefix / "lib" / "site", os.O_RDONLY)
    fcntl.flock(number, fcntl.LOCK_EX)
    with pytest.raises(ConflictError, match="another `llmd plugins` command"), changes(prefix).open():
        pass
    (prefix / "lib" / "site" / FOLDER).mkdir()
    assert changes(prefix).repair() == "", "the other process is at work"
    os.close(number)
    assert changes(prefix).repair() == ""
    assert not (prefix / "lib" / "site" / FOLDER).exists()


def test_bytecode_of_a_source_that_exists_is_kept(tmp_path: Path) -> None:
    write(tmp_path, {"a.py": "", "__pycache__/a.cpython-311.pyc": "", "__pycache__/b.cpython-311.pyc": ""})
    file_changes.remove_bytecode(tmp_path / "a.py")
    file_changes.remove_bytecode(tmp_path / "b.py")
    assert set(read(tmp_path)) == {"a.py", "__pycache__/a.cpython-311.pyc"}
