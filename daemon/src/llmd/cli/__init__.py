"""The command ``llmd``: one module per subcommand, imported on use; ``subcommands`` lists them."""
