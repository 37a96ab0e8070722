"""Keeps the page of a measurement with the other results, if it is whole."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path

from bench.quiet import DisturbedError

RESULTS = Path(__file__).parent / "results"


def publish(subject: str, page: str, disturbed: DisturbedError | None) -> None:
    """Print a page and write it to the results of today.

    A measurement that was ``disturbed`` is printed as far as it came, and is no result: the program ends with 1.
    """
    print(page)
    if disturbed is not None:
        print(f"**Not whole, and not a result:** {disturbed}.")
        sys.exit(f"No page was written. {disturbed}.")
    (RESULTS / f"{datetime.now(UTC):%Y-%m-%d}-{subject}.md").write_text(page)
