from __future__ import annotations

from pathlib import Path

from llmd.models.gguf.state_spaces import having_tensor, state_spaces
from llmd.models.space_names import MAMBA2
from tests.daemon.models.gguf.test_families import fields


def test_sizes_have_the_names_of_the_family(tmp_path: Path) -> None:
    assert state_spaces(fields(tmp_path, "mamba2", {}), MAMBA2) == {
        "num_heads": 8,
        "head_dim": 16,
        "n_groups": 2,
        "state_size": 24,
        "conv_kernel": 4,
        "use_conv_bias": True,
        "use_bias": False,
    }


def test_layers_of_a_draft_head_do_not_count(tmp_path: Path) -> None:
    whole = fields(tmp_path, "mamba2", {})
    assert having_tensor(whole, "ssm_in.weight") == [True, True, True]
    assert having_tensor(whole, "attn_q.weight") == [False, False, False]
    draft = fields(tmp_path, "mamba2", {"mamba2.nextn_predict_layers": 1})
    assert having_tensor(draft, "ssm_in.weight") == [True, True]
