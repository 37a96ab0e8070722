"""All checks of one plugin except the conformance suites of its devices."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from llmd.api.errors import PluginError
from llmd.host.description import Description, describe
from llmd.host.names import PluginName, module_files
from llmd.testing.conformance import CaseResult
from llmd.testing.plugins.architectures import check_architecture
from llmd.testing.plugins.commands import check_command
from llmd.testing.plugins.dialects import check_dialect
from llmd.testing.plugins.parsers import check_parser
from llmd.testing.plugins.results import Result, case
from llmd.testing.plugins.transports import check_transport


def check_plugin(plugin: PluginName) -> Iterator[Result]:
    """Yield the results for a plugin: its description, its imports, and each object that it provides."""
    try:
        description = describe(plugin)
    except PluginError as error:
        yield CaseResult("description", None, error.message)
        return
    yield CaseResult("description", None)
    if not plugin.built_in:
        yield case("imports only llmd.api", lambda: "; ".join(foreign_imports(plugin)))
    yield from check_objects(description)


def check_objects(description: Description) -> Iterator[Result]:
    """Yield the results for everything that a plugin provides except backends."""
    for architecture in description.architecture:
        yield from check_architecture(architecture)
    for transport in description.transport:
        yield from check_transport(transport)
    for dialect in description.dialect:
        yield from check_dialect(dialect)
    for parser in description.parser:
        yield from check_parser(parser)
    for command in description.command:
        yield from check_command(command)


def foreign_imports(plugin: PluginName) -> list[str]:
    """Return the imports of modules of llmd that may change in any version, with their places."""
    return [
        f"{path.name}:{line} imports {module}"
        for path in module_files(plugin.module)
        if path.suffix == ".py"
        for module, line in imported(path.read_text())
        if module.split(".")[0] == "llmd" and module.split(".")[1:2] != ["api"]
    ]


def imported(source: str) -> Iterator[tuple[str, int]]:
    """Yield the modules that a source imports, with the lines; ``from llmd import api`` is ``llmd.api``."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names = [node.module] if "." in node.module else [f"{node.module}.{a.name}" for a in node.names]
            yield from ((name, node.lineno) for name in names)
