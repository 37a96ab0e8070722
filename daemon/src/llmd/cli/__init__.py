"""The command ``llmd``: one module per subcommand, imported when the subcommand is used. ``subcommands`` is the list."""
