"""Find the source line of an instruction that an error of the engine names."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

_INSTRUCTION = re.compile(r"at instruction 0x([0-9a-f]+)$")


def source_line(library: Path, error: str) -> str:
    """Return where the instruction of an error is, such as `` (norm.cu:12)``; empty if it is not known."""
    match = _INSTRUCTION.search(error)
    base = None if match is None else _base(library)
    program = shutil.which("addr2line")
    if match is None or base is None or program is None:
        return ""
    offset = hex(int(match[1], 16) - base)
    command = [program, "--exe", str(library), "--inlines", "--basenames", offset]
    lines = subprocess.run(command, capture_output=True, text=True, check=False).stdout.split("\n")
    places = [line.split(" ")[0] for line in lines if line and "?" not in line]
    return f" ({', in '.join(places)})" if places else ""


def _base(library: Path) -> int | None:
    """Return the address at which this process has a library; None if it has not."""
    for line in Path("/proc/self/maps").read_text(encoding="utf-8").splitlines():
        if line.endswith(str(library)):
            return int(line.split("-")[0], 16)
    return None
