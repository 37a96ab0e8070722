"""A daemon gives the vectors that sentence-transformers gives for the same directory and the same texts."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from tests.golden.expected import nmse
from tests.golden.sentences import CASES, TEXTS, read_sentences, write_case
from tests.golden.test_goldens import DEVICES
from tests.serving.running import directories_below, running_daemon


@pytest.mark.parametrize("device", DEVICES)
def test_vectors_are_those_of_sentence_transformers(device: str, tmp_path: Path) -> None:
    directories = directories_below(tmp_path)
    for case in CASES:
        write_case(case, directories.models / case.name)
    expected = read_sentences()[0]
    with running_daemon(directories, models=(), device=device) as daemon:
        client = daemon.client()
        for case in CASES:
            cut = {"dimensions": case.dimensions} if case.dimensions else {}
            vectors = np.array(client.embed(list(TEXTS), model=case.name, **cut))
            assert nmse(vectors, expected[case.name]) <= 1e-9, case.name
            client.stop(case.name)


def test_expectations_come_from_the_versions_that_the_oracle_pins() -> None:
    requirements = (Path(__file__).parent / "oracle" / "requirements.txt").read_text()
    pinned = dict(re.findall(r"^([a-z-]+)==(.+)$", requirements, re.MULTILINE))
    for module, version in read_sentences()[1].items():
        assert version.partition("+")[0] == pinned[module.replace("_", "-")]
