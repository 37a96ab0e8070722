"""A type may be used for the first time by several threads at once."""

from __future__ import annotations

import subprocess
import sys

import msgspec

from llmd.api.decoding import prepared

FIRST_USES = """
import sys, threading
import msgspec
from llmd.api.decoding import prepared

sys.setswitchinterval(1e-6)  # threads take turns at every opportunity
for _ in range(300):
    inner = msgspec.defstruct("Inner", [(f"field{i}", "dict[str, int | None] | None", None) for i in range(40)])
    outer = msgspec.defstruct("Outer", [("first", inner, None), ("last", "int | None", None)])
    gate = threading.Barrier(4)

    def decode():
        gate.wait()
        assert msgspec.json.decode(b'{"last": 1}', type=prepared(outer)).last == 1

    threads = [threading.Thread(target=decode) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
"""


def test_threads_may_decode_a_type_first_at_once() -> None:
    """Without `prepared` this process dies of a segmentation fault."""
    subprocess.run([sys.executable, "-c", FIRST_USES], check=True, timeout=60)


def test_a_prepared_type_is_the_type() -> None:
    class Point(msgspec.Struct):
        x: int

    assert prepared(Point) is Point
    assert msgspec.convert([{"x": 1}], prepared(list[Point])) == [Point(1)]
