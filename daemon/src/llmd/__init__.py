"""llmd: a plugin-based inference daemon.

Importing this package imports nothing else, because every plugin does so by importing ``llmd.api``. Three
names are resolved on first use: `Engine` (a model in this process), `Client` (of a running daemon) and
``__version__``.
"""


def __dir__():  # noqa: ANN202 - __init__.pyi has the types
    return sorted({*globals(), "Client", "Engine", "__version__"})


def __getattr__(name):  # noqa: ANN001, ANN202 - __init__.pyi has the types
    homes = {"Engine": "llmd.embedded.engine", "Client": "llmd.client"}
    if name in homes:
        from importlib import import_module

        return getattr(import_module(homes[name]), name)
    if name == "__version__":
        from importlib.metadata import version

        return version("llmd-daemon")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
