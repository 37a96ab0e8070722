"""Checks that files and functions stay small enough to be read in one go."""

from __future__ import annotations

import ast
import statistics
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

AIMED_LINES = 200
MOST_LINES = 400
SHARE_WITHIN_AIM = 0.85
MEDIAN_FUNCTION_LINES = 10
LONG_FUNCTION_LINES = 30
SHARE_OF_SHORT_FUNCTIONS = 0.9
SOURCES = ("*.py", "*.c", "*.h", "*.cpp", "*.hpp", "*.cu", "*.cuh", "*.comp", "*.glsl")


def main() -> None:
    """Print the violated limits and exit with 1; exit with 0 if there are none."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", *SOURCES],
        check=True, capture_output=True, text=True,
    ).stdout  # fmt: skip
    files = {Path(name): Path(name).read_text() for name in listed.splitlines() if Path(name).exists()}
    functions = [
        length
        for path, text in files.items()
        if path.suffix == ".py" and path.parts[0] != "tests"
        for length in function_lengths(text)
    ]
    faults = [
        *file_faults({path: text.count("\n") for path, text in files.items()}),
        *function_faults(functions),
    ]
    sys.exit("\n".join(faults) or 0)


def file_faults(lengths: dict[Path, int]) -> list[str]:
    """Return the violations for files with these numbers of lines."""
    faults = [
        f"{path}: {lines} lines, but at most {MOST_LINES} are allowed; split it by concept"
        for path, lines in sorted(lengths.items())
        if lines > MOST_LINES
    ]
    within = sum(lines <= AIMED_LINES for lines in lengths.values())
    if within < SHARE_WITHIN_AIM * len(lengths):
        longest = ", ".join(str(path) for path, lines in sorted(lengths.items()) if lines > AIMED_LINES)
        faults.append(
            f"only {within} of {len(lengths)} files have at most {AIMED_LINES} lines; longer: {longest}"
        )
    return faults


def function_faults(lengths: list[int]) -> list[str]:
    """Return the violations for functions with these numbers of lines."""
    if not lengths:
        return []
    faults = []
    median = statistics.median(lengths)
    if median >= MEDIAN_FUNCTION_LINES:
        faults.append(
            f"the median function has {median} lines; it must have fewer than {MEDIAN_FUNCTION_LINES}"
        )
    short = sum(length < LONG_FUNCTION_LINES for length in lengths)
    if short < SHARE_OF_SHORT_FUNCTIONS * len(lengths):
        faults.append(f"only {short} of {len(lengths)} functions have under {LONG_FUNCTION_LINES} lines")
    return faults


def function_lengths(source: str) -> Iterator[int]:
    """Yield the number of lines of each function from ``def`` to its end, without the docstring."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.end_lineno is not None:
            yield node.end_lineno - node.lineno + 1 - docstring_lines(node)


def docstring_lines(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Return the number of lines of a function's docstring."""
    first = node.body[0]
    if ast.get_docstring(node) is None or first.end_lineno is None:
        return 0
    return first.end_lineno - first.lineno + 1


if __name__ == "__main__":
    main()
