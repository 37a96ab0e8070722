"""Searches with the beams of transformers; compares what it finds with the committed answers, or writes them.

    python -m tests.golden.oracle.make_beams [--write]

Exit status 1 where they differ, or where double precision would find others: then a case is too close to
call.
"""

from __future__ import annotations

import argparse
import sys

import torch
import transformers
from transformers import PreTrainedModel

from tests.golden.beams import CASES, BeamCase, Found, read_found, write_found
from tests.golden.models.catalog import tiny_model
from tests.golden.models.tiny import PROMPT_LEN
from tests.golden.oracle.transformers_model import build

PAD = -1
SAME_SCORE = 1e-5


@torch.no_grad()
def search(model: PreTrainedModel, case: BeamCase) -> Found:
    """Biases are part of the distribution, which is normalised after them."""
    prompt = torch.tensor([tiny_model(case.model).prompt])
    output = model.generate(
        prompt,
        attention_mask=torch.ones_like(prompt),
        do_sample=False,
        num_beams=case.width,
        num_return_sequences=case.best,
        max_new_tokens=case.max_tokens,
        length_penalty=case.length_penalty,
        early_stopping=case.early_stopping,
        eos_token_id=list(case.stop_ids) or None,
        pad_token_id=0,
        sequence_bias={(token,): bias for token, bias in case.biases} or None,
        renormalize_logits=True,
        return_dict_in_generate=True,
        output_scores=True,
    )
    answers = [row[PROMPT_LEN:].tolist() for row in output.sequences]
    return Found([_cut(answer, case.stop_ids) for answer in answers], output.sequences_scores.tolist())


def _cut(answer: list[int], stop_ids: tuple[int, ...]) -> list[int]:
    """An answer without what fills it up behind its stop id."""
    ends = [place for place, token in enumerate(answer) if token in stop_ids]
    return answer[: ends[0] + 1] if ends else answer


def compute(case: BeamCase) -> tuple[Found, bool]:
    """The answers of a case, and whether double precision finds the same."""
    model = build(tiny_model(case.model))
    found = search(model, case)
    return found, search(model.double(), case).tokens == found.tokens


def same(found: Found, committed: Found) -> bool:
    near = all(abs(a - b) <= SAME_SCORE for a, b in zip(found.scores, committed.scores, strict=True))
    return found.tokens == committed.tokens and near


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="write the file instead of comparing")
    write = parser.parse_args().write
    torch.set_num_threads(1)
    committed = [None] * len(CASES) if write else read_found()[0]
    answers, good = [], True
    for case, known in zip(CASES, committed, strict=True):
        found, clear = compute(case)
        answers.append(found)
        right = clear and (known is None or same(found, known))
        good &= right
        lengths = [len(tokens) for tokens in found.tokens]
        print(f"{case}\n    {'ok' if right else 'DIFFERS'}: {lengths} tokens, scores {found.scores}")
    if write and good:
        write_found(answers, {"torch": torch.__version__, "transformers": transformers.__version__})
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
