"""docs/adding-an-architecture.md: its example runs, and the files of a family are those that it lists."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.docs.page import CODE, rows_with
from tests.workspace.page_examples import PACKAGE, ROOT, changes, copied_sources, missing_paths, page, run

PAGE = page("adding-an-architecture.md")
MODULE = "builtin/architectures/helia.py"
MODULES = dict(re.findall(r"^```python\n# (\S+)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL))
LISTED = [path for row in rows_with(PAGE, "what it holds") for path in CODE.findall(row["file"])]

EXERCISE = """
import json
import tempfile
from pathlib import Path
import numpy as np
import llmd
from llmd.api import Add, Rope
from llmd.api.messages import Load
from llmd.builtin.architectures.plugin import llmd_architectures
from llmd.builtin.reference.device import ReferenceDevice
from llmd.engine.loading import load_model
from llmd.models.gguf.families import FAMILIES
from llmd.models.gguf.fields import GgufFields
from tests.golden.checkpoint import write_checkpoint
from tests.golden.models.llama import llama
from tests.golden.models.tiny import TinyModel

known = {name: architecture for architecture in llmd_architectures() for name in architecture.names}
family = FAMILIES["helia"]
metadata = {"general.architecture": "helia", "helia.residual_scale": 0.5}
names = {"architectures": ["HeliaForCausalLM"], "model_type": "helia", "residual_multiplier": 0.5}
case = TinyModel("helia", {**llama(), **names})
plan = known["helia"].plan(case.config, None)
ops = [op for part in plan.parts for op in part.ops]

def logits(case):
    with tempfile.TemporaryDirectory() as folder:
        write_checkpoint(case, Path(folder))
        load = Load(folder, device="reference", context_len=64, slots=1, kv_dtype="f32")
        model = load_model(load, known, lambda _: ReferenceDevice(), lambda _: None)
        try:
            return model.core.forward(np.arange(5, dtype=np.int32))
        finally:
            model.close()

mine, as_llama = logits(case), logits(TinyModel("helia", llama()))
print(json.dumps({
    "file": llmd.__file__,
    "interleaved": [op.interleaved for op in ops if isinstance(op, Rope)],
    "scales": sorted({op.scale for op in ops if isinstance(op, Add)}),
    "finite": bool(np.isfinite(mine).all()),
    "shape": list(mine.shape),
    "vocabulary": plan.vocab_size,
    "difference": float(np.abs(mine - as_llama).max()),
    "gguf class": f"{family.name}ForCausalLM" in known and family.model_type in known,
    "gguf fields": family.read(GgufFields(metadata, ())),
}))
"""


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the daemon with the family of the example does."""
    sources = copied_sources(tmp_path_factory.mktemp("sources"), changes(PAGE), MODULES)
    answers: dict[str, Any] = run(EXERCISE, sources)
    assert answers["file"].startswith(str(sources))
    return answers


def test_the_example_is_one_module_and_two_registrations() -> None:
    assert list(MODULES) == [MODULE]
    registrations = ["builtin/architectures/plugin.py", "models/gguf/families.py"]
    assert [path for path, _ in changes(PAGE)] == registrations


def test_the_plan_has_both_differences(found: dict[str, Any]) -> None:
    assert found["interleaved"]
    assert all(found["interleaved"])
    assert found["scales"] == [0.5]


def test_the_reference_runs_it_and_does_not_take_it_for_llama(found: dict[str, Any]) -> None:
    assert found["finite"]
    assert found["shape"] == [5, found["vocabulary"]]
    assert found["difference"] > 0.01


def test_a_gguf_file_of_the_family_is_that_class(found: dict[str, Any]) -> None:
    assert found["gguf class"]
    assert found["gguf fields"] == {"residual_multiplier": 0.5}


def test_the_files_of_a_typical_family_are_those_of_the_table() -> None:
    def named(folder: Path, base: Path) -> set[str]:
        files = (file for file in folder.rglob("*.py") if file.parent != Path(__file__).parent)
        return {str(file.relative_to(base)) for file in files if "olmo2" in file.read_text().lower()}

    sources, tests = named(PACKAGE, PACKAGE), named(ROOT / "tests", ROOT)
    assert set(LISTED) == sources | tests
    assert (len(sources), len(tests)) == (4, 10)
    assert sum("gguf" in file for file in sources) == 2
    assert "in four source files, two of them for GGUF, and in ten files of tests" in PAGE


def test_settings_that_the_page_names_exist() -> None:
    text = (PACKAGE / "models/gguf/config_keys.py").read_text()
    assert all(name in text for name in ("granite", "residual_scale"))
    makefile = (ROOT / "Makefile").read_text()
    assert all(
        re.search(rf"^{target}:", makefile, re.MULTILINE) for target in ("oracle", ".venv-oracle/.made")
    )
    assert "--write" in (ROOT / "tests/golden/oracle/make_oracle.py").read_text()
    assert "OLMo" in (ROOT / "README.md").read_text()
    assert "OLMo" in (ROOT / "docs/models.md").read_text()


def test_each_path_exists() -> None:
    assert list(missing_paths(PAGE)) == []


def test_the_page_stays_short() -> None:
    assert len(PAGE.splitlines()) <= 120
