from __future__ import annotations

import subprocess
import sys

import pytest

from llmd.host.blas_threads import VARIABLES

CODE = """
import os
from llmd.host.blas_threads import keep_blas_single_threaded
keep_blas_single_threaded()
import numpy
print(len(os.listdir("/proc/self/task")))
"""


def test_numpy_has_no_threads_of_its_own_whatever_the_environment_says(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in VARIABLES:
        monkeypatch.setenv(name, "8")
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True)
    assert done.stdout == "1\n"
