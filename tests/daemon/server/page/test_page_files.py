from __future__ import annotations

import json
import re
from html.parser import HTMLParser

from llmd.server.dialects.openai.fields import EFFORTS
from llmd.server.page.page_files import START, TYPES, page_files, suffix_of

ADDRESSES_IN_TEXT = ("http://www.w3.org/2000/svg",)
"""Names of languages look like addresses, but nothing is loaded from them."""


class Elements(HTMLParser):
    """The elements of a document."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.inside: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        if self.found and self.found[-1][0] in {"script", "style"}:
            self.inside.append(data.strip())


def source(name: str) -> str:
    return page_files()[name].content.decode()


def test_every_file_has_a_type_and_a_tag_of_its_own() -> None:
    files = page_files()
    assert {file.type for file in files.values()} == set(TYPES.values())
    assert len({file.etag for file in files.values()}) == len(files)
    assert all(re.fullmatch(r'"[0-9a-f]{32}"', file.etag) for file in files.values())


def test_suffixes_are_the_last_ones() -> None:
    assert [suffix_of(name) for name in ("a.min.js", "none", ".css")] == [".js", "", ".css"]


def test_the_document_names_only_files_of_the_page() -> None:
    elements = Elements(source(START)).found
    loaded = {
        attributes.get("src") or attributes.get("href")
        for tag, attributes in elements
        if tag in {"script", "link", "img"}
    }
    assert {f"/page/{name}" for name in page_files()} >= loaded
    assert len(loaded) > 4


def test_the_document_has_no_script_style_or_handler_inside() -> None:
    document = Elements(source(START))
    names = {name for _, attributes in document.found for name in attributes}
    assert not {name for name in names if name == "style" or name.startswith("on")}
    assert not any(document.inside)


def test_every_module_that_is_imported_is_there() -> None:
    for name in page_files():
        if name.endswith(".js"):
            imported = re.findall(r'from "\./([^"]+)"', source(name))
            assert set(imported) <= set(page_files()), name


def test_scripts_never_parse_html() -> None:
    banned = re.compile(
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser|createContextualFragment"
        r"|setHTML|\beval\b|new Function|srcdoc"
    )
    assert [name for name in page_files() if banned.search(source(name))] == []


def test_every_effort_of_the_api_can_be_chosen() -> None:
    listed = re.search(r"EFFORTS = (\[.*\]);", source("request.js"))
    assert listed
    assert json.loads(listed[1]) == ["", *EFFORTS]


def test_no_file_names_another_host() -> None:
    for name, file in page_files().items():
        text = file.content.decode()
        for known in ADDRESSES_IN_TEXT:
            text = text.replace(known, "")
        text = re.sub(r"^\s*(//|\*).*$", "", text, flags=re.MULTILINE)
        text = re.sub(r"/.*https\?.*/y?", "", text)  # patterns that find addresses
        assert not re.search(r"https?://[a-z]", text), name


def test_labels_belong_to_controls() -> None:
    elements = Elements(source(START)).found
    ids = {attributes.get("id") for _, attributes in elements}
    named = [attributes["for"] for tag, attributes in elements if tag == "label" and "for" in attributes]
    controlled = [attributes["aria-controls"] for _, attributes in elements if "aria-controls" in attributes]
    assert set(named + controlled) <= ids
    assert len(named) >= 2
