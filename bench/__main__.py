"""``make bench``."""

from __future__ import annotations

from bench.side_by_side import main

main()
