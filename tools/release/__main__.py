"""``make release``: builds all files of a release in ``dist/VERSION`` and tries them. Uploads nothing.

Runs on Debian on x86-64 with the tools of ``requirements.txt``, mmdebstrap, a cross compiler and an emulator
for aarch64.
"""

from __future__ import annotations

import argparse
import platform
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tools.release import artefacts
from tools.release.build import NATIVE_DISTRIBUTION, Builder, run
from tools.release.c_library import pack_library, try_library
from tools.release.debian import NATIVE, DebianPython, unpack
from tools.release.installation import lock_dependencies, try_installation
from tools.release.rules import ReleaseError, checked_version, commit_time
from tools.release.targets import TARGETS, UNTESTED, Target

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = {
    "mmdebstrap": "mmdebstrap",
    "aarch64-linux-gnu-g++": "g++-aarch64-linux-gnu",
    "qemu-aarch64": "qemu-user",
}
"""The Debian package of each program."""


def main() -> None:
    """Make a release; exit with 1 and the reason if it cannot be made."""
    parser = argparse.ArgumentParser(prog="make release", description=__doc__)
    parser.add_argument("--root", type=Path, default=ROOT, help="the checkout to release")
    parser.add_argument(
        "--target", action="append", choices=[f"{one.machine}:{one.python}" for one in TARGETS],
        help="build only this compiled wheel; repeatable; such a release is incomplete",
    )  # fmt: skip
    arguments = parser.parse_args()
    targets = (
        tuple(one for one in TARGETS if f"{one.machine}:{one.python}" in (arguments.target or [])) or TARGETS
    )
    try:
        version = checked_version(arguments.root)
        check_machine()
        with tempfile.TemporaryDirectory(prefix="llmd-release-") as scratch:
            out = make(arguments.root, Path(scratch), version, targets)
    except ReleaseError as error:
        sys.exit(f"release: {error}")
    except subprocess.CalledProcessError as error:
        sys.exit(f"release: `{' '.join(map(str, error.cmd))}` failed; see the reason above")
    print(
        f"{out} is complete; {UNTESTED}" if targets == TARGETS else f"{out} lacks wheels: --target was given"
    )


def check_machine() -> None:
    """Check that this machine has what a release needs.

    Raises:
        ReleaseError: it does not.
    """
    if platform.machine() != NATIVE:
        raise ReleaseError(f"releases are made on {NATIVE}, this machine is {platform.machine()}")
    if lacking := [package for program, package in PROGRAMS.items() if shutil.which(program) is None]:
        raise ReleaseError(f"install what is missing:  sudo apt-get install {' '.join(lacking)}")


def make(root: Path, scratch: Path, version: str, targets: tuple[Target, ...]) -> Path:
    """Build, check and try all files of a release; return their folder."""
    out = root / "dist" / version
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    builder = Builder(root, scratch, out, commit_time(root))
    pythons = unpack_pythons(builder, targets)
    sources = builder.copy_sources()
    build(builder, sources, targets, pythons)
    library = pack_library(sources, version, out, int(builder.epoch))
    say("checking")
    faults = artefacts.compare([path.name for path in out.iterdir()], artefacts.expected(version, targets))
    if faults:
        raise ReleaseError("\n".join(faults))
    packages = sorted(set(out.iterdir()) - {library})
    run([builder.tools / "twine", "check", "--strict", *packages])
    for package in packages:
        artefacts.check_contents(package, version, str(scratch))
    try_library(library, scratch)
    dependencies = lock_dependencies(builder)
    for target in targets:
        try_installation(builder, pythons[target], dependencies, version)
    artefacts.write_sums(out)
    return out


def unpack_pythons(builder: Builder, targets: tuple[Target, ...]) -> dict[Target, DebianPython]:
    """Unpack the Pythons of the targets, and for each the same Python of this machine, which builds."""
    needed = {*targets, *(Target(target.python, NATIVE) for target in targets)}
    pythons = {}
    for target in sorted(needed):
        say(f"unpacking {target}")
        folder = builder.scratch / f"python-{target.machine}-{target.python}"
        pythons[target] = unpack(target, folder, builder.tools / "patchelf")
    return pythons


def build(
    builder: Builder, sources: Path, targets: tuple[Target, ...], pythons: dict[Target, DebianPython]
) -> None:
    """Build all source packages and wheels."""
    say("building source packages and wheels")
    packages = builder.source_packages(sources)
    (native,) = (package for package in packages if package.name.startswith(NATIVE_DISTRIBUTION))
    for package in packages:
        if package != native:
            builder.pure_wheel(package)
    for target in targets:
        say(f"compiling for {target}")
        host = pythons[Target(target.python, NATIVE)]
        say(builder.native_wheel(native, pythons[target], host).name)


def say(text: str) -> None:
    print(f"release: {text}", flush=True)


if __name__ == "__main__":
    main()
