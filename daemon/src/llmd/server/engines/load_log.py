"""Logs where an engine has placed its model, and what users should know of it."""

from __future__ import annotations

import logging

from llmd.api.messages import Loaded, Replanned

logger = logging.getLogger(__name__)


def log_placement(model: str, message: Loaded | Replanned, known: Loaded | None) -> None:
    """Log a placement; ``known`` is the one before it, whose notices are not repeated by a `Replanned`."""
    if isinstance(message, Loaded):
        logger.info("model_loaded", extra={"model": model, "load_s": round(message.load_s, 3)})
        logged: tuple[str, ...] = ()
    else:
        devices = ", ".join(stage.device for stage in message.stages)
        logger.warning("model_replanned", extra={"model": model, "epoch": message.epoch, "devices": devices})
        logged = known.notices if known else ()
    for notice in message.notices:
        if notice not in logged:
            logger.warning("load_notice", extra={"model": model, "notice": notice})
