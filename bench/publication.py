"""Saves the page of a complete measurement with the other results."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path

from bench.quiet import DisturbedError

RESULTS = Path(__file__).parent / "results"


def publish(subject: str, page: str, disturbed: DisturbedError | None) -> None:
    """Print a page and save it in the results under today's date.

    A ``disturbed`` measurement is printed as far as it got, but not saved; the program exits with 1.
    """
    print(page)
    if disturbed is not None:
        print(f"**Not whole, and not a result:** {disturbed}.")
        sys.exit(f"No page was written. {disturbed}.")
    (RESULTS / f"{datetime.now(UTC):%Y-%m-%d}-{subject}.md").write_text(page)
