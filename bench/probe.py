"""Measures the machine's limits in a separate process: ``python -m bench.probe BYTES THREADS``; see
`bench.worker`.

The loops are in ``probe.cpp``, compiled for the CPU that runs them.
"""

from __future__ import annotations

import ctypes
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from bench.worker import answer

SOURCE = Path(__file__).with_name("probe.cpp")
WAYS = tuple((ahead, streams) for ahead in (0, 512, 1024, 2048, 4096) for streams in (1, 2, 4))
"""Ways to read: prefetch distance in bytes and number of streams. The best one depends on the CPU."""
PEAKS = {"AVX2": "probe_avx2", "VNNI": "probe_vnni", "AMX": "probe_amx"}


class Probe:
    """Measures reading a block of memory and multiplying integers."""

    def __init__(self, library: ctypes.CDLL, num_bytes: int, threads: int) -> None:
        library.probe_memory.restype = ctypes.c_void_p
        address = library.probe_memory(ctypes.c_size_t(num_bytes))
        if not address:
            raise MemoryError(f"the system refused {num_bytes} bytes to read")
        self._memory = ctypes.c_void_p(address)
        self._num_bytes, self._threads = num_bytes, threads
        self._functions = {name: self._function(library, symbol) for name, symbol in PEAKS.items()}
        library.probe_read.restype = ctypes.c_double
        self._library = library
        rates = {way: statistics.median(self._read(*way) for _ in range(3)) for way in WAYS}
        self._best = sorted(WAYS, key=rates.__getitem__)[-2:]

    def read(self) -> float:
        """Return bytes per second with the better of the two best ways to read."""
        return max(self._read(*way) for way in self._best)

    def integers(self) -> dict[str, float]:
        """Return 8-bit integer operations per second by instruction set; those that this CPU lacks are
        omitted.
        """
        rates = {name: max(probe() for _ in range(3)) for name, probe in self._functions.items()}
        return {name: rate for name, rate in rates.items() if rate}

    def ways(self) -> list[tuple[int, int]]:
        """Return the two best ways to read."""
        return list(self._best)

    def _read(self, ahead: int, streams: int) -> float:
        rate: float = self._library.probe_read(
            self._memory, ctypes.c_size_t(self._num_bytes), self._threads, ahead, streams
        )
        return rate

    def _function(self, library: ctypes.CDLL, symbol: str) -> Callable[[], float]:
        function = library[symbol]
        function.restype = ctypes.c_double
        return lambda: float(function(self._threads))


def build(folder: Path) -> ctypes.CDLL:
    """Compile the loops for this CPU."""
    path = folder / "probe.so"
    command = ["c++", "-std=c++17", "-O3", "-march=native", "-shared", "-fPIC", "-pthread"]
    subprocess.run([*command, "-o", str(path), str(SOURCE)], check=True)
    return ctypes.CDLL(str(path))


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="llmd-probe-") as folder:
        probe = Probe(build(Path(folder)), int(sys.argv[1]), int(sys.argv[2]))
    answer(probe, {"ways": probe.ways()})


if __name__ == "__main__":
    main()
