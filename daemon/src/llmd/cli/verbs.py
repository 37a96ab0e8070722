"""The verbs of ``llmd``: where each lives and what it is for. Reading this table imports no command."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import click


class Verb(NamedTuple):
    """One verb: ``module`` holds its ``click.Command`` under the name ``command``."""

    module: str
    help: str

    def load(self) -> click.Command:
        command: click.Command = import_module(self.module).command
        return command


# In the order of ``llmd --help``: first what most people need.
VERBS = {
    "run": Verb("llmd.cli.run", "Answer one prompt."),
    "chat": Verb("llmd.cli.chat", "Talk with a model."),
    "embed": Verb("llmd.cli.embed", "Turn texts into vectors."),
    "serve": Verb("llmd.cli.serve", "Serve models over HTTP and a Unix socket."),
    "list": Verb("llmd.cli.list", "List the models of this machine."),
    "show": Verb("llmd.cli.show", "Show a model: sizes, context, template."),
    "pull": Verb("llmd.cli.pull", "Fetch a model from a hub."),
    "convert": Verb("llmd.cli.convert", "Rewrite a model as a GGUF file or a directory."),
    "cp": Verb("llmd.cli.cp", "Give a model another name."),
    "rm": Verb("llmd.cli.rm", "Remove models that were pulled."),
    "ps": Verb("llmd.cli.ps", "Show loaded models and what they do."),
    "stop": Verb("llmd.cli.stop", "Unload a model, or end the daemon."),
    "devices": Verb("llmd.cli.devices", "Show devices, how fast they are, and why one is not used."),
    "plugins": Verb("llmd.cli.plugins", "List and install plugins."),
    "keys": Verb("llmd.cli.keys", "Make, list and take back API keys."),
    "check": Verb("llmd.cli.check", "Run the conformance suite on a device."),
    "bench": Verb("llmd.cli.bench", "Measure how fast a server is."),
    "config": Verb("llmd.cli.config", "Show settings and where each came from."),
    "version": Verb("llmd.cli.version", "Print the versions of client and daemon."),
    "help": Verb("llmd.cli.help", "Show the help of a command."),
    "doctor": Verb("llmd.cli.doctor", "Check this installation and say what mends it."),
}

# What people type who come from elsewhere.
ALIASES = {"ls": "list", "status": "ps", "unload": "stop", "delete": "rm", "copy": "cp"}
