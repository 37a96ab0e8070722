"""Which NVIDIA cards this machine has, and why they cannot be used if they cannot."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from llmd.api import HOST_MEMORY, DeviceError, DeviceInfo, NotFoundError
from llmd.api.byte_size import format_bytes
from llmd_backend_cuda.compiler import INSTALL, compiler_version
from llmd_backend_cuda.driver import Driver

OLDEST_CAPABILITY = (7, 5)
"""The first compute capability that kernels are written for."""

OLDEST_CUDA = 12
"""The first version of CUDA that CuPy has packages for."""

_ROOT = Path("/")
_INSUFFICIENT_DRIVER, _NO_DEVICE = 35, 100  # numbers of the CUDA runtime
_PROHIBITED = 2  # compute mode


class CardProperties(msgspec.Struct, frozen=True):
    """What is known of a card before it is opened."""

    index: int
    """Its place among the cards that CUDA shows this process."""
    name: str
    """As NVIDIA calls it."""
    uuid: str
    """As ``nvidia-smi`` writes it: ``GPU-…``."""
    pci: str
    """Address, such as ``0000:01:00.0``."""
    memory_bytes: int
    capability: tuple[int, int]
    """Compute capability."""
    num_processors: int
    """Multiprocessors."""
    shared_bytes: int
    """Most shared memory of a block."""
    l2_bytes: int
    """Size of the second-level cache."""
    is_integrated: bool = False
    """It computes in main memory."""
    is_prohibited: bool = False
    """Its administrator allows nobody to compute on it."""

    @property
    def device(self) -> str:
        """Name of the device, such as ``cuda:0``."""
        return f"cuda:{self.index}"

    @property
    def memory_id(self) -> str:
        """`DeviceInfo.memory_id`."""
        return HOST_MEMORY if self.is_integrated else f"pci:{self.pci}"

    @property
    def description(self) -> str:
        """The card in words, for users."""
        major, minor = self.capability
        return f"{self.name}, {format_bytes(self.memory_bytes)}, compute capability {major}.{minor}"


def probe() -> Sequence[DeviceInfo]:
    """Return all cards. If there is none, or none can be used, one device says why."""
    try:
        cards = find_cards()
        compiler_version()
    except DeviceError as error:
        return [_unusable("cuda:0", f"{error.message}: {error.hint}")]
    return [_info(card) for card in cards]


def card_of(device: str) -> CardProperties:
    """Return the card of a device such as ``cuda:0``.

    Raises:
        NotFoundError: there is no such card.
        DeviceError: CUDA cannot be used at all.
    """
    cards = {card.device: card for card in find_cards()}
    if device not in cards:
        known = " and ".join(f"`{name}`" for name in cards)
        raise NotFoundError(f"the CUDA backend has no device {device!r}", hint=f"its devices: {known}")
    return cards[device]


def find_cards() -> Sequence[CardProperties]:
    """Return the cards that CUDA shows this process, at least one.

    Raises:
        DeviceError: there is none, CuPy or the driver is missing, or the driver is too old or broken.
    """
    try:
        from cupy_backends.cuda.api import runtime
    except ImportError as error:
        raise DeviceError(f"CuPy cannot be imported: {error}", hint=INSTALL) from error
    try:
        indices = range(runtime.getDeviceCount())
        driver = Driver()
        return [read_card(runtime, driver, index) for index in indices]
    except RuntimeError as error:
        raise unusable_cuda(runtime, error, os.environ) from error


def read_card(api: Any, driver: Driver, index: int) -> CardProperties:
    """Return what CuPy's bindings of the CUDA runtime say of a card.

    Raises:
        RuntimeError: the driver failed.
    """
    found = api.getDeviceProperties(index)
    return CardProperties(
        index=index,
        name=found["name"].decode(),
        uuid=driver.uuid(index),  # the bindings end it at its first zero byte
        pci=f"{found['pciDomainID']:04x}:{found['pciBusID']:02x}:{found['pciDeviceID']:02x}.0",
        memory_bytes=found["totalGlobalMem"],
        capability=(found["major"], found["minor"]),
        num_processors=found["multiProcessorCount"],
        shared_bytes=found["sharedMemPerBlockOptin"],
        l2_bytes=found["l2CacheSize"],
        is_integrated=bool(found["integrated"]),
        is_prohibited=found["computeMode"] == _PROHIBITED,
    )


def why_unusable(card: CardProperties) -> str:
    """Return why kernels cannot run on a card, in one sentence; empty if they can."""
    if card.capability < OLDEST_CAPABILITY:
        own, oldest = (".".join(map(str, version)) for version in (card.capability, OLDEST_CAPABILITY))
        return f"its compute capability is {own}, and the kernels need {oldest} or later: use the CPU instead"
    if card.is_prohibited:
        return f"its compute mode is Prohibited: run `sudo nvidia-smi -i {card.index} -c DEFAULT`"
    return ""


def unusable_cuda(
    api: Any, error: RuntimeError, environ: Mapping[str, str], root: Path = _ROOT
) -> DeviceError:
    """Return why CUDA cannot be used, from the error of a call of CuPy's bindings (``api``)."""
    status, version = getattr(error, "status", None), api.driverGetVersion()
    if status == _INSUFFICIENT_DRIVER and not version:
        return without_driver(root)
    if status == _INSUFFICIENT_DRIVER:
        needed = api.runtimeGetVersion() // 1000
        return DeviceError(
            f"the NVIDIA driver is too old: it knows CUDA {version // 1000}.{version % 1000 // 10},"
            f" and CuPy needs CUDA {needed}",
            hint="update the driver"
            + (f", or use CuPy for CUDA 12: {INSTALL}" if needed > OLDEST_CUDA else ""),
        )
    if status == _NO_DEVICE and "CUDA_VISIBLE_DEVICES" in environ:
        return DeviceError("CUDA_VISIBLE_DEVICES hides all NVIDIA cards", hint="change or unset it")
    if status == _NO_DEVICE:
        return DeviceError("the NVIDIA driver finds no card", hint="see whether `nvidia-smi` lists one")
    return DeviceError(
        f"the NVIDIA driver failed: {error}",
        hint="restart the machine if the driver was updated, and see whether `nvidia-smi` works",
    )


