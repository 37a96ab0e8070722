"""Settings that may differ between models: the choice of parsers, and settings of unknown models."""

from __future__ import annotations

import difflib
import logging
from collections.abc import Collection, Mapping

from llmd.api.plugins import Parser
from llmd.chat.answers.answer_formats import ParserChoice, Reads, check_parser
from llmd.config import Config, Settings, setting_name

logger = logging.getLogger(__name__)

PARSERS: Mapping[str, Reads] = {"server.tool_parser": "calls", "server.reasoning_parser": "reasoning"}


def parser_choice(parsers: Mapping[str, Parser], config: Config) -> ParserChoice:
    """Return the parsers that read the answers of a model with this configuration."""
    return ParserChoice(parsers, config.server.models.tool_parser, config.server.models.reasoning_parser)


def check_parsers(parsers: Mapping[str, Parser], settings: Settings) -> None:
    """Check the configured parser names before any model is loaded.

    Raises:
        ConfigError: no parser has that name; the message says where it was set and lists the parsers.
    """
    for model, origins in [(None, settings.origins), *settings.models.items()]:
        for key, reads in PARSERS.items():
            if key in origins:
                origin = origins[key]
                where = f"{setting_name(key, model)} from {origin.source}"
                check_parser(parsers, reads, origin.value, where)


def warn_of_unused(settings: Settings, names: Collection[str]) -> None:
    """Warn of settings for models that are not among ``names``: a typo, or a model that is not pulled yet."""
    for model, origins in settings.models.items():
        if model not in names:
            files = ", ".join(sorted({origin.source for origin in origins.values()}))
            nearest = difflib.get_close_matches(model, names, n=1, cutoff=0.0)
            fields = {"model": model, "source": files, "nearest": nearest[0] if nearest else "none"}
            logger.warning("settings_of_no_model", extra=fields)
