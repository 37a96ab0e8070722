"""The examples run as a reader would run them, against a daemon that serves the guide."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.serving.home import Home, Served, make_home

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    return make_home(tmp_path_factory.mktemp("home"), tmp_path_factory.mktemp("probes"))


@pytest.fixture(scope="module")
def served(home: Home) -> Iterator[Served]:
    with home.serve("guide", "--addr", "127.0.0.1:0", "--addr", f"unix:{home.socket}") as served:
        yield served
        assert served.end() == 0


def output_of(*command: str | Path, **environment: str) -> str:
    """What a program prints that ends well and has nothing to complain about;
    no proxy leads to this machine.
    """
    variables = os.environ | {"no_proxy": "127.0.0.1"} | environment
    done = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return done.stdout


def test_the_engine_answers_in_its_own_process(home: Home) -> None:
    shown = output_of(sys.executable, EXAMPLES / "python_engine.py", **home.environment)
    assert "guide on cpu" in shown
    assert "llmd list" in shown
    assert "logits (" in shown


def test_the_client_finds_the_daemon_and_streams(home: Home, served: Served) -> None:
    environment = home.environment | {"LLMD_HOST": f"unix:{home.socket}"}
    shown = output_of(sys.executable, EXAMPLES / "python_client.py", **environment)
    assert shown.startswith("daemon ")
    assert "llmd list" in shown
    assert "tokens" in shown.splitlines()[-1]


def test_the_page_about_python_runs_from_its_first_line_to_its_last(home: Home, served: Served) -> None:
    blocks = BLOCK.findall((ROOT / "docs" / "python.md").read_text())
    environment = home.environment | {"LLMD_HOST": f"unix:{home.socket}"}
    lines = output_of(sys.executable, "-c", "\n".join(blocks), **environment).splitlines()
    in_process, sizes, three_and_four, word, shape, _counted, daemon, whole, streamed, *errors = lines
    assert "llmd list" in in_process
    assert sizes.startswith(("stop ", "length "))
    assert "7" in three_and_four
    assert word in {"yes", "no"}
    assert shape.startswith("(")
    assert "'guide'" in daemon
    assert whole.strip() == streamed.strip() == in_process.strip()
    assert errors[0].startswith("there is no model 'no-such-model'")
    assert errors[-1] == "DaemonUnreachableError"


def test_openais_client_streams(served: Served) -> None:
    shown = output_of(sys.executable, EXAMPLES / "openai_client.py", OPENAI_BASE_URL=f"{served.url}/v1")
    assert "llmd list" in shown


def test_anthropics_client_streams(served: Served) -> None:
    shown = output_of(sys.executable, EXAMPLES / "anthropic_client.py", ANTHROPIC_BASE_URL=served.url)
    assert "llmd list" in shown


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_curl_lists_models_and_streams(served: Served) -> None:
    shown = output_of(EXAMPLES / "curl.sh", served.url)
    assert '"id":"guide"' in shown.replace(" ", "")
    assert shown.rstrip().endswith("data: [DONE]")
