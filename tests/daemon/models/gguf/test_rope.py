from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from llmd.api.errors import CheckpointError, UnsupportedModelError
from llmd.builtin.architectures import rope_scaling
from llmd.models.gguf.fields import GgufFields
from llmd.models.gguf.gguf_model import GgufModel
from llmd.models.gguf.rope import rope_config
from tests.golden.gguf_layout import head_dim, write_gguf
from tests.golden.models.catalog import tiny_model


def read(tmp_path: Path, name: str, **changes: Any) -> dict[str, Any]:
    case = tiny_model(name)
    named = {key.replace("__", "."): value for key, value in changes.items()}
    with GgufModel.open([write_gguf(case, tmp_path / "m.gguf", changes=named)]) as model:
        return rope_config(GgufFields(model.metadata, model.owners), model, head_dim(case.config))


def test_a_plain_rope_has_its_base_alone(tmp_path: Path) -> None:
    assert read(tmp_path, "codellama") == {"rope_theta": 1000000.0, "rope_scaling": None}
    assert read(tmp_path, "codellama", llama__rope__freq_base=None)["rope_theta"] == 10000.0


def test_linear_scaling_has_its_factor(tmp_path: Path) -> None:
    assert read(tmp_path, "llama-linear-rope")["rope_scaling"] == {"rope_type": "linear", "factor": 2.5}


def test_the_divisors_of_llama_3_give_its_frequencies(tmp_path: Path) -> None:
    found = read(tmp_path, "llama3-gqa-tied")["rope_scaling"]
    plain = rope_scaling.frequencies(500000.0, 16)
    expected = rope_scaling.llama3(plain, 8.0, 1.0, 4.0, 48)
    assert rope_scaling.longrope(plain, found["short_factor"]) == pytest.approx(expected, rel=1e-6)
    assert found["long_factor"] == found["short_factor"]
    assert found["attention_factor"] == 1.0


def test_a_factor_of_the_file_multiplies_yarns_own(tmp_path: Path) -> None:
    found = read(tmp_path, "llama-yarn-rope")["rope_scaling"]
    assert (found["beta_fast"], found["original_max_position_embeddings"]) == (4.0, 64)
    assert found["attention_factor"] == pytest.approx(rope_scaling.yarn_attention_factor(4.0))
    twice = read(tmp_path, "llama-yarn-rope", llama__rope__scaling__attn_factor=2.0)["rope_scaling"]
    assert twice["attention_factor"] == pytest.approx(2 * found["attention_factor"])


def test_the_yarn_of_deepseek_v4_multiplies_nothing(tmp_path: Path) -> None:
    found = read(tmp_path, "deepseek-v4-some-experts", deepseek4__rope__scaling__attn_factor=2.0)[
        "rope_scaling"
    ]
    assert "attention_factor" not in found
    assert (found["factor"], found["beta_fast"], found["beta_slow"]) == (4.0, 24.0, 2.0)


def test_only_the_yarn_of_gpt_oss_is_not_truncated(tmp_path: Path) -> None:
    assert read(tmp_path, "gpt-oss")["rope_scaling"]["truncate"] is False
    assert read(tmp_path, "llama-yarn-rope")["rope_scaling"]["truncate"] is True


def test_the_yarn_of_deepseek_multiplies_scores_alone(tmp_path: Path) -> None:
    found = read(tmp_path, "deepseek-v3")["rope_scaling"]
    assert found["attention_factor"] == 1.0
    assert found["mscale_all_dim"] == pytest.approx(0.707)
    plain = read(tmp_path, "deepseek-v3", deepseek2__rope__scaling__yarn_log_multiplier=None)["rope_scaling"]
    assert plain["mscale_all_dim"] is None


@pytest.mark.parametrize("num_rotated", range(2, 97, 2))
def test_the_share_that_is_rotated_gives_its_number_back(tmp_path: Path, num_rotated: int) -> None:
    changes = {"phi3__rope__dimension_count": num_rotated}
    share = read(tmp_path, "phi4-mini-short", **changes).get("partial_rotary_factor", 1.0)
    assert int(24 * share) == num_rotated


def test_divisors_are_not_scaled_again(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedModelError, match=r"none, where there is rope_freqs.weight"):
        read(tmp_path, "llama3-gqa-tied", llama__rope__scaling__type="linear")


def test_a_factor_may_not_be_missing(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"llama.rope.scaling.factor is missing"):
        read(tmp_path, "llama-yarn-rope", llama__rope__scaling__factor=None)


def test_large_divisors_leave_pairs_unturned(tmp_path: Path) -> None:
    found = read(tmp_path, "gemma4")["rope_scaling"]
    assert found["rope_type"] == "proportional"
    assert len([f for f in rope_scaling.proportional(1e6, 64, found["partial_rotary_factor"], 1.0) if f]) == 8
