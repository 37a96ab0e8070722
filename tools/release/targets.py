"""The compiled wheels of a release: for which Python and which machine."""

from __future__ import annotations

from typing import NamedTuple

SUITES = {"3.11": "bookworm", "3.13": "trixie"}
"""The Debian release whose packages hold each Python."""
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
"""Debian's names of the machines."""


class Target(NamedTuple):
    """A Python and a machine that one compiled wheel is for."""

    python: str
    """Such as 3.13: the Python that the wheel is built and tested with."""
    machine: str
    """As `platform.machine()` names it."""

    @property
    def suite(self) -> str:
        return SUITES[self.python]

    @property
    def architecture(self) -> str:
        return ARCHITECTURES[self.machine]

    @property
    def tag(self) -> str:
        """The first part of the wheel's tag. Every Python from 3.12 on shares one wheel."""
        return "cp311-cp311" if self.python == "3.11" else "cp312-abi3"

    def __str__(self) -> str:
        return f"Python {self.python} on {self.machine}"


TARGETS = tuple(Target(python, machine) for machine in ARCHITECTURES for python in SUITES)
UNTESTED = "musl and macOS on arm64 are neither built nor tested."
