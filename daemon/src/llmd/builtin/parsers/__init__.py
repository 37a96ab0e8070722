"""How families of models write reasoning and calls of tools."""
