"""The library makes no memory error and leaks nothing: sanitizers, valgrind, and altered replies."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.bindings.building import HERE, SOURCES, STRICT, Library, Probe, Step, build_library, checked
from tests.bindings.scripted_server import events, http, scripted
from tests.bindings.test_replies import FLOATS, STREAM, rows
from tests.serving.home import Home
from tests.serving.running import EMBEDDER, MODEL, RunningDaemon

OK, CANCELLED, NOT_FOUND, BAD_REPLY, NOT_STARTED = 0, 1, 8, 12, 13
SANITIZED = (
    "-O1",
    "-g",
    "-fsanitize=address,undefined",
    "-fno-sanitize-recover=all",
    "-fno-omit-frame-pointer",
)
VALGRIND = ("valgrind", "--quiet", "--error-exitcode=99", "--leak-check=full", "--show-leak-kinds=all",
            "--errors-for-leak-kinds=all", "--child-silent-after-fork=yes")  # fmt: skip
ROUNDS, MANY_ROUNDS = 4_000, 200_000
REPLIES = (
    events(*STREAM),
    http(rows(FLOATS, FLOATS)),
    http(b'{"tokens":[0,7,2147483647]}'),
    http('{"content":"Grüße \\ud83d\\udc4b","input_tokens":7}'.encode()),
    http(b'{"object":"list","data":[{"id":"a"},{"id":"b"}]}'),
    http(b'{"error":{"message":"no","type":"invalid_request_error","code":"x"}}', "400 Bad Request"),
)


def compiled_fuzzer(folder: Path, *flags: str) -> Path:
    """The library's sources in one program, except those that open connections."""
    sources = [str(path) for path in sorted((SOURCES / "src").glob("*.c")) if path.name != "connection.c"]
    found = (
        f"-I{SOURCES / 'include'}",
        f"-I{SOURCES / 'src'}",
        "-D_GNU_SOURCE",
        '-DLLMD_LIBRARY_VERSION="0"',
    )
    program = folder / "fuzz"
    checked("cc", "-std=c99", *STRICT, *flags, *found, str(HERE / "fuzz.c"), *sources, "-o", str(program))
    return program


def replies_in(folder: Path) -> list[str]:
    files = [folder / f"reply{place}" for place in range(len(REPLIES))]
    for file, reply in zip(files, REPLIES, strict=True):
        file.write_bytes(reply)
    return [str(file) for file in files]


def test_altered_replies_end_in_an_answer_or_an_error(tmp_path: Path) -> None:
    fuzzer = compiled_fuzzer(tmp_path, "-O1")
    checked(str(fuzzer), "1", str(ROUNDS), *replies_in(tmp_path))


@pytest.mark.exhaustive
@pytest.mark.timeout(1200)
def test_altered_replies_make_no_memory_error(tmp_path: Path) -> None:
    fuzzer = compiled_fuzzer(tmp_path, *SANITIZED)
    for seed in range(2):
        checked(str(fuzzer), str(seed), str(MANY_ROUNDS), *replies_in(tmp_path))


needs_valgrind = pytest.mark.skipif(shutil.which("valgrind") is None, reason="needs valgrind")


@pytest.fixture(scope="module", params=["sanitizers", pytest.param("valgrind", marks=needs_valgrind)])
def strict_probe(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    clean_environment: dict[str, str],
) -> Probe:
    """The test program, which ends with an error if it uses memory wrongly or leaks it."""
    is_sanitized = request.param == "sanitizers"
    flags = SANITIZED if is_sanitized else ("-O1", "-g")
    library: Library = build_library(tmp_path_factory.mktemp(request.param), flags=flags)
    program = str(library.program(HERE / "probe.c"))
    return Probe((program,) if is_sanitized else (*VALGRIND, program), clean_environment)


@pytest.fixture
def usual_calls(daemon: RunningDaemon) -> list[str]:
    address = [
        "set",
        "address",
        f"unix:{daemon.socket}",
        "connect",
        "models",
        "new",
        "option",
        "model",
        MODEL,
    ]
    question = ["message", "user", "Hello", "option", "max_tokens", "20", "option", "ignore_eos", "true"]
    return [*address, *question, "option", "stop", "\n\n", "reset", "stop"]


@pytest.mark.exhaustive
@pytest.mark.timeout(300)
def test_every_call_is_clean(strict_probe: Probe, usual_calls: list[str]) -> None:
    calls = [
        "chat",
        "complete",
        "Hi",
        "count",
        "tokenize",
        "Hi",
        "detokenize",
        "json",
        '{"role":"user","content":"x"}',
    ]
    steps = strict_probe.run(
        *usual_calls, *calls, "option", "model", EMBEDDER, "embed", "a|b", "clear", "close"
    )
    assert [step for step in steps if step["status"] != OK] == []


@pytest.mark.exhaustive
@pytest.mark.timeout(300)
@pytest.mark.parametrize("how", ["stop-after", "cancel-after"])
def test_a_cancelled_call_is_clean(how: str, strict_probe: Probe, usual_calls: list[str]) -> None:
    step = strict_probe.last(*usual_calls, "option", "max_tokens", "400", how, "3", "chat")
    assert step["status"] == CANCELLED


@pytest.mark.exhaustive
@pytest.mark.timeout(300)
def test_errors_are_clean(strict_probe: Probe, usual_calls: list[str], tmp_path: Path) -> None:
    step = strict_probe.last(*usual_calls, "option", "model", "nobody", "chat")
    assert step["status"] == NOT_FOUND
    wrong = ["set", "addres", "x", "set", "connect_timeout_ms", "x", "connect", "new", "load", "", "models"]
    assert all(step["status"] != OK for step in strict_probe.run(*wrong))
    bad = [events(*STREAM)[:300], http(rows(FLOATS)), http(b'{"tokens":[1,-1]}'), b"nonsense\n"]
    with scripted(tmp_path, *([reply] for reply in bad)) as server:
        calls = (
            "set",
            "address",
            server.address,
            "connect",
            "new",
            "chat",
            "embed",
            "a|b",
            "tokenize",
            "a",
            "chat",
        )
        steps: list[Step] = strict_probe.run(*calls)
    assert all(step["status"] != OK for step in steps[3:])


@pytest.mark.exhaustive
@pytest.mark.timeout(300)
def test_a_private_daemon_is_clean(strict_probe: Probe, home: Home) -> None:
    at_home = Probe(strict_probe.command, home.environment)
    (step,) = at_home.run("load", "nobody")
    assert step["status"] == NOT_STARTED
    calls = ("set", "device", "reference", "load", "tiny", "new", "message", "user", "Hi", "chat", "close")
    assert [step for step in at_home.run(*calls) if step["status"] != OK] == []


@pytest.mark.exhaustive
@pytest.mark.timeout(300)
@needs_valgrind
def test_the_example_is_clean_under_valgrind(library: Library, host: dict[str, str]) -> None:
    program = library.program(SOURCES / "examples" / "chat.c", name="chat_under_valgrind")
    environment = os.environ | host
    for prompt, status in (("Hello", 0), ("x" * 2000, 1)):  # the second is longer than the context
        done = subprocess.run(
            (*VALGRIND, program, prompt), env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == status, done.stderr
        assert "==" not in done.stderr


@pytest.mark.exhaustive
@pytest.mark.timeout(300)
@pytest.mark.skipif(shutil.which("clang-19") is None, reason="needs clang-19")
def test_clang_has_no_warning_either(tmp_path: Path) -> None:
    library = build_library(tmp_path, "clang-19", ("-O2",))
    assert library.program(HERE / "probe.c").exists()
