"""The subcommands of ``llmd`` with their modules and help. Importing this table imports no command."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import click


class Subcommand(NamedTuple):
    """One subcommand."""

    module: str
    """Defines the ``click.Command`` as ``command``."""
    help: str

    def load(self) -> click.Command:
        command: click.Command = import_module(self.module).command
        return command


# In the order of ``llmd --help``: the most used first.
SUBCOMMANDS = {
    "run": Subcommand("llmd.cli.run", "Answer one prompt."),
    "chat": Subcommand("llmd.cli.chat", "Chat with a model."),
    "embed": Subcommand("llmd.cli.embed", "Compute embeddings of texts."),
    "serve": Subcommand("llmd.cli.serve", "Serve models over HTTP and a Unix socket."),
    "list": Subcommand("llmd.cli.list", "List the models on this machine."),
    "show": Subcommand("llmd.cli.show", "Show details of a model: size, context length, template."),
    "pull": Subcommand("llmd.cli.pull", "Download a model from a hub."),
    "search": Subcommand("llmd.cli.search", "Find models to download."),
    "create": Subcommand("llmd.cli.create", "Derive a model from another one with a Modelfile."),
    "convert": Subcommand("llmd.cli.convert", "Convert a model to a GGUF file or a directory."),
    "cp": Subcommand("llmd.cli.cp", "Copy a model to a new name."),
    "rm": Subcommand("llmd.cli.rm", "Remove models that llmd pulled, copied or derived."),
    "load": Subcommand("llmd.cli.load", "Load a model before its first request."),
    "ps": Subcommand("llmd.cli.ps", "Show loaded models and their state."),
    "cancel": Subcommand("llmd.cli.cancel", "End requests that run or wait."),
    "stop": Subcommand("llmd.cli.stop", "Unload a model or stop the daemon."),
    "reload": Subcommand("llmd.cli.reload", "Make the daemon read settings, keys and plugins again."),
    "logs": Subcommand("llmd.cli.daemon_logs.command", "Show the daemon's log."),
    "service": Subcommand("llmd.cli.service", "Run the daemon as a service of systemd or launchd."),
    "devices": Subcommand("llmd.cli.devices", "List devices, their speed, and why any are not used."),
    "plan": Subcommand("llmd.cli.plan", "Predict how fast a model runs on each choice of devices."),
    "plugins": Subcommand("llmd.cli.plugins", "List, install, remove and create plugins."),
    "keys": Subcommand("llmd.cli.keys", "Create, list and revoke API keys."),
    "check": Subcommand("llmd.cli.check", "Run the conformance suite on a device."),
    "bench": Subcommand("llmd.cli.bench", "Benchmark a server or the engine loop."),
    "config": Subcommand("llmd.cli.config", "Show, check and change settings."),
    "completion": Subcommand("llmd.cli.completion.script", "Print a shell's completion script."),
    "version": Subcommand("llmd.cli.version", "Print the client and daemon versions."),
    "help": Subcommand("llmd.cli.help", "Show the help of a command."),
    "doctor": Subcommand("llmd.cli.doctor.main", "Check this installation and suggest fixes."),
}

# Names that other tools use for these commands.
ALIASES = {"ls": "list", "status": "ps", "unload": "stop", "delete": "rm", "copy": "cp"}
