from __future__ import annotations

from pathlib import Path

import pytest

from llmd.api.errors import UnsupportedModelError
from llmd.models.gguf.rwkv7 import rwkv7_fields
from tests.daemon.models.gguf.test_families import fields


def test_sizes_have_the_names_of_fla(tmp_path: Path) -> None:
    found = rwkv7_fields(fields(tmp_path, "rwkv7", {}))
    assert found.pop("norm_eps") == pytest.approx(1e-3)
    assert found == {
        "head_dim": 16,
        "decay_low_rank_dim": 24,
        "a_low_rank_dim": 16,
        "v_low_rank_dim": 8,
        "gate_low_rank_dim": 32,
        "norm_bias": True,
        "norm_first": True,
    }
    assert not rwkv7_fields(fields(tmp_path, "rwkv7-odd", {}))["norm_bias"]


def test_another_number_of_mixes_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedModelError, match="token_shift_count is 1"):
        rwkv7_fields(fields(tmp_path, "rwkv7", {"rwkv7.token_shift_count": 1}))
