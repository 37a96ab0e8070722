"""What the tokens of a GGUF vocabulary are for: those around a text, those that end an answer, those that are no text."""

from __future__ import annotations

from llmd.chat.tokenizers.gguf.vocabulary import GgufVocabulary, TokenKind
from llmd.chat.tokenizers.special_tokens import SpecialToken
from llmd.chat.tokenizers.tokenizer import Vocabulary

_ENDS = ("eos", "eot", "eom")
# Files do not say which tokens swallow the whitespace after them. In the models that are in use, those of Phi-3 do, but for
# these; its architecture is that of Phi-4 too, whose vocabulary is of another kind.
_PHI3 = ("phi3", "llama")
_PHI3_KEEPS = frozenset({"<unk>", "<s>", "<|endoftext|>"})


def vocabulary_of(
    stated: GgufVocabulary, *, adds_bos: bool, adds_eos: bool = False, strips_leading_space: bool = False
) -> Vocabulary:
    """The vocabulary as other tokenizers have it; ``adds_bos`` and ``adds_eos`` hold where the file says nothing of it.

    Control tokens are special, and those with a role, whatever kind the file gives them.
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
    """Whether a token that is matched as a whole takes the whitespace after it along."""
    return (stated.architecture, stated.model) == _PHI3 and text not in _PHI3_KEEPS
