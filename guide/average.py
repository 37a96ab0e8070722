"""Average weights of several stages: ``python -m guide.average FILE FILE...``.

The mean of weights that were trained on from each other answers more questions than each of them (Wortsman
et al. 2022, "Model soups"). It becomes the model directory that llmd ships, whose own weights may be named.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import torch
from safetensors.torch import load_file
from tokenizers import Tokenizer

from guide.export import DIRECTORY, write_model
from guide.model import Guide, Shape


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m guide.average", description=__doc__)
    parser.add_argument("files", type=Path, nargs="+", help="model.safetensors of each stage")
    tokenizer = Tokenizer.from_file(str(DIRECTORY / "tokenizer.json"))
    write_model(averaged(parser.parse_args().files, Shape()), tokenizer)


@torch.no_grad()
def averaged(files: Sequence[Path], shape: Shape) -> Guide:
    """Return a model with the means of the weights in files, each computed in float32."""
    stages = [load_file(path) for path in files]
    model = Guide(shape)
    for name, weight in model.checkpoint():
        weight.copy_(torch.stack([stage[name].float() for stage in stages]).mean(0))
    return model


if __name__ == "__main__":
    main()
