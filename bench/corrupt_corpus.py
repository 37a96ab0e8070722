"""Measures how fast damaged models are refused: ``python -m bench.corrupt_corpus``."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

from tests.corrupt.case import Case
from tests.corrupt.corpus import CASES, inspect_model
from tests.corrupt.small_model import write_small_model


def refusal_time_s(case: Case) -> float:
    """Return the seconds from opening the damaged directory to its error."""
    with tempfile.TemporaryDirectory() as folder:
        directory = write_small_model(Path(folder) / "model")
        case.damage(directory)
        start = time.perf_counter()
        try:
            inspect_model(directory)
        except case.error:
            return time.perf_counter() - start
    raise AssertionError(f"{case.name} was not refused")


def main() -> None:
    inspect_times = sorted(((refusal_time_s(case), case.name) for case in CASES), reverse=True)
    print(f"{len(CASES)} damaged models; the slowest refusals:")
    for seconds, name in inspect_times[:5]:
        print(f"{1000 * seconds:8.1f} ms  {name}")


if __name__ == "__main__":
    main()
