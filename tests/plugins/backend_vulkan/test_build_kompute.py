"""The recipe changes the published source in known places only, and says what a failed build needs."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from llmd_backend_vulkan import build_kompute

MODULE = '#include "docstrings.hpp"\n#include "utils.hpp"\n\nvoid f() {}\n\n#ifdef VERSION_INFO\n#endif\n'
SETUP = "setup(version='0.9.0', install_requires=['a', \"numpy<2.0.0\"],\n    args=['-DX_VERSION_CHECK=ON'\n    '-DY'], zip_safe=False,)\n"


def write_source(folder: Path, *, module: str = MODULE) -> None:
    """Write the files that the recipe changes."""
    (folder / "python" / "src").mkdir(parents=True)
    (folder / "python" / "src" / "main.cpp").write_text(module)
    (folder / "setup.py").write_text(SETUP)


def test_additions_are_included_and_registered(tmp_path: Path) -> None:
    write_source(tmp_path)
    build_kompute.change(tmp_path)
    changed = (tmp_path / "python" / "src" / "main.cpp").read_text()
    assert '#include "utils.hpp"\n#include "llmd_additions.hpp"\n' in changed
    assert "    llmd::add_to(m);\n#ifdef VERSION_INFO\n" in changed
    assert (
        tmp_path / "python" / "src" / "llmd_additions.hpp"
    ).read_text() == build_kompute.ADDITIONS.read_text()


def test_metadata_has_our_version_the_licence_and_no_pin_of_numpy(tmp_path: Path) -> None:
    write_source(tmp_path)
    build_kompute.change(tmp_path)
    changed = (tmp_path / "setup.py").read_text()
    assert "version='0.9.0+llmd2'" in changed
    assert '"numpy"' in changed
    assert "license='Apache-2.0'" in changed
    assert "VERSION_CHECK=ON',\n" in changed


def test_additions_state_the_version_of_the_wheel() -> None:
    assert f'"LLMD_ADDITIONS") = {build_kompute.OWN_VERSION[-1]};' in build_kompute.ADDITIONS.read_text()


def test_another_source_is_refused(tmp_path: Path) -> None:
    write_source(tmp_path, module="int main() {}\n")
    with pytest.raises(ValueError, match="has 0 times"):
        build_kompute.change(tmp_path)


def test_a_failed_build_names_the_packages_that_it_needs() -> None:
    message = build_kompute.explain(subprocess.CalledProcessError(1, ["pip", "wheel", "kp"]))
    assert "`pip wheel kp` failed with exit code 1" in message
    assert "sudo apt-get install g++ make libvulkan-dev libfmt-dev" in message
