"""The keys of indexers. tests/golden/test_conversion.py tests the round trip of whole models."""

from __future__ import annotations

import numpy as np

from llmd.models.gguf.indexer_keys import indexer_keys
from tests.daemon.models.gguf.test_config_keys import plan


def test_sizes_are_stated_once_for_all_layers() -> None:
    assert indexer_keys(plan("deepseek-v32")) == {
        "attention.indexer.head_count": 16,
        "attention.indexer.key_length": 32,
        "attention.indexer.top_k": 16,
    }


def test_layers_that_use_the_positions_of_others_are_stated() -> None:
    types = indexer_keys(plan("glm-moe-dsa-shared"))["attention.indexer.types"]
    assert np.array_equal(types, [True, True, False, False, True, False])


def test_other_models_have_no_such_keys() -> None:
    assert indexer_keys(plan("deepseek-v3")) == {}
