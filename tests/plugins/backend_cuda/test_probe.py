"""Cards are described before they are opened, and a machine that cannot use them says why and what to do."""

from __future__ import annotations

import shlex
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from llmd.api import NotFoundError
from llmd_backend_cuda import compiler, probe
from llmd_backend_cuda.driver import Driver
from llmd_backend_cuda.probe import (
    CardProperties,
    card_of,
    read_card,
    unusable_cuda,
    why_unusable,
)
from tests.cuda.host_cuda import HostCuda, HostCudaError, build_driver

CARD = CardProperties(
    index=1,
    name="Test card",
    uuid="GPU-10111213-1415-1617-1819-1a1b1c1d1e1f",
    pci="0000:c1:02.0",
    memory_bytes=1 << 27,
    capability=(9, 0),
    num_processors=7,
    shared_bytes=232448,
    l2_bytes=50 << 20,
)


class Versions:
    """Versions of CUDA as CuPy's bindings tell them."""

    def __init__(self, driver: int, runtime: int = 12090) -> None:
        self.driverGetVersion = lambda: driver
        self.runtimeGetVersion = lambda: runtime


def pci_device(root: Path, vendor: str, kind: str) -> Path:
    """Let the kernel show a device below ``root``."""
    folder = root / "sys" / "bus" / "pci" / "devices" / f"0000:0{vendor[-1]}:00.0"
    folder.mkdir(parents=True)
    (folder / "vendor").write_text(f"{vendor}\n")
    (folder / "class").write_text(f"{kind}\n")
    return root


def reason(
    api: Any, status: int, environ: Mapping[str, str] | None = None, root: Path = Path("/absent")
) -> str:
    """Return why CUDA cannot be used."""
    return str(unusable_cuda(api, HostCudaError(status), environ or {}, root))


def test_a_card_is_read(tmp_path: Path) -> None:
    driver = Driver(str(build_driver(tmp_path)))
    assert read_card(HostCuda(), driver, 1) == CARD


def test_a_card_in_words() -> None:
    assert CARD.device == "cuda:1"
    assert CARD.memory_id == "pci:0000:c1:02.0"
    assert CARD.description == "Test card, 128.0 MiB, compute capability 9.0"
    assert msgspec.structs.replace(CARD, is_integrated=True).memory_id == "host"


def test_cards_that_cannot_be_used_say_why() -> None:
    assert why_unusable(CARD) == ""
    old = msgspec.structs.replace(CARD, capability=(7, 0))
    assert "its compute capability is 7.0, and the kernels need 7.5 or later" in why_unusable(old)
    prohibited = msgspec.structs.replace(CARD, is_prohibited=True)
    assert why_unusable(prohibited).endswith("run `sudo nvidia-smi -i 1 -c DEFAULT`")


def test_without_a_driver_the_machine_is_searched_for_a_card(tmp_path: Path) -> None:
    assert reason(Versions(0), 35).startswith("this machine has no NVIDIA card")
    other = pci_device(tmp_path / "amd", "0x1002", "0x030000")
    pci_device(other, "0x10de", "0x040300")  # the sound of a card
    assert reason(Versions(0), 35, root=other).startswith("this machine has no NVIDIA card")
    nvidia = pci_device(tmp_path / "nvidia", "0x10de", "0x030200")
    assert "has an NVIDIA card, but no driver" in reason(Versions(0), 35, root=nvidia)
    (tmp_path / "dev").mkdir()
    (tmp_path / "dev" / "dxg").touch()
    assert "has an NVIDIA card, but no driver" in reason(Versions(0), 35, root=tmp_path)


def test_an_old_driver_is_to_be_updated() -> None:
    expected = "the NVIDIA driver is too old: it knows CUDA 11.8, and CuPy needs CUDA 12 (update the driver)"
    assert reason(Versions(11080), 35) == expected
    newer = reason(Versions(12040, 13010), 35)
    assert (
        "it knows CUDA 12.4, and CuPy needs CUDA 13 (update the driver, or use CuPy for CUDA 12: run" in newer
    )


def test_hidden_cards_are_not_missing_cards() -> None:
    hidden = reason(Versions(12090), 100, {"CUDA_VISIBLE_DEVICES": ""})
    assert hidden.startswith("CUDA_VISIBLE_DEVICES hides all NVIDIA cards")
    assert reason(Versions(12090), 100).startswith("the NVIDIA driver finds no card")


def test_other_failures_are_told_in_the_drivers_words() -> None:
    assert reason(Versions(12090), 803).startswith("the NVIDIA driver failed: cudaErrorTest: status 803")


def test_without_cupy_nothing_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cupy_backends.cuda.api", None)
    (info,) = probe.probe()
    assert (info.name, info.kind, info.score) == ("cuda:0", "cuda", 0)
    assert info.reason.startswith("CuPy cannot be imported")
    assert info.reason.endswith(f": {compiler.INSTALL}")


def test_without_nvrtc_nothing_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe, "find_cards", lambda: [CARD])
    monkeypatch.setitem(sys.modules, "cuda", None)
    compiler.compiler_version.cache_clear()
    (info,) = probe.probe()
    assert info.score == 0
    assert info.reason == f"NVRTC, the compiler of CUDA, is missing: {compiler.INSTALL}"


def test_what_to_install_is_what_the_distribution_asks_for() -> None:
    project = tomllib.loads((Path(__file__).parents[3] / "plugins/backend_cuda/pyproject.toml").read_text())
    wanted = project["project"]["optional-dependencies"]["cuda12"]
    assert f"run `{sys.executable} -m pip install {' '.join(map(shlex.quote, wanted))}`" == compiler.INSTALL


def test_an_unusable_card_keeps_its_description(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe, "find_cards", lambda: [msgspec.structs.replace(CARD, capability=(6, 1))])
    (info,) = probe.probe()
    assert (info.name, info.score) == ("cuda:1", 0)
    assert info.description == "Test card, 128.0 MiB, compute capability 6.1"


def test_a_device_is_found_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe, "find_cards", lambda: [msgspec.structs.replace(CARD, index=0), CARD])
    assert card_of("cuda:1") == CARD
    with pytest.raises(NotFoundError, match=r"no device 'cuda:2' \(its devices: `cuda:0` and `cuda:1`\)"):
        card_of("cuda:2")
