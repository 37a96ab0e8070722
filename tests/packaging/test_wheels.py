"""What our wheels are, and what is in them."""

from __future__ import annotations

import importlib.machinery
import re
import sys
from pathlib import Path
from zipfile import ZipFile

import numpy as np
import pytest

pytestmark = pytest.mark.packaging

ROOT = Path(__file__).parents[2]
PURE = ("llmd_daemon", "llmd_backend_cuda", "llmd_backend_vulkan", "llmd_transport", "llmd_tui")

NUMPY_C_API = b"_ARRAY_API"
"""The capsule through which every extension reaches NumPy's C API."""


def wheel_of(wheelhouse: Path, package: str) -> Path:
    """The one wheel of a distribution, named by its import package."""
    (wheel,) = wheelhouse.glob(f"{package}-*.whl")
    return wheel


def names_in(wheel: Path) -> set[str]:
    """Names of the files in a wheel, its version left out."""
    with ZipFile(wheel) as archive:
        return {re.sub(r"-[^/]*\.dist-info/", ".dist-info/", name) for name in archive.namelist()}


def extension_in(wheel: Path) -> tuple[str, bytes]:
    """Name and content of the one compiled file of a wheel."""
    with ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".so"))
        return name, archive.read(name)


@pytest.mark.parametrize("package", PURE)
def test_pure_wheels_serve_every_python(wheelhouse: Path, package: str) -> None:
    assert wheel_of(wheelhouse, package).stem.endswith("-py3-none-any")


def test_extension_has_one_wheel_for_3_11_and_one_for_all_later_pythons(wheelhouse: Path) -> None:
    tag = "cp312-abi3" if sys.version_info >= (3, 12) else "cp311-cp311"
    assert f"-{tag}-linux_" in wheel_of(wheelhouse, "llmd_backend_cpu").name


def test_extension_of_the_stable_abi_is_named_so(wheelhouse: Path) -> None:
    name, _ = extension_in(wheel_of(wheelhouse, "llmd_backend_cpu"))
    suffix = ".abi3.so" if sys.version_info >= (3, 12) else importlib.machinery.EXTENSION_SUFFIXES[0]
    assert name == f"llmd_backend_cpu/_ext{suffix}"


def test_extension_does_not_use_the_c_api_of_numpy(wheelhouse: Path) -> None:
    _, content = extension_in(wheel_of(wheelhouse, "llmd_backend_cpu"))
    assert NUMPY_C_API not in content


def test_extensions_that_use_the_c_api_of_numpy_would_be_noticed() -> None:
    (user,) = (Path(np.__file__).parent / "random").glob("mtrand.*.so")
    assert NUMPY_C_API in user.read_bytes()


@pytest.mark.parametrize(
    ("distribution", "package"),
    [
        ("llmd_daemon", "llmd"),
        *((name, name) for name in ("llmd_backend_cpu", *PURE[1:])),
    ],
)
def test_wheels_carry_types_and_licence(wheelhouse: Path, distribution: str, package: str) -> None:
    names = names_in(wheel_of(wheelhouse, distribution))
    assert f"{package}/py.typed" in names
    assert f"{distribution}.dist-info/licenses/LICENSE" in names


def test_the_cuda_backend_carries_its_kernels(wheelhouse: Path) -> None:
    # They are compiled where they run.
    kernels = (ROOT / "plugins/backend_cuda/src/llmd_backend_cuda/kernels").iterdir()
    expected = {
        f"llmd_backend_cuda/kernels/{path.name}" for path in kernels if path.suffix in {".cu", ".cuh"}
    }
    assert "llmd_backend_cuda/kernels/gemv.cu" in expected
    assert expected <= names_in(wheel_of(wheelhouse, "llmd_backend_cuda"))


def test_the_vulkan_backend_carries_its_shaders_and_the_additions_to_kompute(wheelhouse: Path) -> None:
    package = ROOT / "plugins/backend_vulkan/src/llmd_backend_vulkan"
    expected = {f"llmd_backend_vulkan/shaders/{path.name}" for path in (package / "shaders").glob("*.spv")}
    assert "llmd_backend_vulkan/shaders/linear.spv" in expected
    names = names_in(wheel_of(wheelhouse, "llmd_backend_vulkan"))
    assert expected | {"llmd_backend_vulkan/kompute/additions.hpp"} <= names


def test_extension_carries_its_stubs(wheelhouse: Path) -> None:
    assert "llmd_backend_cpu/_ext.pyi" in names_in(wheel_of(wheelhouse, "llmd_backend_cpu"))


@pytest.mark.parametrize(
    "distribution",
    [*PURE, "llmd_backend_cpu"],
)
def test_wheels_carry_neither_tests_nor_native_sources(wheelhouse: Path, distribution: str) -> None:
    tops = {name.partition("/")[0] for name in names_in(wheel_of(wheelhouse, distribution))}
    # Data of a wheel: the manual page.
    assert {top for top in tops if not top.endswith(".data")} == {
        distribution.removesuffix("_daemon"),
        f"{distribution}.dist-info",
    }
