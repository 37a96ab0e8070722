"""The release script builds every file from a commit, and tries the wheels where they are meant to run."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.environments import UV, Environment
from tools.release.artefacts import SUMS, compare, expected
from tools.release.rules import common_version, versions
from tools.release.targets import TARGETS

pytestmark = [pytest.mark.packaging, pytest.mark.exhaustive, pytest.mark.timeout(5400)]

ROOT = Path(__file__).parents[2]
VERSION = common_version(versions(ROOT))
MADE = (".tools", ".venv", "wheelhouse")
"""What `make setup` makes in a checkout."""
LACKING = [
    name for name in ("mmdebstrap", "qemu-aarch64", "aarch64-linux-gnu-g++") if shutil.which(name) is None
]
NEEDS_DEBIAN = pytest.mark.skipif(bool(LACKING), reason=f"needs {', '.join(LACKING)}")


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout of this commit with an entry for its version in the changelog."""
    folder = clone(ROOT, tmp_path_factory.mktemp("checkout") / "llmd")
    changelog = folder / "CHANGELOG.md"
    entry = f"## [{VERSION}] - 2026-01-01"
    changelog.write_text(changelog.read_text().replace("## [Unreleased]", entry, 1))
    identity = ("-c", "user.name=someone", "-c", "user.email=someone@example.org")
    run("git", "-C", folder, *identity, "commit", "--quiet", "--all", "--message=Release")
    run("make", "--silent", f"--directory={folder}", f"PYTHON={sys.executable}", ".venv-release/.made")
    return folder


@pytest.fixture(scope="module")
def release(checkout: Path) -> Path:
    """The folder of a release."""
    run(sys.executable, "-m", "tools.release", "--root", checkout)
    return checkout / "dist" / VERSION


def clone(source: Path, folder: Path) -> Path:
    """Clone a repository and give it what `make setup` makes."""
    run("git", "clone", "--quiet", source, folder)
    for name in MADE:
        (folder / name).symlink_to((ROOT / name).resolve())
    ignored = "".join(f"/{name}\n" for name in (*MADE, ".venv-release"))
    (folder / ".git" / "info" / "exclude").write_text(ignored)
    return folder


def run(*command: str | Path) -> None:
    subprocess.run([str(word) for word in command], check=True, cwd=ROOT)


@NEEDS_DEBIAN
def test_a_release_is_complete_and_its_checksums_hold(release: Path) -> None:
    names = {path.name for path in release.iterdir()}
    assert compare(names - {SUMS}, expected(VERSION, TARGETS)) == []
    assert subprocess.run(["sha256sum", "--check", "--quiet", SUMS], check=False, cwd=release).returncode == 0
    assert len((release / SUMS).read_text().splitlines()) == len(names) - 1


@NEEDS_DEBIAN
def test_the_same_commit_gives_the_same_bytes(checkout: Path, release: Path, tmp_path: Path) -> None:
    second = clone(checkout, tmp_path / "another folder")
    (second / ".venv-release").symlink_to(checkout / ".venv-release")
    run(sys.executable, "-m", "tools.release", "--root", second, "--target", "x86_64:3.13")
    again = [path for path in (second / "dist" / VERSION).iterdir() if path.name != SUMS]
    assert {path.name for path in again if path.read_bytes() != (release / path.name).read_bytes()} == set()


@NEEDS_DEBIAN
def test_its_wheels_replace_those_of_the_workspace_without_an_index(
    release: Path, wheelhouse: Path, tmp_path: Path
) -> None:
    others = tmp_path / "others"
    ours = shutil.ignore_patterns("llmd_*")
    shutil.copytree(wheelhouse, others, ignore=ours)
    environment = Environment(tmp_path / "tools" / "llmd-daemon")
    # The home of the environment is its own folder: uv's cache there would look like a broken environment.
    folders = {"UV_CACHE_DIR": "cache", "UV_TOOL_DIR": "tools", "UV_TOOL_BIN_DIR": "programs"}
    variables = {name: str(tmp_path / folder) for name, folder in folders.items()}
    links = [f"--find-links={folder}" for folder in (release, others)]
    plugins = [
        f"--with=llmd-{name}"
        for name in ("backend-cpu", "backend-cuda", "backend-vulkan", "transport", "tui")
    ]
    subprocess.run(
        [str(UV), "tool", "install", "-q", "--no-index", *links, *plugins, "--python", sys.executable, "llmd-daemon"],
        check=True, env={**environment.variables(), **variables},
    )  # fmt: skip
    assert re.search(r"\bcpu\b", environment.run("llmd", "plugins", "list"))
