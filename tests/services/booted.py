"""Boots a real systemd in namespaces of its own, over a copy-on-write view of this machine.

Nothing that happens there reaches this machine: files are in memory; processes, network and control groups
are separate. Needs root.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from msgspec import Struct

from llmd.cli.service.launcher import TEMPORARY

SYSTEMD = Path("/lib/systemd/systemd")
POLL_S = 0.1
BOOT_LIMIT_S = 120

# The users of services must reach the interpreter, which may be below the home of root. At a boot,
# systemd would remove each file in /tmp, minutes if earlier tests left many: tmp.conf is masked.
BOOT = """
set -e
mount --make-rprivate /
mount -t tmpfs none {folder}
mkdir -p {folder}/upper {folder}/work {folder}/root
mount -t overlay overlay -o lowerdir=/,upperdir={folder}/upper,workdir={folder}/work {folder}/root
cd {folder}/root
mount -t proc proc proc
mount -t sysfs sysfs sys
mount -t tmpfs tmpfs sys/fs/cgroup
mount -t cgroup2 cgroup2 sys/fs/cgroup
mount -t tmpfs tmpfs dev
for name in null zero full random urandom tty; do touch dev/$name; mount --bind /dev/$name dev/$name; done
mkdir dev/shm dev/pts
mount -t tmpfs tmpfs dev/shm
ln -s /proc/self/fd dev/fd
mount -t tmpfs tmpfs run
mkdir -p etc/tmpfiles.d
ln -sf /dev/null etc/tmpfiles.d/tmp.conf
chmod o+x root
pivot_root . mnt
umount -l /mnt
export container=llmd-test
exec {systemd} --unit=basic.target --show-status=0 --log-target=null
"""


class Machine(Struct, frozen=True):
    """A machine that has booted."""

    init: int
    """The process id of its systemd, as this machine sees it."""

    def run(self, *command: str, check: bool = True) -> str:
        """Run a command there; returns what it prints."""
        done = subprocess.run(self.command(*command), capture_output=True, text=True, check=False)
        assert not check or done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def command(self, *command: str) -> list[str]:
        """Return the command that runs another one there."""
        enter = ["nsenter", "-t", str(self.init), "-m", "-p", "-n", "-C", "-i", "-u", "-r", "-w"]
        return [*enter, "--", *command]

    def llmd(self, *arguments: str) -> str:
        """Run ``llmd`` of this environment there, as root."""
        return self.run(sys.executable, "-m", "llmd.cli.main", *arguments)

    def write(self, path: str, text: str) -> None:
        """Write a file there."""
        command = self.command("sh", "-c", f'mkdir -p "$(dirname {path})" && cat > {path}')
        subprocess.run(command, input=text, text=True, check=True)

    def shown(self, unit: str, name: str) -> str:
        """Return a property of a unit."""
        return self.run("systemctl", "show", unit, f"--property={name}", "--value").strip()

    def copy(self, folder: Path, target: str) -> None:
        """Copy a folder of this machine into a folder there."""
        with subprocess.Popen(
            ["tar", "-C", str(folder.parent), "-c", folder.name], stdout=subprocess.PIPE
        ) as tar:
            extract = f"mkdir -p {target} && tar -C {target} --no-same-owner -x && chmod -R a+rX {target}"
            subprocess.run(self.command("sh", "-c", extract), stdin=tar.stdout, check=True)


def missing() -> str:
    """Return what this machine lacks to boot another one; empty if it lacks nothing."""
    if os.geteuid() != 0:
        return "only root can boot a systemd in namespaces"
    programs = [
        name for name in ("unshare", "nsenter", "setpriv", "journalctl") if shutil.which(name) is None
    ]
    if programs or not SYSTEMD.exists():
        return f"not installed: {', '.join(programs) or 'systemd'}"
    return "" if _cgroups() else "this machine has no unified control groups"


def hidden() -> str:
    """Return why no service of the system can run this checkout; empty if one can."""
    found = [folder for folder in TEMPORARY if folder in Path(sys.executable).parents]
    return f"a service of the system has a {found[0]} of its own, without this checkout" if found else ""


@contextmanager
def booted(folder: Path) -> Iterator[Machine]:
    """Boot a machine; end all of its processes afterwards."""
    group = _cgroups() / f"llmd-test-{os.getpid()}"  # type: ignore[operator]  # `missing` has been asked
    group.mkdir()
    script = BOOT.format(folder=folder, systemd=SYSTEMD)
    namespaces = ["--mount", "--pid", "--fork", "--cgroup", "--net", "--ipc", "--uts", "--kill-child"]
    enter = f"echo $$ > {group}/cgroup.procs && exec unshare {' '.join(namespaces)} sh -c '{script}'"
    with subprocess.Popen(["sh", "-c", enter]) as process:
        try:
            machine = Machine(_first_child(process))
            _wait_until_running(machine)
            yield machine
        finally:
            process.kill()
            process.wait()
            _remove(group)


def _first_child(process: subprocess.Popen[bytes]) -> int:
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    while not (found := children.read_text().split()):
        assert process.poll() is None, "the namespaces cannot be made"
        time.sleep(POLL_S)
    return int(found[0])


def _wait_until_running(machine: Machine) -> None:
    end = time.monotonic() + BOOT_LIMIT_S
    while machine.run("systemctl", "is-system-running", check=False).strip() not in {"running", "degraded"}:
        assert time.monotonic() < end, "systemd has not booted"
        time.sleep(POLL_S)


def _cgroups() -> Path | None:
    """Return where the unified hierarchy is mounted."""
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        before, _, after = line.partition(" - ")
        if after.startswith("cgroup2 "):
            return Path(before.split()[4])
    return None


def _remove(group: Path) -> None:
    """Remove a control group with those below it, once their processes have ended."""
    groups = [*sorted((path for path in group.rglob("*") if path.is_dir()), reverse=True), group]
    for path in groups:
        for _ in range(100):
            with suppress(OSError):
                path.rmdir()
                break
            time.sleep(POLL_S)
