"""Fill-in-the-middle: prompts that ask for the text between a prefix and a suffix.

Source: Bavarian et al. 2022, "Efficient Training of Language Models to Fill in the Middle". Each family of models has
its own markers; Codestral's stand before a suffix that comes first.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from llmd.api.errors import RequestError
from llmd.chat.tokenizers.tokenizer import Tokenizer

PREFIX, SUFFIX = "prefix", "suffix"


class Form(Struct, frozen=True):
    """Markers, and the two texts, in the order of the prompt."""

    pieces: tuple[str, ...]

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

# What such models write behind the middle, beside their end of text: the next file of the training data.
ENDS = ("<|fim_pad|>", "<|file_sep|>", "<|repo_name|>", "<fim_pad>", "<file_sep>", "▁<EOT>", "<|endoftext|>")


def form_of(known: Callable[[str], bool]) -> Form | None:
    """The form of a model whose vocabulary has the tokens for which ``known`` is true."""
    return next((form for form in FORMS if all(map(known, form.markers))), None)


class FillInMiddle(Struct, frozen=True):
    """How one model is asked. ``stop_ids`` end the middle, beside the model's own."""

    tokenizer: Tokenizer
    form: Form
    stop_ids: tuple[int, ...]

    @classmethod
    def of(cls, tokenizer: Tokenizer) -> FillInMiddle:
        """Raises `RequestError` where the model has no markers."""
        form = form_of(lambda text: tokenizer.token_id(text) is not None)
        if form is None:
            raise RequestError(
                "this model cannot fill in text before a suffix: its vocabulary has no tokens for it",
                param="suffix",
                hint="leave the suffix out, or take a model for code such as Qwen2.5-Coder",
            )
        ends = (tokenizer.token_id(text) for text in (*form.markers, *ENDS))
        return cls(tokenizer, form, tuple(sorted({token for token in ends if token is not None})))

    def encode(self, prefix: str, suffix: str) -> tuple[int, ...]:
        """The prompt, with BOS where the tokenizer has it; special tokens in both texts stay text."""
        texts = {PREFIX: prefix, SUFFIX: suffix}
        ids: list[int] = []
        for piece in self.form.pieces:
            if piece in texts:
                ids += self.tokenizer.encode_part(texts[piece], parse_special=False, at_start=False)
            elif (marker := self.tokenizer.token_id(piece)) is not None:
                ids.append(marker)
        return tuple(self.tokenizer.with_prefix(ids))
