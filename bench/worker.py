"""The sides are processes of their own, so that their thread pools never meet; only one works at a time.

A request is a line of JSON with the name of a method and its arguments, an answer what the method returned. The first line
that a side prints has its facts, such as ``load_s``.
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
    """What a side answers. Logits are float32 ``[len(tokens), vocab]`` in a file of numpy's."""

    def open(self, prompts: list[list[int]], room: int) -> float:
        """Prefill sequences that may grow by ``room`` tokens, until each has its first token; returns seconds."""
        ...

    def decode(self, count: int) -> float:
        """Give each open sequence that many tokens more, greedily; returns seconds."""
        ...

    def close(self) -> None:
        """Forget the open sequences."""
        ...

    def logits(self, tokens: list[int], path: str) -> None:
        """Write the logits after each token of a text."""
        ...


def answer(target: object, facts: Mapping[str, Any]) -> None:
    """Answer requests on standard input until it ends."""
    print(json.dumps(facts), flush=True)
    for line in sys.stdin:
        method, arguments = json.loads(line)
        if method == "resident_bytes":
            result: object = resident_bytes()
        else:
            result = getattr(target, method)(*arguments)
        print(json.dumps(result), flush=True)


def resident_bytes() -> dict[str, int]:
    """Resident memory of this process that no file backs (``anonymous``), and pages of files (``file``)."""
    fields = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    kib = {name: int(fields[name].split()[0]) for name in ("RssAnon", "RssFile", "RssShmem")}
    return {"anonymous": 1024 * (kib["RssAnon"] + kib["RssShmem"]), "file": 1024 * kib["RssFile"]}


class Side:
    """A side as the runner sees it."""

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
        """What a method of the side returns."""
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
