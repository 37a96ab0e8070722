"""Checks of architectures: damaged configurations are refused, and a small model runs on the reference."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from llmd.api.errors import CheckpointError, UnsupportedModelError
from llmd.api.plugins import Architecture, Config
from llmd.builtin.reference.device import ReferenceDevice
from llmd.testing.plugins.results import NotTested, Result, case
from llmd.testing.runs import run
from llmd.testing.workload import Workload, ragged

TOKENS = ((1, 2, 3, 4, 5), (6, 7))
# The fields that most families have, under the names of transformers.
SMALL: Config = {
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "vocab_size": 120,
    "max_position_embeddings": 128,
    "rms_norm_eps": 1e-6,
    "layer_norm_eps": 1e-6,
    "rope_theta": 10000.0,
    "hidden_act": "silu",
    "tie_word_embeddings": False,
}


def check_architecture(architecture: Architecture) -> Iterator[Result]:
    """Yield the results for a family."""
    name = f"architecture {architecture.names[0]}"
    yield case(f"{name}: refuses an empty configuration", lambda: _refuses_nothing(architecture))
    config = {**SMALL, "architectures": [architecture.names[0]], "model_type": architecture.names[-1]}
    try:
        architecture.plan(config, None)
    except (CheckpointError, UnsupportedModelError) as error:
        yield NotTested(f"{name}: a small model", f"it needs other fields than usual: {error.message}")
        return
    except Exception:  # noqa: BLE001, S110 - the case below reports it
        pass
    yield case(f"{name}: a small model runs on the reference", lambda: _runs(architecture, config))


def _refuses_nothing(architecture: Architecture) -> str:
    try:
        architecture.plan({}, None)
    except (CheckpointError, UnsupportedModelError):
        return ""
    return "planned a model without any field, expected a CheckpointError that names one"


def _runs(architecture: Architecture, config: Config) -> str:
    plan = architecture.plan(config, None)
    workload = Workload(architecture.names[0], plan, 0, len(plan.parts), TOKENS)
    outcome = run(ReferenceDevice(), workload, ragged(workload))
    finite = all(np.isfinite(row).all() for row in outcome.rows.values())
    return "" if finite else "the results have values that are not finite"
