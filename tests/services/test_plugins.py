"""Plugins of the service of the system: root installs them, a reload uses them, and others may not."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.packaging.made_wheels import make_plugin
from tests.services.booted import Machine, booted, hidden, missing

pytestmark = [
    pytest.mark.exhaustive,
    pytest.mark.timeout(600),
    pytest.mark.skipif(missing() != "", reason=missing()),
    pytest.mark.skipif(hidden() != "", reason=hidden()),
]

DIALECT = """
from llmd.api import Dialect, Route, hookimpl

LLMD_API = 2

async def hello(request, service):
    from aiohttp import web
    return web.json_response({"hello": "there"})

@hookimpl
def llmd_dialects():
    return [Dialect("made", lambda: [Route("GET", "/made", hello, right="none")])]
"""
STATUS = """
import http.client, socket
connection = http.client.HTTPConnection("localhost")
connection.sock = socket.socket(socket.AF_UNIX)
connection.sock.connect("/run/llmd/llmd.sock")
connection.request("GET", "/made")
print(connection.getresponse().status)
"""
SOURCES = "[Service]\nEnvironment=PYTHONPATH={path}\n"
"""The daemon runs from the sources of this checkout, as the commands do."""
LLMD = (sys.executable, "-m", "llmd.cli.main")
NOBODY = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")


@pytest.fixture
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    """A machine with the service of the system, and the wheel of a plugin below /srv/wheels."""
    folder = tmp_path_factory.mktemp("machine")
    (folder / "wheels").mkdir()
    make_plugin(folder / "wheels", "llmd-dialect-made", name="made", source=DIALECT)
    with booted(folder) as machine:
        machine.copy(folder / "wheels", "/srv")
        sources = SOURCES.format(path=os.environ.get("PYTHONPATH", ""))
        machine.write("/etc/systemd/system/llmd.service.d/test.conf", sources)
        machine.llmd("service", "install", "--system")
        yield machine


def run(machine: Machine, *command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(machine.command(*command), capture_output=True, text=True, check=False)


def status(machine: Machine) -> int:
    """Return what the daemon answers on the route of the plugin."""
    return int(machine.run(sys.executable, "-c", STATUS))


def test_a_plugin_is_installed_used_disabled_and_uninstalled(machine: Machine) -> None:
    (wheel,) = machine.run("sh", "-c", "ls /srv/wheels/*.whl").split()
    assert status(machine) == 404

    refused = run(machine, *NOBODY, *LLMD, "plugins", "install", wheel)
    assert refused.returncode == 4
    command = f"{sys.prefix}/bin/llmd plugins install {wheel}"
    assert f"run `sudo -u root {command}`" in refused.stderr

    # A mask that keeps new files from others does not keep them from the user of the service.
    installed = run(machine, "sh", "-c", f"umask 077; {shlex.join(LLMD)} plugins install {wheel}")
    assert installed.returncode == 0, installed.stderr
    assert "✓ made (llmd-dialect-made 1.0): dialect made" in installed.stdout
    assert "`llmd reload` makes it use the change" in installed.stderr
    assert status(machine) == 404
    assert "plugin added: made (llmd-dialect-made 1.0)" in machine.llmd("reload")
    assert status(machine) == 200

    # The choice of root is not that of the service: the note has the command that changes the latter.
    disabled = run(machine, *LLMD, "plugins", "disable", "made")
    assert "the service of the system has choices of its own" in disabled.stderr
    (command,) = re.findall(r"`sudo -u llmd (.*?)`", disabled.stderr)
    as_service = ("setpriv", "--reuid=llmd", "--regid=llmd", "--init-groups", "env")
    program = f"{sys.prefix}/bin/llmd"
    words = [word for part in shlex.split(command) for word in (LLMD if part == program else [part])]
    machine.run(*as_service, *words)
    assert "plugin removed: made (llmd-dialect-made 1.0)" in machine.llmd("reload")
    assert status(machine) == 404

    assert run(machine, *LLMD, "plugins", "uninstall", "made").returncode == 0
    assert "made" not in machine.llmd("plugins", "list", "--plain")
