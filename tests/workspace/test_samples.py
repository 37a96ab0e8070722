"""Setup extracts the samples for tests from a source package once, and all or none of them."""

from __future__ import annotations

import io
import subprocess
import tarfile
from dataclasses import replace
from pathlib import Path

import pytest

from tools.samples import JSON_SCHEMA_SUITE, LLAMA_CPP, Samples
from tools.stamps import Stamps

INSIDE = "llama_cpp_python-1/vendor/llama.cpp"
SUITE = "jsonschema-1/json/tests"
FILES = {
    f"{INSIDE}/models/ggml-vocab-x.gguf": b"GGUF",
    f"{INSIDE}/models/ggml-vocab-x.gguf.inp": b"text",
    f"{INSIDE}/models/templates/A.jinja": b"{{ a }}",
    f"{INSIDE}/models/templates/README.md": b"not taken",
    f"{INSIDE}/tests/ggml-vocab-y.gguf": b"not taken",
    f"{SUITE}/draft2020-12/ref.json": b"new",
    f"{SUITE}/draft2020-12/optional/format/date.json": b"dates",
    f"{SUITE}/draft4/ref.json": b"old",
    f"{SUITE}/draft3/ref.json": b"not taken",
    f"{SUITE}/draft4/ref.md": b"not taken",
}


@pytest.fixture
def samples(tmp_path: Path) -> Samples:
    """Samples with a fake pip in shell, which copies a package to the folder after --dest and counts its
    calls.
    """
    with tarfile.open(tmp_path / "package.tar.gz", "w:gz") as archive:
        for name, content in FILES.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    pip = tmp_path / "pip"
    pip.write_text(
        '#!/bin/sh\necho "$@" >> "$0.asked"\n'
        'while [ "$1" != --dest ]; do shift; done\n'
        'cp "${0%pip}package.tar.gz" "$2/"\n'
    )
    pip.chmod(0o755)
    return Samples(tmp_path / "samples", tmp_path / "pinned.txt", LLAMA_CPP, pip, tmp_path / "python")


def taken(samples: Samples) -> dict[str, bytes]:
    samples.fetch()
    return {
        str(path.relative_to(samples.folder)): path.read_bytes()
        for path in samples.folder.rglob("*")
        if path.is_file()
    }


def test_vocabularies_and_templates_are_taken_and_nothing_else(samples: Samples) -> None:
    assert taken(samples) == {
        "vocabularies/ggml-vocab-x.gguf": b"GGUF",
        "vocabularies/ggml-vocab-x.gguf.inp": b"text",
        "templates/A.jinja": b"{{ a }}",
    }


def test_cases_of_the_suite_are_taken_by_draft_and_nothing_else(samples: Samples) -> None:
    assert taken(replace(samples, wanted=JSON_SCHEMA_SUITE)) == {
        "draft2020-12/ref.json": b"new",
        "draft2020-12/optional/format/date.json": b"dates",
        "draft4/ref.json": b"old",
    }


def test_the_package_is_checked_against_its_hash_and_not_built_with_tools_from_elsewhere(
    samples: Samples,
) -> None:
    samples.fetch()
    asked = samples.pip.with_name("pip.asked").read_text()
    assert asked.startswith(f"--python {samples.python} download ")
    for option in (
        "--require-hashes",
        "--no-deps",
        "--no-build-isolation",
        f"--requirement {samples.pinned}",
    ):
        assert option in asked


def test_a_second_run_fetches_nothing_and_a_new_version_replaces_the_old(samples: Samples) -> None:
    samples.pinned.write_text("==1")
    stamps = Stamps(samples.folder)
    for version in ("==1", "==1", "==2"):
        samples.pinned.write_text(version)
        stamps.run("samples", [samples.pinned], samples.fetch)
    assert len(samples.pip.with_name("pip.asked").read_text().splitlines()) == 2


def test_a_download_that_fails_leaves_what_was_there(samples: Samples) -> None:
    samples.fetch()
    samples.pip.write_text("#!/bin/sh\nexit 1\n")
    with pytest.raises(subprocess.CalledProcessError):
        samples.fetch()
    assert (samples.folder / "templates/A.jinja").exists()
