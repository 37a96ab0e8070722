"""The service of the system under a real systemd: `llmd service install --system` to `uninstall`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.services.booted import POLL_S, SYSTEMD, Machine, booted, hidden, missing
from tests.serving.model import write_model

pytestmark = [
    pytest.mark.exhaustive,
    pytest.mark.timeout(600),
    pytest.mark.skipif(missing() != "", reason=missing()),
]
OF_SYSTEM = pytest.mark.skipif(hidden() != "", reason=hidden())

MODEL = "tiny"
USER = "ann"
MODELS = "/var/lib/llmd/models"
SOCKET = "unix:/run/llmd/llmd.sock"
LIMIT_S = 120
CONFIG = """
[server]
keep_alive = "{keep_alive}"
engine_timeout_s = 0
[engine]
device = "reference"
kv_memory = "64MiB"
"""
QUICK = """
[Service]
WatchdogSec=3
TimeoutAbortSec=5
RestartSec=0.1
Environment=PYTHONPATH={path}
"""
"""For the test: short limits, and the sources of this checkout."""

STREAM = """
import sys
from llmd import Client
client = Client("unix:/run/llmd/llmd.sock")
fields = {"max_tokens": 400, "temperature": 0, "ignore_eos": True}
for piece in client.stream_chat([{"role": "user", "content": "Hello"}], model="tiny", **fields):
    print(piece.text, end="", flush=True)
