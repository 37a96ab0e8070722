"""A daemon that the library starts belongs to the program, and ends with it."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
from pathlib import Path

import pytest

from tests.bindings.building import Probe
from tests.serving.home import Home
from tests.serving.model import CONTEXT_LEN
from tests.serving.processes import children

OK, BAD_ARGUMENT, REJECTED, NOT_STARTED = 0, 2, 9, 13
OPTIONS = ("set", "device", "reference", "set", "max_ctx", "64", "set", "kv_memory", "64MiB")
OF_THE_C_LIBRARY = 0b11 << 31  # signals 32 and 33, which programs cannot change
CHAT = ("new", "message", "user", "Hello", "option", "max_tokens", "3", "chat")


@pytest.fixture
def at_home(probe: Probe, home: Home, tmp_path: Path) -> Probe:
    return Probe(probe.command, {**home.environment, "TMPDIR": str(tmp_path)})


def with_program(probe: Probe, folder: Path, script: str) -> Probe:
    """The probe, with a shell script in place of ``llmd``."""
    program = folder / "llmd"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return Probe(
        probe.command, {**probe.environment, "PATH": f"{folder}:/usr/bin:/bin", "TMPDIR": str(folder)}
    )


def is_alive(process: int) -> bool:
    try:
        return "State:\tZ" not in Path(f"/proc/{process}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False


def folders(folder: Path) -> list[Path]:
    return list(folder.glob("llmd-*"))


def test_a_model_is_loaded_answers_and_is_gone_with_its_handle(at_home: Probe, tmp_path: Path) -> None:
    long = ("message", "user", "x" * (CONTEXT_LEN // 2), "chat")
    with at_home.waiting(*OPTIONS, "load", "tiny", "models", *CHAT, *long) as (process, steps):
        (daemon,) = children(process.pid)
        assert os.getpgid(daemon) == daemon != os.getpgid(process.pid)
        (folder,) = folders(tmp_path)
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert (folder / "llmd.sock").is_socket()
    assert process.returncode == 0
    assert not is_alive(daemon)
    assert not folders(tmp_path)
    (models,) = [step for step in steps if step["call"] == "models"]
    assert models["models"][0] == "tiny"
    first, second = [step for step in steps if step["call"] == "chat"]
    assert first["status"] == OK
    assert (second["status"], "64" in second["message"]) == (REJECTED, True)  # the option max_ctx


def test_a_closed_handle_leaves_no_process(probe: Probe, tmp_path: Path) -> None:
    fake = with_program(probe, tmp_path, "echo ready; cat")
    with fake.waiting("load", "tiny", "close") as (process, _):
        assert children(process.pid) == []
        assert not folders(tmp_path)


def test_a_program_that_is_killed_takes_its_daemon_along(probe: Probe, tmp_path: Path) -> None:
    """A daemon ends with its standard input, as `cat` does: tests/daemon/cli/test_serve.py."""
    fake = with_program(probe, tmp_path, "echo ready; cat")
    with fake.waiting("load", "tiny") as (process, _):
        (daemon,) = children(process.pid)
        process.kill()
        while is_alive(daemon):
            pass
    assert process.returncode == -signal.SIGKILL


def test_a_model_that_cannot_be_loaded_says_why_and_leaves_nothing(at_home: Probe, tmp_path: Path) -> None:
    step = at_home.last("load", "nobody")
    assert (step["status"], step["hint"]) == (NOT_STARTED, "run `llmd serve` with the same model to see more")
    assert "there is no model 'nobody'" in step["message"]
    assert not folders(tmp_path)


def test_a_daemon_that_fails_to_start_is_no_zombie(probe: Probe, tmp_path: Path) -> None:
    failing = with_program(probe, tmp_path, "echo 'it is broken' >&2; echo 'second line' >&2; exit 3")
    with failing.waiting("load", "tiny") as (process, _):
        assert children(process.pid) == []
    step = failing.last("load", "tiny")
    assert step["status"] == NOT_STARTED
    assert step["message"].endswith("ended before it was ready: it is broken second line")
    assert not folders(tmp_path)


def test_a_daemon_that_is_never_ready_is_ended(probe: Probe, tmp_path: Path) -> None:
    hanging = with_program(probe, tmp_path, "exec sleep 1000")
    step = hanging.last("set", "start_timeout_ms", "50", "load", "tiny")
    assert (step["status"], "was not ready in time" in step["message"]) == (NOT_STARTED, True)
    assert not folders(tmp_path)


def test_a_missing_program_is_named(probe: Probe, tmp_path: Path) -> None:
    step = probe.last("set", "program", str(tmp_path / "nowhere"), "load", "tiny")
    assert step["status"] == NOT_STARTED
    assert step["message"] == f"cannot run {tmp_path}/nowhere: No such file or directory"
    assert "option program" in step["hint"]


def test_the_daemon_inherits_neither_signals_nor_files(probe: Probe, tmp_path: Path) -> None:
    script = (
        f"grep -E 'SigBlk|SigIgn' /proc/self/status > {tmp_path}/signals; ls /proc/$$/fd > {tmp_path}/files; "
        f'echo "$@" > {tmp_path}/arguments; echo ready; cat'
    )
    fake = with_program(probe, tmp_path, script)
    trapped = ("sh", "-c", 'trap "" INT TERM PIPE; exec "$0" "$@" 9< /dev/null', *probe.command)
    Probe(trapped, fake.environment).run("set", "slots", "3", "load", "-m x")
    blocked, ignored = (tmp_path / "signals").read_text().split()[1::2]
    assert (int(blocked, 16), int(ignored, 16) & ~OF_THE_C_LIBRARY) == (0, 0)
    assert "9" not in (tmp_path / "files").read_text().split()
    arguments = (tmp_path / "arguments").read_text()
    assert arguments.startswith("serve --exit-on-eof --no-spare-engine --addr unix:/")
    assert arguments.endswith(" --slots=3 -- -m x\n")


def test_a_folder_for_temporary_files_that_is_too_deep_is_not_used(probe: Probe, tmp_path: Path) -> None:
    """The path of a socket has at most 107 bytes."""
    fake = with_program(probe, tmp_path, f'echo "$@" > {tmp_path}/arguments; echo ready; cat')
    (deep := tmp_path / ("x" * 100)).mkdir()
    Probe(fake.command, {**fake.environment, "TMPDIR": str(deep)}).run("load", "tiny")
    assert " --addr unix:/tmp/llmd-" in (tmp_path / "arguments").read_text()


def test_a_handle_has_one_private_daemon(probe: Probe, tmp_path: Path) -> None:
    fake = with_program(probe, tmp_path, "echo ready; cat")
    load, again, connect = fake.run("load", "tiny", "load", "tiny", "connect")
    assert load["status"] == OK
    assert (again["status"], again["hint"]) == (BAD_ARGUMENT, "open another handle")
    assert connect["status"] == BAD_ARGUMENT


def test_a_host_that_ignores_its_children_can_load(probe: Probe, tmp_path: Path) -> None:
    """The system then waits for children itself, and waitpid fails."""
    fake = with_program(probe, tmp_path, "echo ready; cat")
    program = "import os, signal, sys; signal.signal(signal.SIGCHLD, signal.SIG_IGN); os.execv(sys.argv[1], sys.argv[1:])"
    command = ("python3", "-c", program, *probe.command, "load", "tiny", "close")
    done = subprocess.run(command, env=fake.environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.count('"status": 0')) == (0, 2)
    assert not folders(tmp_path)
