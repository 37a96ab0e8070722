"""``llmd reload``: makes the daemon read settings, keys and plugins again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from llmd.cli.connection import connect
from llmd.cli.output import show_json
from llmd.cli.settings import JSON, client_options

WHEN = {
    "now": "in force now",
    "next_load": "in force when a model is loaded next",
    "restart": "needs a restart of the daemon",
}
USED = {
    "now": "is used from now on",
    "next_load": "is used by models that are loaded from now on",
    "restart": "is used after a restart of the daemon",
}


@click.command("reload")
@JSON
@client_options
def command(*, as_json: bool, host: str | None, timeout_s: float | None, config_file: Path | None) -> None:
    """Make the daemon read settings, keys, certificate and plugins again.

    Running answers go on. If a setting cannot be used, all of them stay as they were. Flags of `llmd serve`
    still win over the file.
    """
    report = connect(host, timeout_s, config_file).reload()
    if as_json:
        show_json(report)
        return
    for line in lines_of(report):
        click.echo(line)


def lines_of(report: dict[str, Any]) -> list[str]:
    """Return a line for each change."""
    from llmd.config.setting_text import setting_text

    lines = [
        f"{change['setting']}: {_text(change, 'old', setting_text)} -> {_text(change, 'new', setting_text)}"
        f" ({WHEN[change['applies']]})"
        for change in report["changed"]
    ]
    lines += [f"plugin removed: {name}" for name in report["lost_plugins"]]
    lines += [f"plugin added: {name}" for name in report["new_plugins"]]
    lines += [line for plugin in report.get("changed_plugins", ()) for line in plugin_lines(plugin)]
    return lines or ["nothing has changed"]


def plugin_lines(changed: dict[str, Any]) -> list[str]:
    """Return the lines for a plugin whose code changed: when it is used, or why not and what to do."""
    plugin, reason = changed["plugin"], changed["reason"]
    if not reason:
        return [f"plugin changed: {plugin} {USED[changed['applies']]}"]
    until = "; until a restart, the daemon uses the code that it has loaded"
    return [
        f"plugin changed: {plugin} cannot be used: {reason}{until if changed['applies'] == 'restart' else ''}",
        f"  fix: {changed['fix']}",
    ]


def _text(change: dict[str, Any], which: str, setting_text: Any) -> str:
    return setting_text(change["setting"], change[which]) or "not set"
