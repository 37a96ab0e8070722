"""Options whose defaults come from the configuration or the model; the help shows them anyway."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from llmd.config.other_tools import flags_of

if TYPE_CHECKING:
    from click.types import OptionHelpExtra

Decorated = TypeVar("Decorated", bound=Callable[..., Any])


class OptionWithDefault(click.Option):
    """An option without a value unless it is typed; the help shows ``default_text`` as its default."""

    def __init__(self, *arguments: Any, default_text: str = "", **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.default_text = default_text

    def get_help_extra(self, ctx: click.Context) -> OptionHelpExtra:
        extra = super().get_help_extra(ctx)
        if self.default_text:
            extra["default"] = self.default_text
        return extra


class SettingOption(OptionWithDefault):
    """The option of a setting, with the schema's default.

    It also accepts the names that other tools use. The help shows only llmd's names.
    """

    def __init__(self, *arguments: Any, setting: str, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.setting = setting

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        from llmd.config.setting_text import default_text

        shown = copy.copy(self)
        others = flags_of(self.setting)
        shown.opts = [name for name in self.opts if name not in others]
        shown.default_text = default_text(self.setting)
        return click.Option.get_help_record(shown, ctx)


def setting_option(*names: str, setting: str, **details: Any) -> Callable[[Decorated], Decorated]:
    """Return a decorator that adds the option of a setting to a command."""
    return click.option(*names, *flags_of(setting), cls=SettingOption, setting=setting, **details)
