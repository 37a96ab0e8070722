"""A plugin is named by a path, a URL, or a distribution."""

from __future__ import annotations

from pathlib import Path

import pytest

from llmd.api.errors import ConfigError
from llmd.host.installation.targets import Target, read_target


def test_a_path_becomes_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "plugin").mkdir()
    assert read_target("./plugin") == Target(str(tmp_path / "plugin"), is_file=True)
    assert read_target("./plugin").name == ""
    assert read_target(".") == Target(str(tmp_path), is_file=True)


def test_a_name_is_not_taken_for_a_folder_of_that_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "llmd-backend-gpu").mkdir()
    assert read_target("llmd-backend-gpu") == Target("llmd-backend-gpu", is_file=False)


@pytest.mark.parametrize(
    "name", ["llmd-backend-gpu", "a", "a_b.c==1.0", "name[extra]>=2,<3", "name~=1.2", "name != 3"]
)
def test_names_may_have_versions(name: str) -> None:
    assert read_target(name) == Target(name, is_file=False)


def test_the_name_of_a_distribution_is_canonical() -> None:
    assert read_target("Made_Plugin.x[extra]==1.0").name == "made-plugin-x"


@pytest.mark.parametrize(
    "url",
    ["https://example.org/a-1.0-py3-none-any.whl", "git+https://example.org/a.git@main", "file:///a.whl"],
)
def test_urls_are_taken_as_they_are(url: str) -> None:
    assert read_target(url) == Target(url, is_file=True)


@pytest.mark.parametrize(
    "target",
    [
        "",
        "--index-url=https://example.org",
        "-r",
        "./nothing",
        "a @ https://example.org/a",
        "a; b",
        "ftp://a/b",
    ],
)
def test_anything_else_is_refused(target: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read_target(target)
    assert repr(target) in caught.value.message
