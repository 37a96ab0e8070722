"""Find GGUF's name for the pre-tokenizer of a ``tokenizer.json``.

This is the inverse of `llmd.chat.tokenizers.gguf.byte_pairs`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec import structs

from llmd.chat.tokenizers.gguf.pre_tokenizers import CUTS, PreTokenizer
from llmd.chat.tokenizers.word_patterns import DIGIT, GPT2, NUMBER

Step = dict[str, Any]


def pre_tokenizer_name(form: dict[str, Any]) -> str | None:
    """Return the ``tokenizer.ggml.pre`` of a byte-level BPE; None if its pre-tokenizer has no name."""
    patterns = _patterns(form.get("pre_tokenizer"))
    composes = _composes(form.get("normalizer"))
    if patterns is None or composes is None:
        return None
    return name_of(
        PreTokenizer(patterns, whole_words=bool(form["model"].get("ignore_merges")), composes=composes)
    )


def name_of(wanted: PreTokenizer) -> str | None:
    """Return the first name of a pre-tokenizer; ignore ``adds_bos``, which the file states itself."""
    alike = (name for name, cut in CUTS.items() if name and structs.replace(cut, adds_bos=False) == wanted)
    return next(alike, None)


def steps_of(step: Step | None, parts: str) -> Iterator[Step]:
    """Yield the steps of a normalizer, pre-tokenizer or decoder; a sequence has them in the key ``parts``."""
    if step is not None and step["type"] == "Sequence":
        for part in step[parts]:
            yield from steps_of(part, parts)
    elif step is not None:
        yield step


def _composes(normalizer: Step | None) -> bool | None:
    """Return whether text is normalized to NFC; None if it is normalized differently."""
    kinds = [step["type"] for step in steps_of(normalizer, "normalizers")]
    return None if set(kinds) - {"NFC"} else bool(kinds)


def _patterns(pre_tokenizer: Step | None) -> tuple[str, ...] | None:
    """Return the patterns, which are applied in order; None if a step is not a pattern."""
    steps = list(steps_of(pre_tokenizer, "pretokenizers"))
    if not steps or steps[-1]["type"] != "ByteLevel" or steps[-1].get("add_prefix_space"):
        return None
    patterns = [_pattern(step) for step in steps[:-1]]
    if steps[-1].get("use_regex", True):
        patterns.append(GPT2)
    known = tuple(pattern for pattern in patterns if pattern is not None)
    return known if len(known) == len(patterns) else None


def _pattern(step: Step) -> str | None:
    match step:
        case {"type": "Digits", "individual_digits": individual}:
            return DIGIT if individual else NUMBER
        case {"type": "Split", "behavior": "Isolated", "invert": False, "pattern": {"Regex": str(pattern)}}:
            return pattern
        case _:
            return None
