"""Measures what the terminal interface costs: ``python -m bench.tui_redraw``.

A daemon on a null device answers 16 streams, 100 tokens per second each. ``llmd tui`` runs on a
pseudo-terminal and shows one screen after another. Printed is its CPU time per second for each screen, as a
share of one core, and the bytes that it writes to the terminal.
"""

from __future__ import annotations

import fcntl
import json
import os
import pty
import select
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import time
from pathlib import Path

from bench.loop_cost import http_request
from bench.null_daemon import null_daemon
from llmd.process.limits import processor_seconds

STREAMS, STEP_MS = 16, 10.0
SCREENS = ("monitor", "kv", "logs", "devices", "models", "plugins", "chat")
SETTLE_S, ROUND_S, ROUNDS = 4.0, 5.0, 3
ROWS, COLUMNS = 40, 120


def main() -> None:
    """Print one JSON object."""
    with null_daemon("guide", slots=STREAMS, step_ms=STEP_MS) as daemon:
        ended = threading.Event()
        loads = [threading.Thread(target=keep_busy, args=(daemon.socket, ended)) for _ in range(STREAMS)]
        for load in loads:
            load.start()
        try:
            rows = [{"screen": name, **measure(name, daemon.socket)} for name in SCREENS]
        finally:
            ended.set()
            for load in loads:
                load.join()
    json.dump({"streams": STREAMS, "size": f"{COLUMNS}x{ROWS}", "screens": rows}, sys.stdout, indent=2)


def keep_busy(path: Path, ended: threading.Event) -> None:
    """Stream one answer after another until told to end."""
    request = http_request(0.8, 0.9)
    while not ended.is_set():
        with socket.socket(socket.AF_UNIX) as one:
            one.connect(str(path))
            one.sendall(request)
            while (read := one.recv(1 << 16)) and b"[DONE]" not in read:
                if ended.is_set():
                    break


def measure(screen: str, path: Path) -> dict[str, object]:
    """Show a screen and measure it over several rounds."""
    with tempfile.TemporaryDirectory(prefix="llmd-tui-") as folder:
        environment = os.environ | {"TERM": "xterm-256color", "COLORTERM": "truecolor"}
        environment |= {f"XDG_{kind}_HOME": folder for kind in ("CONFIG", "DATA", "STATE")}
        master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
        command = (sys.executable, "-m", "llmd.cli.main", "tui", screen, "--host", f"unix:{path}")
        with subprocess.Popen(command, stdin=slave, stdout=slave, stderr=slave, env=environment) as process:
            os.close(slave)
            read_for(master, SETTLE_S)
            shares, written = [], 0
            for _ in range(ROUNDS):
                before = processor_seconds(process.pid) or 0.0
                written += read_for(master, ROUND_S)
                shares.append(((processor_seconds(process.pid) or 0.0) - before) / ROUND_S)
            process.terminate()
            read_for(master, 0.5)
        os.close(master)
    return {
        "core": round(statistics.median(shares), 4),
        "most": round(max(shares), 4),
        "bytes_per_s": round(written / ROUNDS / ROUND_S),
    }


def read_for(master: int, seconds: float) -> int:
    """Read what the program writes, as a terminal does; return the number of bytes."""
    count, end = 0, time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        if select.select([master], [], [], left)[0]:
            try:
                count += len(os.read(master, 1 << 16))
            except OSError:  # the program has ended
                break
    return count


if __name__ == "__main__":
    main()
