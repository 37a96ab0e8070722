"""The library's binary interface: what it exports, needs and refuses, and that older programs go on working.

Each release is kept in a folder below ``bindings/c/abi/``: its header, its list of symbols, and the test
program that was compiled with them. Everything that a compiled program has of the library is in its header:
compiling that program again with that header gives the program of that release, on every machine.
"""

from __future__ import annotations

import ctypes
import re
import subprocess
from importlib.metadata import version
from pathlib import Path

import pytest

from tests.bindings.building import HERE, SOURCES, Library, Probe
from tests.bindings.scripted_server import events, scripted
from tests.bindings.tables import FUNCTIONS, HEADER

ABI = SOURCES / "abi"
RELEASES = sorted(path.parent for path in ABI.glob("*/llmd.h"))
# What would end the program, print, or change what belongs to all of it.
BAD_ARGUMENT, BAD_ABI = 2, 3
FREES = {"llmd_close", "llmd_request_free", "llmd_cancel"}  # they return nothing
FORBIDDEN = {
    "abort", "exit", "_exit", "quick_exit", "raise", "printf", "puts", "putchar", "vprintf", "fprintf", "perror",
    "stdout", "stderr", "signal", "sigaction", "sigprocmask", "pthread_sigmask", "setlocale", "setenv", "putenv",
    "unsetenv", "chdir", "umask", "srand", "system", "popen", "fork", "strerror", "strtok", "strtod", "atof",
    "__assert_fail",
}  # fmt: skip


def symbols(library: Library, which: str) -> list[str]:
    listed = subprocess.run(
        ("nm", "-D", "--with-symbol-versions", which, library.file),
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    return sorted(line.split()[-1] for line in listed.splitlines())


def test_the_exported_symbols_are_those_of_the_list(library: Library) -> None:
    assert symbols(library, "--defined-only") == (ABI / "symbols.txt").read_text().splitlines()


def test_the_exported_symbols_are_the_functions_of_the_header(library: Library) -> None:
    exported = {name.partition("@")[0] for name in symbols(library, "--defined-only")}
    assert exported - {"LLMD_1"} == set(FUNCTIONS)
    assert len(FUNCTIONS) == len(set(FUNCTIONS)) > 30


def test_nothing_is_used_that_ends_the_program_prints_or_changes_its_state(library: Library) -> None:
    used = {name.partition("@")[0] for name in symbols(library, "--undefined-only")}
    assert {"poll", "send", "posix_spawnp"} <= used
    assert used & FORBIDDEN == set()


def test_another_abi_version_is_refused(library: Library) -> None:
    loaded = ctypes.CDLL(str(library.file))
    current = loaded.llmd_abi_version()
    assert re.search(rf"^#define LLMD_ABI_VERSION {current}$", HEADER, re.MULTILINE)
    for other in (current - 1, current + 1, -1, 1 << 30):
        handle = ctypes.c_void_p(7)
        assert loaded.llmd_open_abi(other, ctypes.byref(handle)) == BAD_ABI
        assert handle.value is None
    assert loaded.llmd_open_abi(current, None) == BAD_ARGUMENT


def test_the_version_is_that_of_llmd(library: Library) -> None:
    loaded = ctypes.CDLL(str(library.file))
    loaded.llmd_version.restype = ctypes.c_char_p
    assert loaded.llmd_version().decode() == version("llmd-daemon")


def test_handles_that_are_null_are_refused(library: Library) -> None:
    """Every function that takes a handle may get NULL, and all other arguments may be NULL or 0."""
    loaded = ctypes.CDLL(str(library.file))
    for declared in re.findall(r"^llmd_status (llmd_\w+)\(", HEADER, re.MULTILINE):
        assert getattr(loaded, declared)(*[None] * 5) in {BAD_ARGUMENT, BAD_ABI}, declared
    for declared in re.findall(r"^const char\* (llmd_\w+)\(const llmd", HEADER, re.MULTILINE):
        function = getattr(loaded, declared)
        function.restype = ctypes.c_char_p
        assert function(None, None) in {None, b"", b"the handle is NULL"}, declared
    others = re.findall(r"^(?:void|size_t|const (?:float|int32_t)\*) (llmd_\w+)\(", HEADER, re.MULTILINE)
    assert {"llmd_close", "llmd_request_free", "llmd_cancel", "llmd_vector", "llmd_tokens"} < set(others)
    for declared in others:
        assert not getattr(loaded, declared)(None, None, None) or declared in FREES, declared


@pytest.mark.parametrize("release", ["next", *(path.name for path in RELEASES)])
def test_programs_of_each_release_go_on_working(
    release: str, library: Library, clean_environment: dict[str, str], tmp_path: Path
) -> None:
    header, source, listed = SOURCES / "include", HERE / "probe.c", ABI / "symbols.txt"
    if release != "next":
        header, source, listed = ABI / release, ABI / release / "probe.c", ABI / release / "symbols.txt"
    assert set(listed.read_text().splitlines()) <= set(symbols(library, "--defined-only"))
    program = library.program(source, include=header, name=f"probe-{release}")
    probe = Probe((str(program),), clean_environment)
    chunk = '{"choices":[{"delta":{"content":"Hi"}}]}'
    with scripted(tmp_path, [events(chunk)]) as server:
        assert probe.ask(server.address, "message", "user", "Hello", "chat")["answer"] == "Hi"
