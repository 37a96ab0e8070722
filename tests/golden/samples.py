"""Samples of real models that `make test-setup` fetches:
vocabularies with the tokens expected of them, and chat templates.
"""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).parents[2] / ".llama-cpp-samples"
TEMPLATES = FOLDER / "templates"
VOCABULARIES = FOLDER / "vocabularies"
FIX = f"remove {FOLDER} and run `make test-setup`, which fetches it again"


def named(path: Path) -> Path:
    """A sample, which must be there."""
    assert path.is_file(), f"{path} is missing: {FIX}"
    return path
