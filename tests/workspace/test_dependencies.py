"""The distributions' direct and transitive dependencies, and their licence files."""

from __future__ import annotations

from importlib.metadata import distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tools.wheelhouse import DISTRIBUTIONS

ROOT = Path(__file__).parents[2]


def closure(name: str) -> set[str]:
    """Return the names of all distributions that installing ``name`` installs on this machine."""
    found: set[str] = set()
    wanted = [name]
    while wanted:
        current = canonicalize_name(wanted.pop())
        if current not in found:
            found.add(current)
            wanted += required_by(current)
    return found


def required_by(name: str) -> list[str]:
    """Return the names that a distribution requires on this machine, without extras."""
    requirements = [Requirement(text) for text in distribution(name).requires or []]
    return [
        requirement.name
        for requirement in requirements
        if requirement.marker is None or requirement.marker.evaluate({"extra": ""})
    ]


def test_daemon_needs_no_plugin() -> None:
    assert not {name for name in closure("llmd-daemon") if name.startswith("llmd-")} - {"llmd-daemon"}


def test_nothing_needs_torch_or_transformers_or_a_foreign_llmd() -> None:
    everything = (
        closure("llmd-daemon") | closure("llmd-backend-cpu") | closure("llmd-transport") | closure("llmd-tui")
    )
    assert "aiohttp" in everything
    assert not everything & {"torch", "transformers", "llmd"}


def test_plugins_need_the_daemon_for_its_contracts() -> None:
    assert "llmd-daemon" in closure("llmd-backend-cpu") & closure("llmd-transport") & closure("llmd-tui")


@pytest.mark.parametrize("folder", DISTRIBUTIONS)
def test_every_distribution_carries_the_licence(folder: str) -> None:
    # A copy, not a link: a source distribution may not refer to files outside itself.
    licence = ROOT / folder / "LICENSE"
    assert not licence.is_symlink()
    assert licence.read_text() == (ROOT / "LICENSE").read_text()
