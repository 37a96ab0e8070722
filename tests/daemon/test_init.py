"""The root of the package has three names, and imports nothing until one is used."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import version

import pytest

import llmd
from llmd.client import Client
from llmd.embedded.engine import Engine


def test_names_of_the_root_are_the_real_things() -> None:
    assert llmd.Engine is Engine
    assert llmd.Client is Client
    assert llmd.__version__ == version("llmd-daemon")


def test_dir_shows_the_public_names() -> None:
    assert {"Client", "Engine", "__version__"} <= set(dir(llmd))


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Motor'"):
        _ = llmd.Motor  # type: ignore[attr-defined]


def test_the_root_imports_nothing_and_the_client_no_numpy() -> None:
    code = """
import sys
before = set(sys.modules)
import llmd
assert set(sys.modules) - before == {"llmd"}, set(sys.modules) - before
llmd.Client
assert not {"numpy", "aiohttp", "tokenizers"} & set(sys.modules)
"""
    subprocess.run([sys.executable, "-c", code], check=True)
