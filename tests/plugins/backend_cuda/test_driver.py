"""Calls reach the driver with the arguments of its header."""

from __future__ import annotations

import ctypes
import gc
from pathlib import Path

import pytest

from llmd_backend_cuda.driver import Driver, DriverError, PreparedLaunch, cluster, cooperative, overlapping
from tests.cuda.host_cuda import LAUNCH_OUT_OF_RESOURCES, build_driver


class Args(ctypes.Structure):
    """The parameter of a kernel."""

    _fields_ = (("x", ctypes.c_float), ("n", ctypes.c_int))


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_driver(tmp_path_factory.mktemp("driver"))


@pytest.fixture
def driver(library: Path) -> Driver:
    set_status(library, 0)
    return Driver(str(library))


def set_status(library: Path, status: int) -> None:
    """Let all functions fail with a status."""
    ctypes.c_int.in_dll(ctypes.CDLL(str(library)), "status").value = status


def seen(library: Path) -> str:
    """Return the last launch, as the driver saw it."""
    text: bytes = (ctypes.c_char * 1024).in_dll(ctypes.CDLL(str(library)), "seen").value
    return text.decode()


def test_a_launch_has_sizes_stream_and_parameter(driver: Driver, library: Path) -> None:
    driver.launch(PreparedLaunch(0x22, (5, 6, 7), 96, Args(2.5, 41), 1024, 0x33))
    assert seen(library) == (
        "grid 5 6 7 block 96 1 1 shared 1024 stream 0x33 function 0x22 extra (nil) x 2.5 n 41"
    )


def test_a_prepared_launch_passes_what_its_parameter_is_at_that_time(driver: Driver, library: Path) -> None:
    args = Args(2.5, 41)
    prepared = PreparedLaunch(0x22, (1, 1, 1), 32, args, 0, 0x33)
    args.n = 42
    del args
    gc.collect()
    driver.launch(prepared)
    assert seen(library).endswith("x 2.5 n 42")


def test_attributes_are_passed(driver: Driver, library: Path) -> None:
    attributes = (overlapping(), cooperative(), cluster(2, 1, 4))
    driver.launch(PreparedLaunch(0x22, (8, 1, 4), 32, Args(0, 0), 0, 0x33, attributes))
    assert seen(library).endswith("attribute 6 1 attribute 2 1 attribute 4 2 1 4")


def test_a_failed_launch_has_the_status_and_the_drivers_words(driver: Driver, library: Path) -> None:
    prepared = PreparedLaunch(0x22, (1, 1, 1), 32, Args(0, 0), 0, 0x33)
    set_status(library, LAUNCH_OUT_OF_RESOURCES)
    with pytest.raises(DriverError, match=r"^CUDA_ERROR_TEST: a test$") as caught:
        driver.launch(prepared)
    assert caught.value.status == LAUNCH_OUT_OF_RESOURCES
    set_status(library, 999999)
    with pytest.raises(DriverError, match="unknown error"):
        driver.launch(prepared)


def test_modules_and_functions(driver: Driver) -> None:
    module = driver.load(b"code")
    assert module == 0x11
    assert driver.function(module, "kernel") == 0x22
    with pytest.raises(DriverError):
        driver.function(module, "absent")
    driver.unload(module)


def test_shared_memory_of_a_kernel(driver: Driver) -> None:
    function = driver.function(driver.load(b"code"), "kernel")
    driver.allow_shared(function, 64 << 10)
    assert driver.most_shared(function) == 64 << 10
    with pytest.raises(DriverError):
        driver.allow_shared(function, 200 << 10)


def test_the_uuid_is_written_as_nvidia_does(driver: Driver) -> None:
    assert driver.uuid(0) == "GPU-00010203-0405-0607-0809-0a0b0c0d0e0f"
    assert driver.uuid(1) == "GPU-10111213-1415-1617-1819-1a1b1c1d1e1f"
    with pytest.raises(DriverError):
        driver.uuid(2)


def test_a_missing_driver_is_an_os_error() -> None:
    with pytest.raises(OSError, match="libabsent"):
        Driver("libabsent.so.1")
