"""Compilers that users have accept the native core without a warning."""

from __future__ import annotations

import shutil

import pytest

from tools.native_warnings import warnings


@pytest.mark.exhaustive
@pytest.mark.timeout(900)
@pytest.mark.parametrize("compiler", ["g++", "clang++-19"])
def test_no_translation_unit_draws_a_warning(compiler: str) -> None:
    if shutil.which(compiler) is None:
        pytest.skip(f"needs {compiler}")
    assert warnings(compiler) == []
