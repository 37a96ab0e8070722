"""`llmd convert` converts a model, and says what it wrote and how to run it."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gguf
import pytest

from llmd.cli.main import EXIT_INTERRUPTED
from llmd.cli.settings import read_settings
from tests.golden.converted import different, stored_tensors
from tests.serving.home import LLMD, Home
from tests.serving.terminal import LIMIT_S, terminal

Llmd = Callable[..., Any]

FOR_LLMD = (
    "only llmd can read the file: llama.cpp does not know how the built-in model's tokenizer splits text"
)


def test_the_guide_goes_there_and_comes_back(llmd: Llmd, tmp_path: Path) -> None:
    path, back = tmp_path / "guide.gguf", tmp_path / "back"
    there = llmd("convert", "guide", str(path))
    assert there.code == 0
    assert there.out.splitlines() == [
        f"note: {FOR_LLMD}",
        f"wrote {path}: 10.3 MiB, 65 tensors, 50 as bf16, 15 as f32",
        f"run it with `llmd run {path} PROMPT`",
    ]
    assert "guide.gguf: 10.2 MiB of 10.2 MiB" in there.err
    assert len(gguf.GGUFReader(path).tensors) == 65
    assert llmd("convert", str(path), str(back), "--quiet").err == ""
    assert llmd("show", str(back)).code == 0
    assert {dtype for dtype, _ in stored_tensors(back).values()} == {"BF16"}


def test_a_model_among_the_others_is_called_by_its_name(llmd: Llmd) -> None:
    models = read_settings(None).directories.models
    models.mkdir(parents=True)
    done = llmd("convert", "guide", str(models / "copy"))
    assert done.out.splitlines()[-1] == "run it with `llmd run copy PROMPT`"


def test_what_becomes_of_quantised_weights_is_said(llmd: Llmd, tmp_path: Path) -> None:
    path, back = tmp_path / "q.gguf", tmp_path / "back"
    assert "49 as q4_0, 15 as f32, 1 as q8_0" in llmd("convert", "guide", str(path), "--quant", "q4_0").out
    first, second, _ = llmd("convert", str(path), str(back)).out.splitlines()
    assert (
        first
        == "note: weights are stored as q4_0, which a directory cannot hold: they become f16, which takes more space"
    )
    assert second.startswith(f"wrote {back}: ")


def test_programs_get_one_object(llmd: Llmd, tmp_path: Path) -> None:
    done = llmd("convert", "guide", str(tmp_path / "g.gguf"), "--json")
    report = json.loads(done.out)["converted"]
    assert report == {
        "target": str(tmp_path / "g.gguf"),
        "size_bytes": (tmp_path / "g.gguf").stat().st_size,
        "num_tensors": 65,
        "formats": {"bf16": 50, "f32": 15},
        "notices": [FOR_LLMD],
    }
    assert done.err == ""


def test_force_replaces_a_model(llmd: Llmd, tmp_path: Path) -> None:
    target = str(tmp_path / "g.gguf")
    assert llmd("convert", "guide", target).code == 0
    refused = llmd("convert", "guide", target, "--quant", "q8_0")
    assert (refused.code, refused.err) == (
        9,
        f"llmd: {target} already exists\n      choose another TARGET, or add --force to replace it\n",
    )
    assert llmd("convert", "guide", target, "--quant", "q8_0", "--force").code == 0
    assert {dtype for dtype, _ in stored_tensors(Path(target)).values()} == {"Q8_0", "F32"}


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (("absent", "x.gguf"), 3, "there is no model 'absent'"),
        (
            ("guide", "x.safetensors"),
            2,
            "give a directory for safetensors, or a path that ends in .gguf",
        ),
        (
            ("guide", "x.gguf", "--quant", "q4_k"),
            2,
            "choose one of f32, f16, bf16, q8_0, q5_1, q5_0, q4_1, q4_0",
        ),
        (("guide", "x", "--quant", "q4_0"), 2, "for a quantised file give a TARGET that ends in .gguf"),
        (("guide", "/proc/x/y.gguf"), 1, "/proc/x"),
    ],
)
def test_what_cannot_be_done_is_told_with_what_can(
    arguments: tuple[str, ...], code: int, sentence: str, llmd: Llmd, tmp_path: Path
) -> None:
    source, target, *options = arguments
    done = llmd("convert", source, str(tmp_path / target), *options)
    assert done.code == code
    assert sentence in done.err
    assert not any(path.name.startswith((".x", "x")) for path in tmp_path.iterdir())


def test_a_name_of_the_store_is_a_source(llmd: Llmd, tmp_path: Path) -> None:
    models = tmp_path / "data" / "llmd" / "models"
    assert llmd("convert", "guide", str(models / "wide"), "--quant", "f32").code == 0
    assert llmd("convert", "wide", str(models / "narrow"), "--quant", "bf16").code == 0
    guide = json.loads(llmd("show", "guide", "--json").out)["model"]["directory"]
    assert different(stored_tensors(Path(guide)), stored_tensors(models / "narrow")) == []
    assert "narrow" in llmd("list").out


def test_on_a_terminal_there_is_a_bar(home: Home) -> None:
    with terminal((*LLMD, "convert", "guide", str(home.folder / "g.gguf")), home.environment) as screen:
        assert screen.end() == 0
    assert "━" in screen.shown
    assert "10.2 MiB of 10.2 MiB" in screen.shown
    assert screen.shown.rstrip().endswith("g.gguf PROMPT`")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda number: number.name)
def test_what_is_interrupted_leaves_nothing(number: signal.Signals, home: Home) -> None:
    """Standard error is a full pipe, so that the command blocks on its first progress line."""
    target = home.folder / "out" / "wide"
    shown, full = filled_pipe()
    with (
        subprocess.Popen(
            (*LLMD, "convert", "guide", str(target)), env=home.environment, stderr=full
        ) as process,
        os.fdopen(shown, "rb") as reader,
    ):
        os.close(full)
        deadline = time.monotonic() + LIMIT_S
        while not (target.parent.exists() and list(target.parent.iterdir())):
            assert time.monotonic() < deadline, "it never begins"
        process.send_signal(number)
        reader.read()
    assert process.returncode == EXIT_INTERRUPTED
    assert list(target.parent.iterdir()) == []


def filled_pipe() -> tuple[int, int]:
    """Return both ends of a full pipe."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(writer, bytes(4096))
    os.set_blocking(writer, True)
    return reader, writer