"""


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_model(tmp_path_factory.mktemp("models") / MODEL)


@pytest.fixture
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    folder = tmp_path_factory.mktemp("machine")
    with booted(folder) as machine:
        yield machine


def wait_until(condition: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + LIMIT_S
    while not condition():
        assert time.monotonic() < end, what
        time.sleep(POLL_S)


def ask(machine: Machine) -> str:
    return machine.llmd("run", MODEL, "Hello", "-n", "8", "--temp", "0", "--host", SOCKET, "--no-start")


def loaded(machine: Machine) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = json.loads(machine.llmd("ps", "--host", SOCKET, "--json"))["models"]
    return rows


def service_row(llmd: Callable[..., str]) -> dict[str, object]:
    """Return what `llmd service status` says of the daemon."""
    rows: list[dict[str, object]] = json.loads(llmd("service", "status", "--json"))["units"]
    return next(row for row in rows if row["unit"] == "llmd.service")


def stream(machine: Machine) -> subprocess.Popen[str]:
    command = machine.command(sys.executable, "-c", STREAM)
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


@OF_SYSTEM
def test_a_service_from_its_installation_to_its_end(machine: Machine, model: Path) -> None:
    machine.write("/etc/llmd/config.toml", CONFIG.format(keep_alive="2s"))
    quick = QUICK.format(path=os.environ.get("PYTHONPATH", ""))
    machine.write("/etc/systemd/system/llmd.service.d/test.conf", quick)
    machine.copy(model, MODELS)
    installed = machine.llmd("service", "install", "--system")
    assert "llmd listens on unix:/run/llmd/llmd.sock and 127.0.0.1:8642" in installed
    assert machine.shown("llmd.socket", "ActiveState") == "active"
    assert machine.shown("llmd.service", "ActiveState") == "inactive"

    # The first connection starts the daemon, under its own user.
    answer = ask(machine)
    assert machine.shown("llmd.service", "ActiveState") == "active"
    pid = machine.shown("llmd.service", "MainPID")
    assert machine.run("stat", "-c", "%U", f"/proc/{pid}").strip() == "llmd"
    assert machine.run("stat", "-c", "%a %U %G", "/run/llmd/llmd.sock").strip() == "660 root llmd"

    # An idle model is unloaded, and the daemon stays.
    wait_until(lambda: not loaded(machine), "the idle model is still loaded")
    assert machine.shown("llmd.service", "MainPID") == pid
    assert machine.shown("llmd.service", "StatusText") in {"no model is loaded", f"serving {MODEL}"}

    # A reload changes settings under a stream, which loses no token.
    machine.write("/etc/llmd/config.toml", CONFIG.format(keep_alive="1h"))
    with stream(machine) as undisturbed:
        assert undisturbed.stdout is not None
        expected = undisturbed.stdout.read()
    with stream(machine) as reading:
        assert reading.stdout is not None
        begun = reading.stdout.read(1)
        machine.run("systemctl", "reload", "llmd.service")
        assert begun + reading.stdout.read() == expected
    log = machine.llmd("service", "logs", "--system")
    assert "setting_changed setting=server.keep_alive applies=now" in log
    assert "serving version=" in log
    assert machine.llmd("logs", "--host", SOCKET, "--level", "error") == ""

    # A daemon that hangs is restarted, and one whose engine hangs, which no setting restarts here.
    def restarted(signalled: str, count: int) -> None:
        machine.run("kill", "-STOP", signalled)
        wait_until(
            lambda: (
                machine.shown("llmd.service", "NRestarts") == str(count)
                and machine.shown("llmd.service", "ActiveState") == "active"
            ),
            f"process {signalled} hangs, and nothing happens",
        )
        assert ask(machine) == answer

    restarted(pid, 1)
    restarted(str(loaded(machine)[0]["engine_pid"]), 2)
    wait_until(lambda: service_row(machine.llmd)["status"] == f"serving {MODEL}", "the status is old")
    row = service_row(machine.llmd)
    assert (row["state"], row["restarts"]) == ("active (running)", 2)

    # Requests that arrive while the daemon is restarted wait for the next one.
    with subprocess.Popen(machine.command("systemctl", "restart", "llmd.service")) as restart:
        while restart.poll() is None:
            assert ask(machine) == answer

    machine.llmd("service", "uninstall", "--system")
    machine.run("rm", "-r", "/etc/systemd/system/llmd.service.d")
    machine.run("systemctl", "daemon-reload")
    assert machine.run("systemctl", "list-unit-files", "llmd*", "--no-legend", check=False) == ""
    assert machine.run("systemctl", "list-units", "--all", "llmd*", "--no-legend") == ""
    left = machine.run(
        "sh", "-c", "ls -d /etc/systemd/system/llmd* /etc/systemd/system/*.wants/llmd* /run/llmd /var/cache/llmd "
        "/etc/sysusers.d/llmd.conf 2> /dev/null; grep -lx llmd /proc/[0-9]*/comm; getent passwd llmd; getent group llmd",
        check=False,
    )  # fmt: skip
    assert left == ""
    assert machine.run("ls", MODELS).split() == [MODEL]


@OF_SYSTEM
def test_an_installation_whose_daemon_does_not_start_says_why(machine: Machine) -> None:
    quick = QUICK.format(path=os.environ.get("PYTHONPATH", ""))
    machine.write("/etc/systemd/system/llmd.service.d/test.conf", quick)
    machine.write("/etc/llmd/config.toml", '[engine]\ndevice = "nothing"\n')
    install = (sys.executable, "-m", "llmd.cli.main", "service", "install", "--system", "--model")

    def refused(model: str) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(machine.command(*install, model), capture_output=True, text=True, check=False)
        assert done.returncode != 0, done.stdout
        assert machine.run("systemctl", "list-unit-files", "llmd*", "--no-legend", check=False) == ""
        return done

    missing = refused("nobody")
    assert "there is no model 'nobody'" in missing.stderr
    assert f"this service has its own models, in {MODELS}" in missing.stderr
    broken = refused("guide")
    assert broken.stderr.startswith("llmd: the daemon did not start: there is no device 'nothing'\n")


def test_a_service_of_a_user(machine: Machine, model: Path) -> None:
    machine.run("useradd", "--create-home", USER)
    uid = machine.run("id", "-u", USER).strip()
    runtime = f"/run/user/{uid}"
    machine.run("install", "-d", "-o", USER, "-m", "700", "/run/user", runtime)
    variables = [f"XDG_RUNTIME_DIR={runtime}", f"HOME=/home/{USER}"]
    # What a login manager does when the user logs in.
    manager = [f"--uid={USER}", "--property=Delegate=yes", *(f"--setenv={one}" for one in variables)]
    machine.run("systemd-run", "--unit=manager-of-user", *manager, str(SYSTEMD), "--user")
    machine.copy(model, f"/home/{USER}/.local/share/llmd/models")
    machine.write(f"/home/{USER}/.config/llmd/config.toml", CONFIG.format(keep_alive="1h"))
    units = f"/home/{USER}/.config/systemd/user"
    machine.write(f"{units}/llmd.service.d/test.conf", QUICK.format(path=os.environ.get("PYTHONPATH", "")))
    machine.run("chown", "-R", f"{USER}:", f"/home/{USER}")

    def as_user(*command: str) -> str:
        path = f"PYTHONPATH={os.environ.get('PYTHONPATH', '')}"
        return machine.run(
            "setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups", "env", path, *variables, *command
        )

    def llmd(*arguments: str) -> str:
        return as_user(sys.executable, "-m", "llmd.cli.main", *arguments)

    wait_until(lambda: bool(machine.run("ls", f"{runtime}/systemd/private", check=False)), "no user manager")
    llmd("service", "install", "--model", MODEL)
    row = service_row(llmd)
    assert (row["state"], row["enabled"]) == ("active (running)", "enabled")
    assert row["status"] == f"serving {MODEL}"
    assert llmd("run", MODEL, "Hello", "-n", "3", "--no-start")
    assert machine.run("stat", "-c", "%a %U", f"{runtime}/llmd/llmd.sock").strip() == f"600 {USER}"
    llmd("service", "uninstall")
    left = machine.run("find", units, runtime, "-name", "llmd*", "-not", "-name", "llmd.service.d")
    assert left in {"", f"{runtime}/llmd\n"}
    assert machine.run("sh", "-c", "grep -lx llmd /proc/[0-9]*/comm", check=False) == ""
