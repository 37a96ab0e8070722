"""The examples of `bindings/` run as a reader would run them."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.bindings.building import BINDINGS, ROOT, SOURCES, STRICT, Library, checked
from tests.serving.home import Home
from tests.serving.running import MODEL

EXAMPLES = SOURCES / "examples"
PAGE = ROOT / "docs" / "c-api.md"
CTYPES = BINDINGS / "python" / "llmd_ctypes.py"


@pytest.fixture(scope="session")
def example(library: Library) -> Path:
    return library.program(EXAMPLES / "chat.c", name="chat_in_c")


def ends_well(shown: str) -> bool:
    return shown.splitlines()[-1].startswith(("(length", "(stop"))


def test_the_example_in_c_streams(example: Path, host: dict[str, str]) -> None:
    shown = checked(str(example), "Hello", environment=host)
    assert ends_well(shown)
    assert shown.rstrip().endswith(" tokens)")


def test_the_example_of_the_page_runs_with_an_installed_library(
    library: Library, home: Home, tmp_path: Path
) -> None:
    """It starts a daemon of its own."""
    places = (f"BUILD={library.folder}", f"PREFIX={tmp_path}")
    checked("make", "--silent", f"--directory={SOURCES}", "install", *places)
    found = (tmp_path / "lib" / "pkgconfig" / "llmd.pc").read_text()
    values = dict(re.findall(r"^(\w+)=(.*)$", found, re.MULTILINE))
    flags = " ".join(re.findall(r"^(?:Libs|Cflags): (.*)$", found, re.MULTILINE))
    for name, value in reversed(values.items()):
        flags = flags.replace(f"${{{name}}}", value)
    (text,) = re.findall(r"^```c\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    (source := tmp_path / "program.c").write_text(text)
    program = tmp_path / "program"
    checked("cc", "-std=c99", *STRICT, str(source), *flags.split(), "-o", str(program))
    environment = home.environment | {"LD_LIBRARY_PATH": values["libdir"]}
    assert "llmd list" in checked(str(program), environment=environment)


def test_ctrl_c_ends_the_answer_of_the_example_in_c(example: Path, host: dict[str, str]) -> None:
    with subprocess.Popen(
        (example, "Hello"), env=os.environ | host, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.read(1)
        process.send_signal(signal.SIGINT)
        assert process.stderr.read() == b"the call was cancelled\n"
        assert process.wait() == 1


def test_the_example_in_c_says_what_is_wrong(example: Path, clean_environment: dict[str, str]) -> None:
    done = subprocess.run(
        (example, "Hello"), env=clean_environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "no daemon answers at" in done.stderr
    assert "llmd serve" in done.stderr


def test_the_example_with_ctypes_streams(library: Library, host: dict[str, str]) -> None:
    assert ends_well(checked(sys.executable, str(CTYPES), str(library.file), "Hello", environment=host))
    done = subprocess.run(
        (sys.executable, CTYPES, library.file, "Hello", "nobody"),
        env=os.environ | host,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "LlmdError: there is no model nobody" in done.stderr


def test_the_example_in_cpp_streams(library: Library, host: dict[str, str]) -> None:
    program = library.folder / "chat_in_cpp"
    found = (f"-I{SOURCES / 'include'}", f"-L{library.folder}", f"-Wl,-rpath,{library.folder}")
    checked("g++", "-std=c++17", *STRICT, *found, str(EXAMPLES / "chat.cpp"), "-lllmd", "-o", str(program))
    assert ends_well(checked(str(program), "Hello", MODEL, environment=host))
    done = subprocess.run(
        (program, "Hello", "nobody"), env=os.environ | host, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr.startswith("there is no model nobody")) == (1, True)


@pytest.mark.exhaustive
@pytest.mark.timeout(300)
@pytest.mark.skipif(shutil.which("go") is None, reason="needs Go")
def test_the_example_in_go_streams(library: Library, host: dict[str, str], tmp_path: Path) -> None:
    building = {
        "CGO_CFLAGS": f"-I{SOURCES / 'include'}",
        "CGO_LDFLAGS": f"-L{library.folder}",
        "GOCACHE": str(tmp_path / "cache"),
        "GOFLAGS": "-mod=mod",
        "GOPROXY": "off",
    }
    program = tmp_path / "chat"
    checked("go", "build", "-o", str(program), ".", environment=building, folder=BINDINGS / "go")
    environment = host | {"LD_LIBRARY_PATH": str(library.folder)}
    assert ends_well(checked(str(program), "Hello", MODEL, environment=environment))


@pytest.mark.exhaustive
@pytest.mark.timeout(300)
@pytest.mark.skipif(shutil.which("rustc") is None, reason="needs rustc")
def test_the_example_in_rust_streams(library: Library, host: dict[str, str], tmp_path: Path) -> None:
    program = tmp_path / "chat"
    linking = (f"-L{library.folder}", f"-Clink-arg=-Wl,-rpath,{library.folder}", "-Dwarnings")
    checked("rustc", "--edition=2021", *linking, str(BINDINGS / "rust" / "chat.rs"), "-o", str(program))
    assert ends_well(checked(str(program), "Hello", MODEL, environment=host))
