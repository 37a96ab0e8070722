"""The setting variables and files: an invalid value keeps a daemon from starting."""

from __future__ import annotations

from collections.abc import Iterator

from llmd.cli.composition import build_store
from llmd.cli.config.absent_models import absent_loads, absent_models
from llmd.cli.doctor.check import Check, Surroundings, worst


def checks(around: Surroundings) -> Iterator[Check]:
    yield from worst(_numbered(_faults(around)), sources_check(around))


def sources_check(around: Surroundings) -> Check:
    """Say where settings come from."""
    settings = around.settings
    origins = [settings.origins, *settings.models.values()]
    given = [one.source for some in origins for one in some.values() if one.source != "default"]
    return Check("settings", "ok", f"from {', '.join(dict.fromkeys(given))}" if given else "all are defaults")


def _faults(around: Surroundings) -> Iterator[Check]:
    settings = around.settings
    for error in around.errors:
        yield Check("settings", "fail", error.message, error.hint)
    for variable in settings.unknown:
        seen = f"a variable that is no setting: {variable.name}"
        yield Check("settings", "warn", seen, f"{variable.hint}; to remove it: `unset {variable.name}`")
    from llmd.server.models.model_settings import settings_without_effect

    store = build_store(settings.directories)
    for error in settings_without_effect(settings, store.derived):
        yield Check("settings", "warn", error.message, error.hint)
    models = {name: own.values() for name, own in settings.models.items()}
    for absent in [*absent_models(models, store), *absent_loads(settings.origins, store)]:
        yield Check("settings", "warn", absent.message, absent.hint)


def _numbered(checks: Iterator[Check]) -> Iterator[Check]:
    """Give each check an id of its own: settings, settings:2, settings:3."""
    for number, check in enumerate(checks, 1):
        name = check.id if number == 1 else f"{check.id}:{number}"
        yield Check(name, check.status, check.seen, check.fix)
