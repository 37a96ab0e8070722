"""The programs of a second peer, and the order of a comparison."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from bench.cpu_rounds import Case, Prompts
from bench.quiet import QuietRounds
from bench.second_peer import Fork, main, taken
from tests.bench.watches import Watch


class Asked:
    """A side that records what it is asked."""

    def __init__(self, name: str, log: list[tuple[str, list[list[int]]]]) -> None:
        self.name, self._log = name, log

    def prefill_rate(self, prompt: Sequence[int]) -> float:
        self._log.append((self.name, [list(prompt)]))
        return 1.0

    def decode_rate(self, prompts: Sequence[Sequence[int]], steps: int) -> float:
        self._log.append((self.name, [list(prompt) for prompt in prompts]))
        return float(steps)


@pytest.mark.parametrize(("kind", "new"), [("prefill", True), ("decode", False)])
def test_prompts_of_a_prefill_are_new_and_the_sides_take_turns(kind: str, *, new: bool) -> None:
    log: list[tuple[str, list[list[int]]]] = []
    sides = [Asked("a", log), Asked("b", log)]
    found = taken(Case(kind, 1, 8), sides, Prompts(1000), 2, QuietRounds(Watch))
    assert [name for name, _ in log] == ["a", "b", "b", "a", "a", "b"]
    assert [len(rates) for rates in found.rates.values()] == [2, 2]
    warm_up, first, second = (log[number][1] for number in (0, 2, 4))
    assert (warm_up != first != second) is new
    assert all(log[number][1] == log[number + 1][1] for number in (0, 2, 4))


def test_a_fork_reports_its_version_and_quantises(tmp_path: Path) -> None:
    for name, body in (
        ("llama-server", "echo 'version: 7 (abc)' >&2; echo 'built with gcc' >&2"),
        ("llama-quantize", 'echo "$3 of $(cat "$1")" > "$2"'),
    ):
        (tmp_path / name).write_text(f"#!/bin/sh\n{body}\n")
        (tmp_path / name).chmod(0o755)
    (tmp_path / "plain").write_text("weights")
    fork = Fork(tmp_path)
    assert fork.version() == "7 (abc)"
    made = fork.quantised(tmp_path / "plain", "Q4_0", tmp_path / "model.gguf")
    assert made.read_text() == "Q4_0 of weights\n"


def test_a_folder_without_the_programs_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["bench.second_peer", str(tmp_path)])
    with pytest.raises(SystemExit):
        main()
    assert f"{tmp_path} has no llama-server: build it" in capsys.readouterr().err
