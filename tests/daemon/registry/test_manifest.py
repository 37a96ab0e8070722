from __future__ import annotations

import msgspec
import pytest

from llmd.registry.manifest import Manifest, ManifestFile, check_path

FILES = (ManifestFile("config.json", 2, "a" * 64), ManifestFile("1_Pooling/config.json", 3, "b" * 64))


def test_reads_what_it_wrote() -> None:
    manifest = Manifest(FILES, source="org/name", commit="c" * 40)
    assert Manifest.decode(manifest.encoded()) == manifest
    assert manifest.size_bytes == 5


def test_equal_versions_have_one_id_and_others_another() -> None:
    assert Manifest(FILES).id == Manifest(FILES).id
    assert len({Manifest(FILES).id, Manifest(FILES[:1]).id, Manifest(FILES, commit="c").id}) == 3


@pytest.mark.parametrize("path", ["../x", "/etc/passwd", "a/../../x", "", "a\\b", "a\nb"])
def test_a_path_that_leads_out_is_refused(path: str) -> None:
    with pytest.raises(ValueError, match="leads out of the model"):
        check_path(path)
    damaged = Manifest((ManifestFile(path, 1, "a" * 64),)).encoded()
    with pytest.raises(ValueError, match="leads out of the model"):
        Manifest.decode(damaged)


def test_a_damaged_manifest_is_refused() -> None:
    with pytest.raises(msgspec.DecodeError):
        Manifest.decode(b'{"files": [')
