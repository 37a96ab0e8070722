"""The process of a device: ``python -m llmd.remote``, with a `Job` on its standard input."""

from __future__ import annotations

from llmd.remote.child import main

if __name__ == "__main__":
    main()
