"""A small vocabulary in the form of RWKV's: all bytes, and longer tokens."""

from __future__ import annotations

from pathlib import Path

LONGER: tuple[str | bytes, ...] = (
    *("th", "the", "there", " the", "\n\n", "User", ":", "é", "\u2028", " is", "'s", "\\"),
    b"\xe4\xbd",
)


def tokens() -> list[bytes]:
    """The tokens from id 1 on."""
    singles = [bytes([byte]) for byte in range(256)]
    longer = [token.encode() if isinstance(token, str) else token for token in LONGER]
    return [*singles, *(token for token in longer if len(token) > 1)]


def literal(token: bytes) -> str:
    """A token as the file writes it: as text, if it is UTF-8."""
    try:
        return repr(token.decode())
    except UnicodeDecodeError:
        return repr(token)


def lines() -> list[str]:
    """The lines of the file."""
    return [f"{place} {literal(token)} {len(token)}" for place, token in enumerate(tokens(), start=1)]


def write_vocabulary(directory: Path) -> Path:
    """Write the file, and return the directory."""
    (directory / "rwkv_vocab_v20230424.txt").write_text("\n".join(lines()) + "\n", encoding="utf-8")
    return directory
