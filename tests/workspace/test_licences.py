"""Every dependency of the product and of the workspace has an accepted licence."""

from __future__ import annotations

import tomllib
from email.message import EmailMessage
from importlib import metadata
from importlib.metadata import Distribution, distributions
from pathlib import Path

import nanobind
import pytest

from tools.licences import licence_of, not_allowed

ROOT = Path(__file__).parents[2]
NOTE = ROOT / "docs" / "decisions" / "0003-licences-outside-the-allow-list.md"
INSTALLED: dict[str, Distribution] = {
    distribution.metadata["Name"]: distribution for distribution in distributions()
}


class Stated(Distribution):
    """A distribution with the metadata of a test."""

    def __init__(self, **headers: str) -> None:
        self.message = EmailMessage()
        for name, value in headers.items():
            self.message[name.replace("_", "-")] = value

    def read_text(self, filename: str) -> str | None:
        return self.message.as_string() if filename == "METADATA" else None

    def locate_file(self, path: object) -> Path:
        raise NotImplementedError


def test_every_dependency_has_an_allowed_licence_or_a_decision() -> None:
    licences = {name: licence_of(distribution) for name, distribution in INSTALLED.items()}
    assert [name for name, licence in licences.items() if not licence] == [], "they state no licence"
    outside = [(name, other) for name, licence in licences.items() for other in not_allowed(licence)]
    note = NOTE.read_text()
    undecided = [(name, other) for name, other in outside if f"| {name} | {other} |" not in note]
    assert undecided == [], f"decide in {NOTE.name}"


def test_decisions_name_only_dependencies_that_are_installed() -> None:
    rows = [line.split("|")[1].strip() for line in NOTE.read_text().splitlines() if line.startswith("| ")]
    assert set(rows) - {"Distribution"} <= set(INSTALLED)


@pytest.mark.parametrize(
    ("expression", "outside"),
    [
        ("MIT", set()),
        ("GPL-3.0-only", {"GPL-3.0-only"}),
        ("MIT AND GPL-3.0-only", {"GPL-3.0-only"}),
        ("GPL-3.0-only OR MIT", set()),
        ("(MIT)", {"(MIT)"}),
        ("", {""}),
    ],
)
def test_an_expression_is_allowed_when_one_of_its_alternatives_is(expression: str, outside: set[str]) -> None:
    assert not_allowed(expression) == outside


@pytest.mark.parametrize(
    ("distribution", "licence"),
    [
        (Stated(License_Expression="ISC", License="GPL"), "ISC"),
        (Stated(Classifier="License :: OSI Approved :: BSD License"), "BSD-3-Clause"),
        (Stated(Classifier="License :: OSI Approved :: GNU General Public License v3 (GPLv3)"),
         "GNU General Public License v3 (GPLv3)"),
        (Stated(License="Apache 2.0"), "Apache-2.0"),
        (Stated(), ""),
    ],
)  # fmt: skip
def test_licence_is_read_from_the_most_exact_statement(distribution: Distribution, licence: str) -> None:
    assert licence_of(distribution) == licence


def test_the_extension_carries_the_licences_of_what_is_linked_into_it() -> None:
    plugin = ROOT / "plugins" / "backend_cpu"
    stated = tomllib.loads((plugin / "pyproject.toml").read_text())["project"]
    files = {file.name: file.read_text() for glob in stated["license-files"] for file in plugin.glob(glob)}
    assert files["nanobind.txt"] == metadata.distribution("nanobind").read_text("licenses/LICENSE")
    robin_map = Path(nanobind.__file__).parent / "ext" / "robin_map" / "include" / "tsl" / "robin_map.h"
    comment = robin_map.read_text().partition("*/")[0].splitlines()[1:-1]
    assert files["robin-map.txt"].splitlines() == [line.removeprefix(" *").strip() for line in comment]
