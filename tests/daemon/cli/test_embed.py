"""`llmd embed` prints vectors."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from typing import Any

import click
import pytest

from llmd.cli.embed import lines_of, shown
from tests.serving.model import write_embedding_model, write_model
from tests.serving.running import EMBEDDER, MODEL, RunningDaemon, directories_below, running_daemon

Llmd = Callable[..., Any]


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningDaemon]:
    directories = directories_below(tmp_path_factory.mktemp("embedder"))
    write_embedding_model(directories.models / EMBEDDER)
    write_model(directories.models / MODEL)
    with running_daemon(directories, models=(EMBEDDER,)) as running:
        yield running


def test_prints_a_line_of_numbers_for_each_text(asked: Llmd, daemon: RunningDaemon) -> None:
    done = asked("embed", EMBEDDER, "--", "Hello", "-x")
    assert (done.code, done.err) == (0, "")
    expected = daemon.client().embed(["Hello", "-x"], model=EMBEDDER)
    assert [[float(n) for n in line.split()] for line in done.out.splitlines()] == [
        pytest.approx(vector, rel=1e-8) for vector in expected
    ]


def test_lines_of_standard_input_are_texts(
    asked: Llmd, monkeypatch: pytest.MonkeyPatch, daemon: RunningDaemon
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("Hello\n\n  \nHi\n"))
    found = json.loads(asked("embed", EMBEDDER, "--json").out)
    assert (found["schema"], found["model"]) == (1, EMBEDDER)
    assert found["embeddings"] == daemon.client().embed(["Hello", "Hi"], model=EMBEDDER)


def test_vectors_are_cut_on_request(asked: Llmd) -> None:
    assert len(asked("embed", EMBEDDER, "Hello", "--dimensions", "8").out.split()) == 8
    done = asked("embed", EMBEDDER, "Hello", "--dimensions", "65")
    assert done.code == 2
    assert "between 1 and 64" in done.err


def test_a_model_that_generates_is_refused(asked: Llmd) -> None:
    done = asked("embed", MODEL, "Hello")
    assert done.code == 2
    assert "cannot embed" in done.err


def test_nothing_to_embed_is_a_mistake_of_the_user(asked: Llmd) -> None:
    assert asked("embed", EMBEDDER).code == 2
    with pytest.raises(click.UsageError, match="no text"):
        lines_of(io.StringIO(" \n"))
    with pytest.raises(click.UsageError, match="there is no text"):
        lines_of(None)


def test_numbers_can_be_read_again() -> None:
    assert shown([0.1, -1.5, 1e-20]) == "0.1 -1.5 1e-20"
