"""Settings that may differ between models: the choice of parsers, and settings of unknown models."""

from __future__ import annotations

import difflib
import logging
from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING

from llmd.api.errors import ConfigError
from llmd.api.plugins import Parser
from llmd.chat.answers.answer_formats import AUTO, NONE, ParserChoice, Reads, check_parser
from llmd.config import Config, Settings, setting_name
from llmd.registry.derived import DerivedModels
from llmd.server.errors import ParserMissingError

if TYPE_CHECKING:
    from llmd.host.plugin_host import PluginHost

OWN_OF_DERIVED = frozenset({"server.keep_alive"})
"""Settings that a derived model may have of its own."""

logger = logging.getLogger(__name__)

PARSERS: Mapping[str, Reads] = {"server.tool_parser": "calls", "server.reasoning_parser": "reasoning"}


def parser_choice(parsers: Mapping[str, Parser], config: Config) -> ParserChoice:
    """Return the parsers that read the answers of a model with this configuration."""
    return ParserChoice(parsers, config.server.models.tool_parser, config.server.models.reasoning_parser)


def check_parsers(host: PluginHost, settings: Settings) -> None:
    """Check the configured parser names before any model is loaded.

    A parser whose plugin failed or is disabled is no error here: only the models that need it are refused
    (`missing_parser`).

    Raises:
        ConfigError: no parser has that name; the message says where it was set and lists the parsers.
    """
    parsers = host.parsers()
    for model, origins in [(None, settings.origins), *settings.models.items()]:
        for key, reads in PARSERS.items():
            if key in origins:
                origin = origins[key]
                where = f"{setting_name(key, model)} from {origin.source}"
                missing = None if origin.value in parsers else host.why_absent("parser", origin.value)
                if missing is None:
                    check_parser(parsers, reads, origin.value, where)
                else:
                    logger.warning("parser_missing", extra={"setting": where, "reason": missing.message})


def missing_parser(host: PluginHost, model: str, choice: ParserChoice) -> ParserMissingError | None:
    """Return the error for requests to a model whose parser is of a plugin that failed or is disabled."""
    for name in (choice.calls, choice.reasoning):
        why = None if name in (AUTO, NONE, *choice.parsers) else host.why_absent("parser", name)
        if why is not None:
            return ParserMissingError(
                f"{model} needs the parser {name}, but {why.message}",
                code="model_failed",
                hint=f"{why.hint} and `llmd reload`, or change the setting tool_parser or reasoning_parser",
            )
    return None


def settings_without_effect(settings: Settings, derived: DerivedModels) -> Iterator[ConfigError]:
    """Yield an error for each setting of a derived model that its base determines: they share an engine."""
    for model, origins in settings.models.items():
        found = derived.find(model)
        if found is None:
            continue
        for key, origin in origins.items():
            if key not in OWN_OF_DERIVED:
                error = ConfigError(
                    f"{setting_name(key, model)} from {origin.place} has no effect: {model} is derived from "
                    f"{found[1].base} and shares its engine",
                    hint=f"set it for {found[1].base}; a derived model may have its own keep_alive",
                )
                yield origin.placed(error)


def warn_of_unused(settings: Settings, names: Collection[str], derived: DerivedModels) -> None:
    """Warn of settings for models that are neither among ``names`` nor derived: a typo, or a model that is
    not pulled yet. Also warn of those of derived models that have no effect.
    """
    for error in settings_without_effect(settings, derived):
        logger.warning("setting_without_effect", extra={"reason": error.message, "hint": error.hint})
    names = {*names, *derived.names()}
    for model, origins in settings.models.items():
        if model not in names:
            files = ", ".join(sorted({origin.source for origin in origins.values()}))
            nearest = difflib.get_close_matches(model, names, n=1, cutoff=0.0)
            fields = {"model": model, "source": files, "nearest": nearest[0] if nearest else "none"}
            logger.warning("settings_of_no_model", extra=fields)
