"""Builds Kompute's Python module ``kp`` as the Vulkan backend needs it, and installs it.

``python -m llmd_backend_vulkan.build_kompute`` installs it into the environment of that Python;
``--wheel-dir DIR`` only builds a wheel. It needs a C++ compiler, the headers of Vulkan and of fmt, and a
package index, from which it takes the published source and the tools that build it.

The published package cannot be installed as it is: its build fetches other projects, and its default version
of pybind11 makes tensors return zeros under NumPy 2. See docs/decisions/0068-*.md.

Only the standard library is imported, so that ``make setup`` can run this file before llmd is installed.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

VERSION = "0.9.0"
"""Of ``kp``."""

OWN_VERSION = f"{VERSION}+llmd2"
"""Version of the wheel. The last digit is that of ``LLMD_ADDITIONS``."""

TOOLS = ("cmake>=3.30,<5", "pybind11==2.13.6", "setuptools<80", "wheel")
"""What builds the wheel. A later setuptools has no ``distutils.version``, which the package imports."""

SYSTEM_PACKAGES = ("g++", "make", "libvulkan-dev", "libfmt-dev")
"""Their names on Debian and its derivatives."""

OPTIONS = {
    "KOMPUTE_OPT_INSTALL": "OFF",
    "KOMPUTE_OPT_USE_BUILT_IN_VULKAN_HEADER": "OFF",
    "KOMPUTE_OPT_USE_BUILT_IN_FMT": "OFF",
    "KOMPUTE_OPT_USE_BUILT_IN_PYBIND11": "OFF",
    "KOMPUTE_OPT_DISABLE_VULKAN_VERSION_CHECK": "ON",
    "KOMPUTE_OPT_DISABLE_VK_DEBUG_LAYERS": "ON",
    "CXXFLAGS": "-Wno-error",
}
"""Environment of the build: nothing is fetched, warnings of newer compilers are no errors, and no validation
layer is used unless ``VK_INSTANCE_LAYERS`` names it."""

ADDITIONS = Path(__file__).resolve().parent / "kompute" / "additions.hpp"

_EDITS = {
    "python/src/main.cpp": (
        ('#include "utils.hpp"\n', '#include "utils.hpp"\n#include "llmd_additions.hpp"\n'),
        ("#ifdef VERSION_INFO\n", "    llmd::add_to(m);\n#ifdef VERSION_INFO\n"),
    ),
    "setup.py": (
        (f"version='{VERSION}'", f"version='{OWN_VERSION}'"),
        ('"numpy<2.0.0"', '"numpy"'),
        ("zip_safe=False,", "zip_safe=False, license='Apache-2.0',"),  # as its file LICENSE says
        ("VERSION_CHECK=ON'\n", "VERSION_CHECK=ON',\n"),  # else another Python than this one may be found
    ),
}
"""For each file of the source: a text that it has once, and what takes its place."""


def main(arguments: list[str] | None = None) -> None:
    """Build the wheel, and install it unless a folder for it is given."""
    parser = argparse.ArgumentParser(prog="python -m llmd_backend_vulkan.build_kompute", description=__doc__)
    parser.add_argument("--wheel-dir", type=Path, help="put the wheel here and install nothing")
    wanted = parser.parse_args(arguments).wheel_dir
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        try:
            wheel = build(folder)
            if wanted is None:
                install(folder, wheel)
        except subprocess.CalledProcessError as error:
            raise SystemExit(explain(error)) from None
        if wanted is not None:
            wanted.mkdir(parents=True, exist_ok=True)
            shutil.copy2(wheel, wanted / wheel.name)


def build(folder: Path) -> Path:
    """Download, change and build in an empty folder; return the wheel there.

    Raises:
        CalledProcessError: a tool failed.
    """
    _run(sys.executable, "-m", "venv", str(folder / "tools"))
    python = _python(folder)
    programs = Path(python).parent
    _run(python, "-m", "pip", "install", "--quiet", *TOOLS)
    environment = {**os.environ, **OPTIONS, "PATH": os.pathsep.join([str(programs), os.environ["PATH"]])}
    asked = subprocess.run(
        [python, "-m", "pybind11", "--cmakedir"], check=True, capture_output=True, text=True
    )
    environment["pybind11_DIR"] = asked.stdout.strip()
    environment["KOMPUTE_PYTHON_NUM_PARALLEL_THREADS"] = str(os.cpu_count() or 1)
    pip = (python, "-m", "pip")
    source = ("--no-deps", "--no-build-isolation", "--quiet")
    _run(
        *pip,
        "download",
        *source,
        "--no-binary",
        "kp",
        "--dest",
        str(folder),
        f"kp=={VERSION}",
        env=environment,
    )
    (archive,) = folder.glob("kp-*.tar.gz")
    shutil.unpack_archive(archive, folder)
    unpacked = folder / f"kp-{VERSION}"
    change(unpacked)
    _run(*pip, "wheel", *source, "--wheel-dir", str(folder), str(unpacked), env=environment)
    (wheel,) = folder.glob("kp-*.whl")
    return wheel


def install(folder: Path, wheel: Path) -> None:
    """Install a wheel that was built in a folder, also into an environment without pip.

    Raises:
        CalledProcessError: pip failed.
    """
    pip = (_python(folder), "-m", "pip", "--python", sys.executable)
    _run(*pip, "install", "--quiet", "--force-reinstall", "--no-deps", str(wheel))


def change(source: Path) -> None:
    """Add our additions to the unpacked source of ``kp``.

    Raises:
        ValueError: it is not the source that this was written for.
    """
    for name, edits in _EDITS.items():
        path = source / name
        text = path.read_text(encoding="utf-8")
        for old, new in edits:
            if text.count(old) != 1:
                raise ValueError(f"{path} has {text.count(old)} times {old!r}, expected once")
            text = text.replace(old, new)
        path.write_text(text, encoding="utf-8")
    shutil.copy2(ADDITIONS, source / "python" / "src" / "llmd_additions.hpp")


def explain(error: subprocess.CalledProcessError) -> str:
    """Return a message for a failed tool, which has already printed the reason."""
    return (
        f"`{' '.join(map(str, error.cmd))}` failed with exit code {error.returncode}; see the reason above\n"
        "The build needs these packages of the system (their names on Debian):\n"
        f"  sudo apt-get install {' '.join(SYSTEM_PACKAGES)}"
    )


def _python(folder: Path) -> str:
    """Return the Python of the tools in a folder."""
    return str(folder / "tools" / ("Scripts" if os.name == "nt" else "bin") / "python")


def _run(*command: str, env: Mapping[str, str] | None = None) -> None:
    subprocess.run(command, check=True, env=env)


if __name__ == "__main__":
    main()
