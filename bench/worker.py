"""The two sides are processes of their own, so that their thread pools never meet; only one works at a time.

A request is a line of JSON ``{"prompt": [ids], "decode": n}``, an answer ``{"prefill_s": …, "decode_s": …}``; the
first line that a side prints is ``{"load_s": …, "rss_bytes": …}``.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

Measure = Callable[[list[int], int], "Measured"]


@dataclass(frozen=True)
class Measured:
    """Seconds of one prefill, and of the decode steps after it."""

    prefill_s: float
    decode_s: float


def answer_requests(measure: Measure, load_s: float) -> None:
    """Answer requests on standard input until it ends."""
    print(json.dumps({"load_s": load_s, "rss_bytes": resident_bytes()}), flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        print(json.dumps(asdict(measure(request["prompt"], request["decode"]))), flush=True)


def resident_bytes() -> int:
    """Resident memory of this process."""
    fields = Path("/proc/self/statm").read_text().split()
    return int(fields[1]) * 4096


class Side:
    """A side as the runner sees it."""

    def __init__(self, name: str, command: Sequence[str]) -> None:
        self.name = name
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.facts = self._read()

    def measure(self, prompt: list[int], num_decode: int) -> Measured:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"prompt": prompt, "decode": num_decode}) + "\n")
        self._process.stdin.flush()
        return Measured(**self._read())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()

    def _read(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self.name} ended with {self._process.wait()}")
        answer: dict[str, Any] = json.loads(line)
        return answer
