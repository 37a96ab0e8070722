"""Train the guide: ``python -m guide.train [--continue] [--device NAME] [--minutes N]``.

Without ``--continue`` it trains new weights; with it, the weights that llmd ships are trained further. The
tokenizer that llmd ships stays, unless ``--new-tokenizer`` asks for one. Trains on a GPU where torch finds
one. Resumes from build/guide when a run was cut short. Ends by writing the model directory that llmd ships.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from itertools import islice
from pathlib import Path

import torch
from tokenizers import Tokenizer

from guide import tokens
from guide.batches import Batch
from guide.corpus import Corpus
from guide.decontamination import Heldout, wordings
from guide.development import development_score, development_temperature, refused_share
from guide.drawing import drawn
from guide.export import DIRECTORY, write_model
from guide.model import Shape
from guide.plan import plan_for
from guide.topics import Book, load
from guide.trainer import Trainer

WORK = Path(__file__).parent.parent / "build" / "guide"
TOKENIZER_CONVERSATIONS = 40_000
TOKENIZER_SEED = 1_000_000_007  # far from the block numbers, which are the seeds of the training text
SAVE_SECONDS = 60


def main() -> None:
    arguments = _arguments()
    torch.set_num_threads(arguments.threads)
    torch.set_flush_denormal(True)
    plan = replace(plan_for(arguments.device.type, continued=arguments.continued), minutes=arguments.minutes)
    shape = Shape()
    WORK.mkdir(parents=True, exist_ok=True)
    path = _new_tokenizer(shape.vocab) if arguments.new_tokenizer else DIRECTORY / "tokenizer.json"
    tokenizer, checkpoint = Tokenizer.from_file(str(path)), WORK / plan.checkpoint
    encoder, book = tokens.Encoder(tokenizer), load()
    trainer = Trainer(plan, shape, arguments.device)
    if arguments.continued:
        trainer.start_from(DIRECTORY)
    trainer.resume(checkpoint)
    blocks = drawn(path, plan, trainer.progress.block, arguments.processes)
    with closing(blocks):
        _train(trainer, _batches(trainer, blocks, checkpoint), encoder, book)
    trainer.save(checkpoint)
    trainer.temper(development_temperature(trainer.master, encoder, book))
    write_model(trainer.master, tokenizer)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    start = parser.add_mutually_exclusive_group()
    start.add_argument("--continue", dest="continued", action="store_true")
    start.add_argument("--new-tokenizer", action="store_true")
    parser.add_argument("--device", type=torch.device, default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--minutes", type=float, help="how long to train, in place of the plan's steps")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument(
        "--processes", type=int, help="how many draw text: with a GPU all cores but one, else 1"
    )
    arguments = parser.parse_args()
    if arguments.processes is None:
        spare = (os.cpu_count() or 1) - 1  # the trainer keeps one busy
        arguments.processes = 1 if arguments.device.type == "cpu" else max(1, spare)
    return arguments


def _new_tokenizer(vocab: int) -> Path:
    path = WORK / "tokenizer.json"
    if not path.exists():
        corpus = Corpus(load(), Heldout(wordings()))
        sample = islice(corpus.conversations(TOKENIZER_SEED), TOKENIZER_CONVERSATIONS)
        tokens.train(sample, vocab).save(str(path))
    return path


def _batches(trainer: Trainer, blocks: Iterator[list[Batch]], checkpoint: Path) -> Iterator[Batch]:
    saved = time.monotonic()
    for block in blocks:
        if time.monotonic() - saved > SAVE_SECONDS:
            trainer.save(checkpoint)
            saved = time.monotonic()
        yield from block
        trainer.progress.block += 1


def _train(trainer: Trainer, batches: Iterator[Batch], encoder: tokens.Encoder, book: Book) -> None:
    while trainer.done < 1:
        trainer.step(next(batches))
        if trainer.progress.step % trainer.plan.report == 0 or trainer.done == 1:
            scores = development_score(trainer.model, encoder, book), refused_share(trainer.model, encoder)
            row = trainer.row(*scores)
            trainer.log.write(row)
            print(*(f"{name} {value} ·" for name, value in row.items()), flush=True)


if __name__ == "__main__":
    main()
