"""Roles of tokens in a GGUF vocabulary: BOS and EOS around a text, ends of answers, special tokens."""

from __future__ import annotations

from llmd.chat.tokenizers.gguf.vocabulary import GgufVocabulary, TokenKind
from llmd.chat.tokenizers.special_tokens import SpecialToken
from llmd.chat.tokenizers.tokenizer import Vocabulary

_ENDS = ("eos", "eot", "eom")
# Files do not say which tokens strip the whitespace after them. Of the models in use, only Phi-3's do, except
# these. Phi-4 has the same architecture but another kind of vocabulary.
_PHI3 = ("phi3", "llama")
_PHI3_KEEPS = frozenset({"<unk>", "<s>", "<|endoftext|>"})


def vocabulary_of(
    stated: GgufVocabulary, *, adds_bos: bool, adds_eos: bool = False, strips_leading_space: bool = False
) -> Vocabulary:
    """Return the vocabulary in the common form; ``adds_bos`` and ``adds_eos`` apply if the file does not say.

    Control and unknown tokens are special, and so is every token with a role, whatever its kind.
    """
    ids, switches = stated.ids, stated.switches
    bos_id, eos_id = ids.get("bos"), ids.get("eos")
    special = stated.of_kind(TokenKind.CONTROL, TokenKind.UNKNOWN)
    special |= {place: stated.tokens[place] for place in ids.values() if stated.tokens[place]}
    return Vocabulary(
        size=len(stated.tokens),
        bos_id=bos_id,
        eos_ids=tuple(dict.fromkeys(ids[role] for role in _ENDS if role in ids)),
        prefix_ids=(bos_id,) if bos_id is not None and switches.get("add_bos_token", adds_bos) else (),
        suffix_ids=(eos_id,) if eos_id is not None and switches.get("add_eos_token", adds_eos) else (),
        specials=tuple(
            SpecialToken(text, place, rstrip=swallows_space(stated, text))
            for place, text in sorted(special.items())
        ),
        strips_leading_space=strips_leading_space,
    )


def swallows_space(stated: GgufVocabulary, text: str) -> bool:
    """Return whether a token that is matched as a whole strips the whitespace after it."""
    return (stated.architecture, stated.model) == _PHI3 and text not in _PHI3_KEEPS
