"""``python -m tools.native_warnings COMPILER``: check the native core for warnings, without output files.

Any warning is an error. Each unit is compiled for the machine of its instruction set. Units for another
machine need Debian's cross compiler (for clang, its headers); without it they are reported and skipped.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tools.native import CSRC, STANDARD, binding_sources, core_sources, isa_flags, machine_of, unit_source

WARNINGS = ("-fsyntax-only", "-Wall", "-Wextra", "-Werror")


def main() -> None:
    """Print the compiler's messages and exit with 1 if there are any."""
    (compiler,) = sys.argv[1:]
    found = warnings(compiler)
    print("".join(found), end="")
    sys.exit(bool(found))


def warnings(compiler: str) -> list[str]:
    """Return the messages of ``compiler`` for each translation unit with a warning or error."""
    with ThreadPoolExecutor(max_workers=len(os.sched_getaffinity(0))) as pool:
        return [objection for objection in pool.map(said, _commands(compiler)) if objection]


def _commands(compiler: str) -> Iterator[Sequence[str]]:
    for isa, flags in isa_flags().items():
        command = _for_machine(compiler, machine_of(isa))
        if command is None:
            print(
                f"native_warnings: {unit_source(isa)} is skipped: no {compiler} for {machine_of(isa)} is installed"
            )
        else:
            yield [*command, *flags, str(unit_source(isa))]
    here = [compiler, *STANDARD, *WARNINGS]
    for source in core_sources():
        yield [*here, str(source)]
    for source in binding_sources():
        yield [*here, *_headers_of_python(), '-DLLMD_VERSION=""', str(source)]


def _for_machine(compiler: str, machine: str) -> list[str] | None:
    """Return the command that compiles for ``machine``, or None if its compiler is not installed."""
    if machine == platform.machine():
        return [compiler, *STANDARD, *WARNINGS]
    target = f"{machine}-linux-gnu"
    if "clang" in compiler:
        has_headers = Path("/usr", target, "include").is_dir()
        return [compiler, f"--target={target}", *STANDARD, *WARNINGS] if has_headers else None
    cross = shutil.which(f"{target}-{compiler}")
    return [cross, *STANDARD, *WARNINGS] if cross else None


def _headers_of_python() -> Iterator[str]:
    import nanobind

    for folder in (sysconfig.get_path("include"), nanobind.include_dir()):
        yield f"-isystem{folder}"


def said(command: Sequence[str]) -> str:
    """Return a compiler's messages; empty if it succeeds."""
    done = subprocess.run(command, cwd=CSRC, capture_output=True, text=True, check=False)
    return done.stderr if done.returncode else ""


if __name__ == "__main__":
    main()
