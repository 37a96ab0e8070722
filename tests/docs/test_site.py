"""The site of the documentation: its navigation, its links, and the pages made from docstrings."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

import llmd.api
from llmd import Client, Engine
from tests.docs.page import DOCS, ROOT
from tools.docs.api_pages import PAGES, modules
from tools.docs.navigation import LINK, LISTED, page_of, sections

FIRST = (DOCS / "README.md").read_text()
TINY = {
    "docs/README.md": "# Tiny\n\n## Use\n\n[Start](start.md), [Python](python-api.md), [all](../plugins)\n",
    "docs/start.md": "# Start\n\nSee [the source](../plugins/one.py), [its folder](../plugins), [b](#part-b).\n\n## Part B\n",
    "docs/python-api.md": "# Python\n\n[parts](../daemon/src/llmd/api/parts.py), [parsing](../daemon/src/llmd/api/parsing.py)\n",
    "plugins/README.md": "# Plugins\n",
    "plugins/one.py": "if 1 < 2: print('<b>')\n",
    "daemon/src/llmd/api/parts.py": "",
    "daemon/src/llmd/api/parsing.py": "",
}


def build(folder: Path, builder: str = "html") -> subprocess.CompletedProcess[str]:
    """Build the site of a folder as `make docs` does."""
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", builder]
    places = ["-c", str(ROOT / "tools" / "docs"), "-d", str(folder / "build" / "trees"), str(folder)]
    return subprocess.run(
        [*command, *places, str(folder / "build")], cwd=ROOT, capture_output=True, text=True, check=False
    )


def write(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built site of a few files."""
    folder = write(tmp_path_factory.mktemp("site"), TINY)
    done = build(folder)
    assert (done.returncode, done.stderr) == (0, "")
    return folder / "build"


def links(page: Path) -> list[str]:
    body = page.read_text().partition('role="main"')[2].partition("</article>")[0]
    return re.findall(r'<a class="reference internal" href="([^"]*)"', body)


def test_links_to_files_and_folders_lead_to_pages(tiny: Path) -> None:
    assert links(tiny / "docs" / "start.html") == [
        "../plugins/one.py.html",
        "../plugins/README.html",
        "#part-b",
    ]
    copy = (tiny / "plugins" / "one.py.html").read_text()
    assert "<pre>if 1 &lt; 2: print(&#x27;&lt;b&gt;&#x27;)\n</pre>" in copy


def test_the_navigation_has_the_sections_of_the_first_page(tiny: Path) -> None:
    navigation = (tiny / "docs" / "start.html").read_text().partition('class="sidebar-tree"')[2]
    assert re.findall(r'caption-text">([^<]*)<', navigation) == ["Use"]
    named = re.findall(r'<a class="(?:current )?reference internal" href="([^"]*)"', navigation)
    assert named[:3] == ["#", "python-api.html", "../plugins/README.html"]


def test_docstrings_become_text_with_links(tiny: Path) -> None:
    page = (tiny / "docs" / "python-api.html").read_text()
    assert 'id="llmd.api.parsing.CallReader.feed"' in page
    assert 'href="#llmd.api.parts.Text" title="llmd.api.parts.Text"' in page, (
        "`Text` in the docstring of CallReader"
    )
    assert "Texts that some tokenizers have as special tokens: the reader gets them" in page


def test_the_address_of_the_site_leads_to_the_first_page(tiny: Path) -> None:
    assert 'content="0; url=docs/README.html"' in (tiny / "index.html").read_text()


def test_a_broken_link_and_a_forgotten_page_are_errors(tmp_path: Path) -> None:
    first = {"docs/README.md": "# Tiny\n\n## Use\n\n[gone](gone.md)\n", "docs/lost.md": "# Lost\n"}
    done = build(write(tmp_path, first), "dummy")
    assert done.returncode == 1
    assert "nonexisting document 'docs/gone'" in done.stderr
    assert "target not found: 'gone.md'" in done.stderr
    assert "document isn't included in any toctree" in done.stderr


@pytest.mark.exhaustive
@pytest.mark.timeout(300)
def test_the_whole_site_has_no_warning(tmp_path: Path) -> None:
    command = ["make", "--no-print-directory", "-n", "docs"]
    planned = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    (line,) = (line for line in planned.splitlines() if "-m sphinx" in line)
    words = line.replace("build/docs", str(tmp_path)).split()
    done = subprocess.run([sys.executable, *words[1:]], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert (tmp_path / "docs" / "plugin-api.html").exists()


def test_the_first_page_names_every_other_page() -> None:
    listed = {page_of(target, DOCS) for target in LINK.findall(FIRST)}
    folders = {f"{Path(readme).parent}" for readme in LISTED}
    pages = {
        str(page.relative_to(DOCS).with_suffix(""))
        for page in DOCS.rglob("*.md")
        if str(page.parent.relative_to(ROOT)) not in {*folders, "docs/plans"}
    }
    assert pages - {"README"} <= listed


def test_sections_keep_the_order_of_their_links(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    text = "# T\n\n[x](x.md)\n\n## A\n\n[b](b.md#c), [a](a.md), [b](b.md)\n\n## B\n\n[f](folder), [w](http://w.md)\n"
    first, second = sections(text, tmp_path)
    assert ":caption: A\n\nb\na\n```" in first
    assert ":caption: B\n\nfolder/README\n```" in second


def test_every_module_of_the_contract_is_documented() -> None:
    named = {module for page in PAGES for module in modules((ROOT / f"{page}.md").read_text())}
    folder = Path(inspect.getfile(llmd.api)).parent
    contract = {f"llmd.api.{path.stem}" for path in folder.glob("*.py") if path.stem != "__init__"}
    assert contract <= named
    assert {Engine.__module__, Client.__module__} <= named


@pytest.mark.parametrize("kind", [Engine, Client])
def test_every_call_has_a_docstring(kind: type) -> None:
    calls = {name: value for name, value in vars(kind).items() if not name.startswith("_")}
    assert [name for name, value in calls.items() if not inspect.getdoc(value)] == []
