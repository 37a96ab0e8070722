"""Each damaged model is refused with the right error before a weight is read."""

from __future__ import annotations

import gc
from collections import Counter
from pathlib import Path

import pytest

from llmd.models.open_model import open_model
from tests.corrupt.case import Case
from tests.corrupt.corpus import CASES, inspect_model, known_architectures
from tests.corrupt.gguf_cases import write_small_gguf
from tests.corrupt.small_model import write_sharded, write_small_model
from tests.corrupt.untouchable import map_untouchable


@pytest.fixture(scope="module", autouse=True)
def _only_the_garbage_of_these_tests() -> None:
    """Leave what other tests made out of the collections below, which else take a second each."""
    gc.collect()
    gc.freeze()


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return write_small_model(tmp_path / "model")


def test_the_undamaged_model_passes(directory: Path) -> None:
    assert inspect_model(directory).num_layers == 2
    write_sharded(directory)
    assert inspect_model(directory).num_layers == 2


def test_the_undamaged_gguf_file_passes(directory: Path) -> None:
    write_small_gguf(directory)
    assert inspect_model(directory).num_layers == 2


def test_a_touched_weight_would_be_noticed(directory: Path) -> None:
    opened = open_model(directory, known_architectures(), mapper=map_untouchable)
    with opened.checkpoint, pytest.raises(TypeError):
        opened.checkpoint.view("model.norm.weight")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_damage_is_refused_before_a_weight_is_read(directory: Path, case: Case) -> None:
    case.damage(directory)
    with pytest.raises(case.error) as caught:
        inspect_model(directory)
    assert type(caught.value) is case.error
    assert caught.value.hint
    for mention in case.mentions:
        assert mention in str(caught.value)
    gc.collect()  # a file left open would warn here


def test_no_two_cases_share_a_name() -> None:
    assert [name for name, count in Counter(case.name for case in CASES).items() if count > 1] == []
