"""Builds the native core and its runner without Python: with sanitizers, or for another machine."""

from __future__ import annotations

import fcntl
import hashlib
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from tools.native import CSRC, PLUGIN, STANDARD, core_sources, isa_flags, unit_source


def built_units() -> list[Path]:
    """The objects of the instruction-set units that `make setup` has left where it built the extension."""
    project = tomllib.loads((PLUGIN / "pyproject.toml").read_text())
    stable = project["tool"]["scikit-build"]["wheel"]["py-api"]  # later Pythons use what is built for this
    python = min(f"cp{sys.version_info.major}{sys.version_info.minor}", stable)
    return sorted((PLUGIN / "build").glob(f"{python}-*/CMakeFiles/_ext.dir/csrc/arch/*.o"))


def check_syntax(compiler: str, isa: str) -> None:
    """Let a compiler check the source of a unit, without making code."""
    _run([compiler, *STANDARD, *isa_flags()[isa], "-fsyntax-only", str(unit_source(isa))])


def build_runner(compiler: str, isas: Sequence[str], flags: Sequence[str]) -> Path:
    """The program ``replay`` with the units of these instruction sets.

    What was built from the same sources with the same flags is taken from ``build/``.
    """
    with _alone_in(_folder(compiler, flags)) as folder:
        runner = folder / f"replay-{'-'.join(isas)}"
        return runner if runner.exists() else _build(runner, compiler, isas, flags)


@contextmanager
def _alone_in(folder: Path) -> Iterator[Path]:
    """Keep other processes that run tests from building the same."""
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield folder


def _build(runner: Path, compiler: str, isas: Sequence[str], flags: Sequence[str]) -> Path:
    folder = runner.parent
    with ThreadPoolExecutor(max_workers=2) as pool:
        units = pool.map(lambda isa: _unit(folder, compiler, isa, flags), isas)
        objects = [
            *pool.map(lambda source: _compile(folder, compiler, source, flags), core_sources()),
            *units,
        ]
    unfinished = runner.with_suffix(".new")
    _run([compiler, *flags, "-pthread", *map(str, objects), "-o", str(unfinished)])
    return unfinished.rename(runner)


def _unit(folder: Path, compiler: str, isa: str, flags: Sequence[str]) -> Path:
    return _compile(folder, compiler, unit_source(isa), (*flags, *isa_flags()[isa]))


def _folder(compiler: str, flags: Sequence[str]) -> Path:
    """A folder named by everything that goes into a build."""
    digest = hashlib.sha256(repr((compiler, flags, STANDARD, isa_flags())).encode())
    for path in sorted(CSRC.rglob("*.[ch]pp")):
        digest.update(path.read_bytes())
    folder = PLUGIN / "build" / f"replay-{digest.hexdigest()[:16]}"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _compile(folder: Path, compiler: str, source: Path, flags: Sequence[str]) -> Path:
    compiled = folder / f"{source.parent.name}-{source.stem}.o"
    if not compiled.exists():
        unfinished = compiled.with_suffix(".new")
        _run([compiler, *STANDARD, *flags, "-c", str(source), "-o", str(unfinished)])
        unfinished.rename(compiled)
    return compiled


def _run(command: Sequence[str]) -> None:
    done = subprocess.run(command, cwd=CSRC, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:4000]
