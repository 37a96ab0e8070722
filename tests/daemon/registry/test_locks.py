from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from llmd.registry.locks import FileLock, locked


def taken(path: Path, *, alone: bool) -> bool:
    lock = FileLock.take(path, alone=alone, wait=False)
    if lock is not None:
        lock.close()
    return lock is None


def test_several_share_a_lock_and_one_may_have_it_alone(tmp_path: Path) -> None:
    path = tmp_path / "below" / "lock"
    with locked(path, alone=False):
        assert not taken(path, alone=False)
        assert taken(path, alone=True)
    with locked(path, alone=True):
        assert taken(path, alone=False)
    assert not taken(path, alone=True)


def test_closing_twice_gives_back_once(tmp_path: Path) -> None:
    lock = FileLock.take(tmp_path / "lock", alone=True)
    assert lock is not None
    lock.close()
    lock.close()
    assert not taken(tmp_path / "lock", alone=True)


def test_a_process_that_dies_gives_its_locks_back(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    code = f"""
import os, sys
from pathlib import Path
from llmd.registry.locks import FileLock
lock = FileLock.take(Path({str(path)!r}), alone=True)
print("taken", flush=True)
sys.stdin.read()
"""
    command = [sys.executable, "-c", code]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"taken\n"
        assert taken(path, alone=True)
        process.kill()
    assert not taken(path, alone=True)
