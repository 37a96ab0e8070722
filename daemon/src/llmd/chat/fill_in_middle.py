"""Fill-in-the-middle: prompts that ask for the text between a prefix and a suffix.

Source: Bavarian et al. 2022, "Efficient Training of Language Models to Fill in the Middle". Each model family
has its own markers; Codestral's prompts begin with the suffix.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from llmd.api.errors import RequestError
from llmd.chat.tokenizers.tokenizer import Tokenizer

PREFIX, SUFFIX = "prefix", "suffix"


class Form(Struct, frozen=True):
    """The fill-in-the-middle prompt format of a model family."""

    pieces: tuple[str, ...]
    """Markers and the placeholders `PREFIX` and `SUFFIX`, in the order of the prompt."""

    @property
    def markers(self) -> tuple[str, ...]:
        return tuple(piece for piece in self.pieces if piece not in {PREFIX, SUFFIX})


FORMS = (
    Form(("<|fim_prefix|>", PREFIX, "<|fim_suffix|>", SUFFIX, "<|fim_middle|>")),  # Qwen, CodeGemma
    Form(("<fim_prefix>", PREFIX, "<fim_suffix>", SUFFIX, "<fim_middle>")),  # StarCoder, Granite
    Form(("<fim-prefix>", PREFIX, "<fim-suffix>", SUFFIX, "<fim-middle>")),  # SantaCoder
    Form(("<｜fim▁begin｜>", PREFIX, "<｜fim▁hole｜>", SUFFIX, "<｜fim▁end｜>")),
    Form(("▁<PRE>", PREFIX, "▁<SUF>", SUFFIX, "▁<MID>")),  # CodeLlama
    Form(("<|code_prefix|>", PREFIX, "<|code_suffix|>", SUFFIX, "<|code_middle|>")),  # GLM
    Form(("[SUFFIX]", SUFFIX, "[PREFIX]", PREFIX)),  # Codestral
)

# Tokens that also end the middle: models may continue with the next file of their training data.
ENDS = ("<|fim_pad|>", "<|file_sep|>", "<|repo_name|>", "<fim_pad>", "<file_sep>", "▁<EOT>", "<|endoftext|>")


def form_of(known: Callable[[str], bool]) -> Form | None:
    """Return the prompt format of a model; ``known`` says whether its vocabulary has a token."""
    return next((form for form in FORMS if all(map(known, form.markers))), None)


class FillInMiddle(Struct, frozen=True):
    """Encodes the fill-in-the-middle prompts of one model."""

    tokenizer: Tokenizer
    form: Form
    stop_ids: tuple[int, ...]
    """Tokens that end the middle, in addition to the model's stop tokens."""

    @classmethod
    def of(cls, tokenizer: Tokenizer) -> FillInMiddle:
        """Raise `RequestError` if the vocabulary has no fill-in-the-middle markers."""
        form = form_of(lambda text: tokenizer.token_id(text) is not None)
        if form is None:
            raise RequestError(
                "this model cannot fill in text before a suffix: its vocabulary has no fill-in-the-middle tokens",
                param="suffix",
                hint="omit the suffix, or use a code model such as Qwen2.5-Coder",
            )
        ends = (tokenizer.token_id(text) for text in (*form.markers, *ENDS))
        return cls(tokenizer, form, tuple(sorted({token for token in ends if token is not None})))

    def encode(self, prefix: str, suffix: str) -> tuple[int, ...]:
        """Return the prompt, with BOS if the tokenizer adds it. Special tokens in both texts stay text."""
        texts = {PREFIX: prefix, SUFFIX: suffix}
        ids: list[int] = []
        for piece in self.form.pieces:
            if piece in texts:
                ids += self.tokenizer.encode_part(texts[piece], parse_special=False, at_start=False)
            elif (marker := self.tokenizer.token_id(piece)) is not None:
                ids.append(marker)
        return tuple(self.tokenizer.with_prefix(ids))
