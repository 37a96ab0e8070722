"""Large blocks stay out of the heap, whatever was freed before."""

from __future__ import annotations

import ctypes
import subprocess
import sys

import pytest

HELD_AFTER_A_LARGER_ONE = """
import ctypes
from llmd.server.heap import map_large_blocks

class Info(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in (
        "arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost")]

mallinfo2 = ctypes.CDLL(None).mallinfo2
mallinfo2.restype = Info
{call}
larger = bytearray(1 << 20)
del larger
before = mallinfo2().hblkhd
block = bytearray(256 << 10)
print(mallinfo2().hblkhd - before)
"""


def mapped_bytes(call: str) -> int:
    """Return the bytes mapped for a block of 256 KiB in a new process that has freed a larger one."""
    command = (sys.executable, "-c", HELD_AFTER_A_LARGER_ONE.format(call=call))
    return int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "mallinfo2"), reason="needs glibc 2.33 to look inside")
def test_large_blocks_are_mapped_though_larger_ones_were_freed() -> None:
    assert mapped_bytes("") == 0
    assert mapped_bytes("map_large_blocks()") >= 256 << 10
