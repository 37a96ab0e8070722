"""Runs each side in its own process, so that their thread pools are separate; only one works at a time.

A request is a line of JSON with the name of a method and its arguments; the answer is what the method
returned. The first line that a side prints has its facts, such as ``load_s``.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self


class Model(Protocol):
    """The methods of a side. Logits are float32 ``[len(tokens), vocab]`` in a NumPy file."""

    def open(self, prompts: list[list[int]], room: int) -> float:
        """Prefill sequences that may grow by ``room`` tokens until each has its first token; return the
        seconds.
        """
        ...

    def decode(self, count: int) -> float:
        """Decode ``count`` more tokens for each open sequence, greedily; return the seconds."""
        ...

    def close(self) -> None:
        """Drop the open sequences."""
        ...

    def logits(self, tokens: list[int], path: str) -> None:
        """Write the logits after each token of a text."""
        ...


def answer(target: object, facts: Mapping[str, Any]) -> None:
    """Answer requests on standard input until it is closed."""
    print(json.dumps(facts), flush=True)
    for line in sys.stdin:
        method, arguments = json.loads(line)
        if method == "resident_bytes":
            result: object = resident_bytes()
        else:
            result = getattr(target, method)(*arguments)
        print(json.dumps(result), flush=True)


def resident_bytes() -> dict[str, int]:
    """Return the resident memory of this process: ``anonymous``, and ``file`` for pages of files."""
    fields = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    kib = {name: int(fields[name].split()[0]) for name in ("RssAnon", "RssFile", "RssShmem")}
    return {"anonymous": 1024 * (kib["RssAnon"] + kib["RssShmem"]), "file": 1024 * kib["RssFile"]}


class Side:
    """A side, controlled by the runner."""

    def __init__(
        self, name: str, command: Sequence[str], environment: Mapping[str, str] | None = None
    ) -> None:
        self.name = name
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | dict(environment or {}),
        )
        try:
            self.facts = self._read()
        except BaseException:
            self._end()
            raise

    def call(self, method: str, *arguments: object) -> Any:
        """Call a method of the side and return its result."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps([method, arguments]) + "\n")
        self._process.stdin.flush()
        return self._read()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()

    def _end(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()

    def _read(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self.name} ended with {self._process.wait()}")
        return json.loads(line)
