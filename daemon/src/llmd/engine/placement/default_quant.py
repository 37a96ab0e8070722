"""A format of quantisation that is meant for all models applies to those whose weights are stored plain."""

from __future__ import annotations

from msgspec import structs

from llmd.api.messages import Load
from llmd.models.open_model import OpenModel
from llmd.models.weight_formats import stored_integers


def with_default_quant(load: Load, model: OpenModel) -> tuple[Load, OpenModel]:
    """Return a load without `Load.quant`, and the model with a notice, if it is a default that is ignored."""
    stored = stored_integers(model.checkpoint)
    if load.quant is None or not load.quant_is_default or not stored:
        return load, model
    notice = f"the weights are stored quantised, as {', '.join(stored)}: the setting quant = {load.quant} is ignored"
    return (
        structs.replace(load, quant=None),
        structs.replace(model, notices=(*model.notices, notice)),
    )
