from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from llmd.models.hugging_face import CONFIG_FILE
from llmd.models.meta.params_file import PARAMS_FILE
from llmd.registry.model_folders import MODEL_FILES, model_folders


def test_models_are_at_most_two_folders_deep(tmp_path: Path) -> None:
    for name in (
        "one/config.json",
        "org/two/a.gguf",
        "org/deep/er/params.json",
        ".store/x/config.json",
        "none/x",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    assert dict(model_folders(tmp_path)) == {"one": tmp_path / "one", "org/two": tmp_path / "org" / "two"}
    assert list(model_folders(tmp_path / "missing")) == []


def test_configurations_of_every_layout_are_known() -> None:
    assert {CONFIG_FILE, PARAMS_FILE} <= set(MODEL_FILES)


def test_numpy_is_not_imported() -> None:
    code = "import sys, llmd.registry.model_folders; sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
