"""The container file agrees with the workspace."""

from __future__ import annotations

import re
from fnmatch import fnmatch
from pathlib import Path

from packaging.requirements import Requirement

from tools.constraints import constraints
from tools.release.rules import common_version, versions

ROOT = Path(__file__).parents[2]
CONTAINER_FILE = (ROOT / "Containerfile").read_text()
IGNORED = (ROOT / ".dockerignore").read_text().splitlines()


def copied() -> list[str]:
    """Return what the build copies from the clone."""
    lines = re.findall(r"^COPY (?!--from)(.*) \S+$", CONTAINER_FILE, re.MULTILINE)
    return [word for line in lines for word in line.split()]


def test_its_label_has_the_version_of_the_workspace() -> None:
    assert f"ARG VERSION={common_version(versions(ROOT))}\n" in CONTAINER_FILE


def test_the_build_gets_what_it_copies_and_nothing_else() -> None:
    assert sorted(copied()) == sorted(line[1:] for line in IGNORED if line.startswith("!"))
    assert all((ROOT / name).exists() for name in copied())


def test_products_of_builds_stay_out() -> None:
    products = ("daemon/build/x", "plugins/backend_cpu/src/llmd_backend_cpu/_ext.abi3.so")
    patterns = [line for line in IGNORED if line.startswith("**/")]
    for product in products:
        parts = Path(product).parts
        assert any(fnmatch(part, pattern.removeprefix("**/")) for part in parts for pattern in patterns)


def test_constraints_pin_every_locked_package_but_ours() -> None:
    lines = constraints((ROOT / "uv.lock").read_text()).splitlines()
    pinned = [Requirement(line) for line in lines]
    here = [one.name for one in pinned if one.marker is None or one.marker.evaluate()]
    assert len(here) == len(set(here))
    assert {"numpy", "aiohttp", "scikit-build-core"} <= set(here)
    assert not [one for one in pinned if one.name.startswith("llmd")]


def test_versions_for_some_pythons_are_pinned_for_these() -> None:
    lock = """
    [[package]]
    name = "sphinx"
    version = "9.0"
    source = { registry = "an index" }
    resolution-markers = ["python_full_version < '3.12'"]
    """
    assert constraints(lock) == "sphinx==9.0 ; (python_full_version < '3.12')\n"
