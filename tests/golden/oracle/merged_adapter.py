"""A tiny model in transformers with an adapter merged into its weights: ``W + scale * (B @ A)``.

This is the formula of PEFT's documentation (and of Hu et al. 2021, section 4.1), with the scales of
`tests.golden.adapters`, which are worked out by hand. PEFT itself is not used.
"""

from __future__ import annotations

import torch
from transformers import PreTrainedModel

from tests.golden.adapters import AdapterCase
from tests.golden.oracle.transformers_model import build


@torch.no_grad()
def merged(case: AdapterCase) -> PreTrainedModel:
    """The model of an adapter, with the adapter; sums are rounded to float32 once."""
    model = build(case.base)
    for module in case.modules():
        a, b = (torch.from_numpy(one).double() for one in case.factors(module))
        weight = model.get_submodule(module).weight
        weight.copy_((weight.double() + case.scale(module) * (b @ a)).float())
    return model
