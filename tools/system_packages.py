"""Installs the system packages that the workspace needs, on Debian and its derivatives.

Runs in a separate process, because apt may replace the Python that runs it. An outdated Python can run this
module far enough to report that it is too old.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import platform
import shutil
import subprocess
import sys
import sysconfig
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path

OLDEST_PYTHON = (3, 11)
# Package, program and purpose of what `make test` uses. Without them, tests are skipped.
TESTS = (
    ("curl", "curl", "running an example"),
    ("glslc", "glslc", "bugs that are planted in Vulkan shaders"),
    ("systemd", "systemd-analyze", "checking unit files"),
)
KOMPUTE = (
    (
        "libvulkan-dev",
        "/usr/include/vulkan/vulkan.h",
        "compiling Kompute, for the tests of the Vulkan backend",
    ),
    ("libfmt-dev", "/usr/include/fmt/format.h", "compiling Kompute"),
)
"""Package, a file of it and purpose of libraries that the build of Kompute needs."""
VULKAN_DRIVER = (
    "mesa-vulkan-drivers",
    "usr/share/vulkan/icd.d/lvp_icd*.json",
    "a Vulkan device of the processor",
)
NEON = (
    ("g++-aarch64-linux-gnu", "aarch64-linux-gnu-g++", "compiling the NEON tests"),
    ("qemu-user", "qemu-aarch64", "running the NEON tests"),
)
EXHAUSTIVE = (
    ("buildah", "buildah", "building the container"),
    ("chromium", "chromium", "testing the web page"),
    ("clang-19", "clang++-19", "a second compiler's warnings"),
    ("fish", "fish", "its completion of commands"),
    ("golang-go", "go", "the bindings' example in Go"),
    ("mandoc", "mandoc", "checking the manual page"),
    ("mmdebstrap", "mmdebstrap", "the Debian of the container, and the Pythons of a release"),
    ("pipx", "pipx", "plugins in its environments"),
    ("rustc", "rustc", "the bindings' example in Rust"),
    ("tmux", "tmux", "a session in a real terminal"),
    ("valgrind", "valgrind", "memory errors of the C library"),
    ("zsh", "zsh", "its completion of commands"),
)
"""What only ``make test-full`` needs."""
SAMPLES = Path(__file__).resolve().parent.parent / ".llama-cpp-samples"


class Use(IntEnum):
    """What a workspace is set up for; each use needs the packages of those before it, too."""

    RUN = 0
    TEST = 1
    EXHAUSTIVE = 2


@dataclass(frozen=True)
class SystemPackage:
    """One Debian package, whether it is installed, and what it is for."""

    name: str
    is_present: bool
    purpose: str
    is_required: bool = True


def needed(use: Use) -> list[SystemPackage]:
    """Return the packages for this machine and use."""
    # With the version: `python3-venv` is only for the system's default Python, but PYTHON may name another.
    python = f"python{sys.version_info.major}.{sys.version_info.minor}"
    header = Path(sysconfig.get_path("include")) / "Python.h"
    packages = [
        SystemPackage(f"{python}-venv", importlib.util.find_spec("ensurepip") is not None, "environments"),
        SystemPackage(f"{python}-dev", header.exists(), "the headers of the CPU backend"),
        SystemPackage("g++", shutil.which("g++") is not None, "compiling the CPU backend"),
    ]
    programs = [*TESTS] if use >= Use.TEST else []
    if use >= Use.TEST and platform.machine() != "aarch64":
        programs += NEON
    if use == Use.EXHAUSTIVE:
        programs += EXHAUSTIVE
    packages += [
        SystemPackage(name, shutil.which(program) is not None, purpose, is_required=False)
        for name, program, purpose in programs
    ]
    if use >= Use.TEST:
        name, pattern, purpose = VULKAN_DRIVER
        has_driver = any(Path("/").glob(pattern))
        packages += [*kompute_libraries(), SystemPackage(name, has_driver, purpose, is_required=False)]
    if use == Use.EXHAUSTIVE:
        layer = Path("/usr/share/vulkan/explicit_layer.d/VkLayer_khronos_validation.json").exists()
        name = "vulkan-validationlayers"
        packages.append(SystemPackage(name, layer, "hazards between the Vulkan shaders", is_required=False))
        # Without it valgrind does not know the functions of the C library.
        debug = Path("/usr/lib/debug/.build-id").is_dir()
        packages.append(SystemPackage("libc6-dbg", debug, "valgrind", is_required=False))
    return packages


def kompute_libraries() -> list[SystemPackage]:
    """Return the packages that the build of Kompute needs besides a compiler."""
    return [
        SystemPackage(name, Path(file).exists(), purpose, is_required=False)
        for name, file, purpose in KOMPUTE
    ]


def main(use: Use) -> None:
    """Install missing packages if permitted.

    Exits with 1 if a required package must be installed by hand or Python is too old; the message says how to
    fix it.
    """
    check_python(sys.version_info[:3])
    lacking = missing(use)
    apt = apt_command() if is_worth_asking(lacking, use) else None
    if apt is not None:
        install(apt, lacking)
    still_missing = missing(use)
    if still_missing:
        print(explain(still_missing), file=sys.stderr)
    sys.exit(any(package.is_required for package in still_missing))


def check_python(version: tuple[int, ...]) -> None:
    """Exit with a message if this Python is too old for llmd."""
    if version < OLDEST_PYTHON:
        oldest, found = (".".join(map(str, numbers)) for numbers in (OLDEST_PYTHON, version))
        sys.exit(
            f"setup: llmd needs Python {oldest} or newer, but {sys.executable} is {found}\n"
            f"Install a newer one and name it:  make PYTHON=python{oldest} setup"
        )


def is_worth_asking(packages: list[SystemPackage], use: Use) -> bool:
    """Whether to run apt for ``packages``.

    Setup runs before every target, so it requests optional packages only once, before the samples exist.
    """
    is_first = use == Use.EXHAUSTIVE or not SAMPLES.exists()
    return any(package.is_required for package in packages) or bool(packages and is_first)


def missing(use: Use) -> list[SystemPackage]:
    """Return the packages that are not installed."""
    importlib.invalidate_caches()
    return [package for package in needed(use) if not package.is_present]


def install(apt: list[str], packages: list[SystemPackage]) -> None:
    """Install ``packages``; apt's errors go to standard error."""
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    names = [package.name for package in packages]
    print(f"setup: {' '.join(names)}", flush=True)
    for command in (["update", "-qq"], ["install", "-y", "-qq", "--no-install-recommends", *names]):
        subprocess.run([*apt, *command], check=False, env=environment, stdout=subprocess.DEVNULL)


def apt_command() -> list[str] | None:
    """Return an apt-get command that this user may run, or None."""
    if shutil.which("apt-get") is None:
        return None
    if os.geteuid() == 0:
        return ["apt-get"]
    if shutil.which("sudo") is None:
        return None
    asked = subprocess.run(["sudo", "-n", "true"], check=False, capture_output=True)
    return ["sudo", "-n", "apt-get"] if asked.returncode == 0 else None


def explain(packages: list[SystemPackage]) -> str:
    """Return a message for a user who must install packages by hand."""
    lines = [f"setup: {sys.executable} needs these packages, which could not be installed:"]
    for package in packages:
        weight = "needed for" if package.is_required else "optional, for"
        lines.append(f"  {package.name:<22} {weight} {package.purpose}")
    names = " ".join(package.name for package in packages)
    lines.append(f"On Debian or Ubuntu, run:  sudo apt-get install {names}")
    return "\n".join(lines)


if __name__ == "__main__":
    main(Use[sys.argv[1].upper()])
