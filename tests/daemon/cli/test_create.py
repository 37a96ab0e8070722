"""``llmd create`` with Modelfiles as people write them."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path

import pytest

from llmd.api.errors import ConfigError
from llmd.cli.create import check_parameters
from llmd.registry.modelfile import read_modelfile
from tests.daemon.registry.test_modelfile import ADAPTED, CHARACTER, CODER, JINJA, SHOTS
from tests.serving.home import Home


@pytest.fixture(autouse=True)
def _ended(home: Home) -> object:
    """The daemon that a test starts ends with it."""
    yield
    home.llmd("stop", "--daemon")


def test_five_modelfiles(home: Home, tmp_path: Path) -> None:
    file = tmp_path / "Modelfile"
    for name, text in (("mario", CHARACTER), ("coder", CODER), ("shots", SHOTS), ("jinja", JINJA)):
        lines = text.splitlines()
        begun = next(place for place, line in enumerate(lines) if line.startswith("FROM"))
        lines[begun] = "FROM tiny"
        file.write_text("\n".join(lines))
        done = home.llmd("create", name, "-f", str(file))
        assert (done.returncode, done.stdout) == (0, f"{name}\n"), done.stderr
        assert ("Go template" in done.stderr) == (name == "coder")
    answered = home.llmd("run", "jinja", "Hello", "-n", "3", "--stats")
    assert answered.returncode == 0, answered.stderr
    assert "prompt 5 tokens" in answered.stderr  # its template adds nothing to the text
    file.write_text(ADAPTED.replace("mistral", "tiny"))
    refused = home.llmd("create", "adapted", "-f", str(file))
    assert refused.returncode == 2
    assert "LoRA adapters are given to `llmd serve --lora NAME=DIR`" in refused.stderr


def test_paths_are_relative_to_the_modelfile(home: Home, tmp_path: Path) -> None:
    tiny = home.folder / "data" / "llmd" / "models" / "tiny"
    (tmp_path / "model").symlink_to(tiny)
    (tmp_path / "Modelfile").write_text("FROM ./model\nSYSTEM Be brief.\n")
    assert home.llmd("create", "brief", "-f", str(tmp_path / "Modelfile")).returncode == 0
    rows = {row["name"]: row for row in home.json("list")["models"]}
    assert rows["brief"]["base"] in {"tiny", str(tiny)}


def test_an_option_without_effect_is_named(home: Home) -> None:
    done = home.llmd("create", "b", "-f", "-", stdin="FROM tiny\nPARAMETER num_gpu 99\nPARAMETER top_k 5\n")
    assert (done.returncode, done.stdout) == (0, "b\n")
    assert "PARAMETER num_gpu has no effect" in done.stderr
    assert "top_k" not in done.stderr


def test_standard_input_and_errors(home: Home) -> None:
    assert home.llmd("create", "b", "-f", "-", stdin="FROM tiny\n").stdout == "b\n"
    absent = home.llmd("create", "c", "-f", "/nowhere/Modelfile")
    assert absent.returncode == 2
    assert "/nowhere/Modelfile cannot be read: No such file or directory" in absent.stderr
    missing = home.llmd("create", "c", "-f", "-", stdin="FROM qwen3\n")
    assert missing.returncode == 3
    assert "qwen3 stands for Qwen/Qwen3-4B, which is not on this machine" in missing.stderr
    assert "llmd pull qwen3" in missing.stderr


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("PARAMETER top_k 5\nPARAMETER top_p 2", "Modelfile:3: PARAMETER top_p must be between 0"),
        ("PARAMETER temperature hot", "Modelfile:2: PARAMETER temperature must be"),
        ("PARAMETER stop a", ""),
        ("PARAMETER num_gpu 99", ""),
    ],
)
def test_a_wrong_parameter_is_named_as_the_modelfile_names_it_with_its_line(text: str, message: str) -> None:
    modelfile = read_modelfile(f"FROM tiny\n{text}\n", "Modelfile")
    with pytest.raises(ConfigError, match=message) if message else nullcontext():
        check_parameters(modelfile, "Modelfile")
