"""Plugins of outsiders, installed into a folder of the search path without building them."""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from llmd.host.cache import Cache
from llmd.host.names import PluginName, discover

TRIALS = Path(__file__).parent / "daemon" / "host" / "trial_plugins"
EXAMPLE = Path(__file__).parents[1] / "examples" / "backend_example"


@dataclass
class Site:
    """A folder of the search path, with the distributions that tests put there."""

    folder: Path
    installed: set[str] = field(default_factory=set)
    modules: set[str] = field(default_factory=set)

    def install(self, *projects: str) -> list[PluginName]:
        """Install trial plugins by the names of their folders; returns all plugins of this site, in order."""
        for name in projects:
            self.install_project(TRIALS / name)
        return self.plugins()

    def install_project(self, project: Path) -> list[PluginName]:
        """What installing a project does that matters here:
        its modules and its metadata come into the folder.
        """
        settings = tomllib.loads((project / "pyproject.toml").read_text())["project"]
        sources = project / "src" if (project / "src").is_dir() else project
        for path in sources.rglob("*.py"):
            target = self.folder / path.relative_to(sources)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(path.read_text())
        return self.announce(settings["name"], settings["version"], settings["entry-points"]["llmd"])

    def write(self, name: str, source: str, *, version: str = "1.0") -> PluginName:
        """Install a plugin of one module, whose text is given. The distribution is called ``made-NAME``."""
        module = f"made_{name}"
        (self.folder / f"{module}.py").write_text(source)
        plugins = self.announce(f"made-{name}", version, {name: module})
        return next(plugin for plugin in plugins if plugin.name == name)

    def plugins(self) -> list[PluginName]:
        return [plugin for plugin in discover() if plugin.distribution in self.installed]

    def announce(self, distribution: str, version: str, points: dict[str, str]) -> list[PluginName]:
        """Write the metadata of a distribution."""
        metadata = self.folder / f"{distribution.replace('-', '_')}-{version}.dist-info"
        metadata.mkdir(exist_ok=True)
        (metadata / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {distribution}\nVersion: {version}\n"
        )
        lines = "".join(f"{name} = {module}\n" for name, module in points.items())
        (metadata / "entry_points.txt").write_text(f"[llmd]\n{lines}")
        self.installed.add(distribution)
        self.modules |= {module.split(".")[0] for module in points.values()}
        return self.plugins()


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    """An empty folder on the search path of this process and of those that it starts."""
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(folder)
    site = Site(folder)
    yield site
    for name in [name for name in sys.modules if name.split(".")[0] in site.modules]:
        del sys.modules[name]


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return Cache(tmp_path / "cache")


@pytest.fixture
def example() -> Path:
    """The project of the example backend."""
    return EXAMPLE
