"""The check of names finds old ones where they were replaced, and nowhere else."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.names import faults

ENGINE = "daemon/src/llmd/engine"


def write(root: Path, path: str, text: str = "") -> None:
    """A source file."""
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(text)


@pytest.mark.parametrize(
    ("path", "text", "fault"),
    [
        (f"{ENGINE}/steps.py", "class Departure:\n    pass\n", f"{ENGINE}/steps.py:1: Departure was"),
        (f"{ENGINE}/chain.py", "", f"{ENGINE}/chain.py: chain.py was replaced by pipeline"),
        (
            "daemon/src/llmd/host/states.py",
            "class A:\n    mend: str\n",
            "states.py:1: mend was replaced by fix",
        ),
        (f"{ENGINE}/core.py", "class Core:\n    def learn(self): ...\n", "core.py:2: learn was replaced by"),
        ("daemon/src/llmd/server/a.py", "def f(self):\n    self._ledger = 1\n", "a.py:2: ledger was"),
        ("daemon/src/llmd/server/answering/__init__.py", "", "answering/ was replaced by"),
        (
            "plugins/backend_cpu/csrc/a.hpp",
            "// text\nclass Parts {};\n",
            "a.hpp:2: Parts was replaced by Weights",
        ),
    ],
)
def test_an_old_name_is_refused_with_the_new_one(tmp_path: Path, path: str, text: str, fault: str) -> None:
    write(tmp_path, path, text)
    (found,) = faults(tmp_path)
    assert fault in found


def test_the_same_name_may_be_good_elsewhere(tmp_path: Path) -> None:
    write(tmp_path, "daemon/src/llmd/grammar/references.py", "class Place:\n    pass\n")
    write(tmp_path, "daemon/src/llmd/sampling/chains.py", "def use(chain):\n    return chain\n")
    assert faults(tmp_path) == []


def test_the_sources_have_no_old_name() -> None:
    assert faults(Path(__file__).parents[2]) == []
