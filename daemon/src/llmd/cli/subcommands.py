"""The subcommands of ``llmd``: where each lives and what it is for. Reading this table imports no command."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import click


class Subcommand(NamedTuple):
    """One subcommand: ``module`` holds its ``click.Command`` under the name ``command``."""

    module: str
    help: str

    def load(self) -> click.Command:
        command: click.Command = import_module(self.module).command
        return command


# In the order of ``llmd --help``: first what most people need.
SUBCOMMANDS = {
    "run": Subcommand("llmd.cli.run", "Answer one prompt."),
    "chat": Subcommand("llmd.cli.chat", "Talk with a model."),
    "embed": Subcommand("llmd.cli.embed", "Turn texts into vectors."),
    "serve": Subcommand("llmd.cli.serve", "Serve models over HTTP and a Unix socket."),
    "list": Subcommand("llmd.cli.list", "List the models of this machine."),
    "show": Subcommand("llmd.cli.show", "Show a model: sizes, context, template."),
    "pull": Subcommand("llmd.cli.pull", "Fetch a model from a hub."),
    "convert": Subcommand("llmd.cli.convert", "Rewrite a model as a GGUF file or a directory."),
    "cp": Subcommand("llmd.cli.cp", "Give a model another name."),
    "rm": Subcommand("llmd.cli.rm", "Remove models that were pulled."),
    "ps": Subcommand("llmd.cli.ps", "Show loaded models and what they do."),
    "stop": Subcommand("llmd.cli.stop", "Unload a model, or end the daemon."),
    "devices": Subcommand("llmd.cli.devices", "Show devices, how fast they are, and why one is not used."),
    "plugins": Subcommand("llmd.cli.plugins", "List and install plugins."),
    "keys": Subcommand("llmd.cli.keys", "Make, list and take back API keys."),
    "check": Subcommand("llmd.cli.check", "Run the conformance suite on a device."),
    "bench": Subcommand("llmd.cli.bench", "Measure how fast a server is."),
    "config": Subcommand("llmd.cli.config", "Show settings and where each came from."),
    "version": Subcommand("llmd.cli.version", "Print the versions of client and daemon."),
    "help": Subcommand("llmd.cli.help", "Show the help of a command."),
    "doctor": Subcommand("llmd.cli.doctor", "Check this installation and say what fixes it."),
}

# What people type who come from elsewhere.
ALIASES = {"ls": "list", "status": "ps", "unload": "stop", "delete": "rm", "copy": "cp"}
