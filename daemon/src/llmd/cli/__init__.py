"""The command ``llmd``: one module per verb, imported when the verb is used. ``verbs`` is the list."""