def without_driver(root: Path) -> DeviceError:
    """Return the error of a machine without NVIDIA's driver; ``root`` has the files of its kernel."""
    if not has_card(root):
        hint = "`llmd plugins disable cuda` stops looking for one"
        return DeviceError("this machine has no NVIDIA card", hint=hint)
    return DeviceError(
        "this machine has an NVIDIA card, but no driver for it",
        hint="install NVIDIA's driver and restart; in a container, start it with access to the card",
    )


def has_card(root: Path) -> bool:
    """Whether the kernel shows a graphics card of NVIDIA; ``root`` has its files."""
    for device in (root / "sys/bus/pci/devices").glob("*"):
        try:
            vendor, kind = (device / "vendor").read_text(), (device / "class").read_text()
        except OSError:
            continue
        if vendor.strip() == "0x10de" and kind.startswith("0x03"):
            return True
    return (root / "dev/dxg").exists()  # Windows' subsystem for Linux shows no PCI devices


def _info(card: CardProperties) -> DeviceInfo:
    """Return the device of a card."""
    from llmd_backend_cuda.device import describe

    reason = why_unusable(card)
    return _unusable(card.device, reason, card.description) if reason else describe(card)


def _unusable(name: str, reason: str, description: str = "") -> DeviceInfo:
    """Return a device that nothing can run on."""
    return DeviceInfo(
        name=name, kind="cuda", score=0, memory_bytes=0, formats=(), kv_dtypes=(), ops=(),
        description=description, reason=reason,
    )  # fmt: skip
