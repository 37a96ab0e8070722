"""The translation units of the native core, and the compiler flags of each instruction set."""

from __future__ import annotations

import platform
import re
from pathlib import Path

PLUGIN = Path(__file__).resolve().parent.parent / "plugins" / "backend_cpu"
CSRC = PLUGIN / "csrc"
STANDARD = ("-std=c++20", "-ffp-contract=off", "-I.")
"""Flags of every translation unit, compiled in the source folder."""


def isa_flags() -> dict[str, tuple[str, ...]]:
    """Return the compiler flags by instruction set, as listed in ``CMakeLists.txt``."""
    flags: dict[str, tuple[str, ...]] = {}
    listed = re.findall(r"set\(LLMD_ISA_FLAGS_(\w+)([^)]*)\)", (PLUGIN / "CMakeLists.txt").read_text())
    for isa, words in listed:
        flags[isa] = tuple(flag for word in words.split() for flag in _expanded(word, flags))
    return flags


def machine_of(isa: str) -> str:
    """Return the ``platform.machine()`` of machines with this instruction set."""
    if isa == "generic":
        return platform.machine()
    return "aarch64" if isa.startswith("neon") else "x86_64"


def core_sources() -> list[Path]:
    """Return the sources for all machines that do not need Python, relative to ``csrc``."""
    paths = [*CSRC.glob("*.cpp"), *CSRC.glob("test/*.cpp")]
    return sorted(path.relative_to(CSRC) for path in paths if not path.stem.endswith("bindings"))


def binding_sources() -> list[Path]:
    """Return the sources that need the headers of Python and nanobind, relative to ``csrc``."""
    return sorted(path.relative_to(CSRC) for path in CSRC.glob("*bindings.cpp"))


def unit_source(isa: str) -> Path:
    """Return the translation unit of an instruction set, relative to ``csrc``."""
    return Path("arch") / f"{isa}.cpp"


def _expanded(word: str, flags: dict[str, tuple[str, ...]]) -> tuple[str, ...]:
    reference = re.fullmatch(r"\$\{LLMD_ISA_FLAGS_(\w+)\}", word)
    return flags[reference[1]] if reference else (word,)
