from __future__ import annotations

import stat
from pathlib import Path

import pytest

from llmd.api.errors import ConfigError, LlmdError, NotFoundError
from llmd.config.keys import PREFIX, KeyFile, find_key


@pytest.fixture
def file(tmp_path: Path) -> KeyFile:
    return KeyFile(tmp_path / "config" / "keys.json")


def test_a_key_is_found_by_itself_alone(file: KeyFile) -> None:
    first, second = file.add("ann"), file.add("bob", manages=True)
    assert first.startswith(PREFIX)
    assert first != second
    keys = file.load()
    for secret, name, manages in ((first, "ann", False), (second, "bob", True)):
        found = find_key(keys, secret)
        assert found is not None
        assert (found.name, found.manages) == (name, manages)
    for wrong in ("", first[:-1], first.upper(), "ollama", "\udcff"):
        assert find_key(keys, wrong) is None


def test_the_file_holds_no_key_and_is_its_owners_alone(file: KeyFile) -> None:
    secret = file.add("ann")
    content = file.path.read_text()
    assert secret not in content
    assert secret.removeprefix(PREFIX) not in content
    assert stat.S_IMODE(file.path.stat().st_mode) == 0o600
    assert [path.name for path in file.path.parent.iterdir()] == ["keys.json"]


def test_a_key_that_was_taken_back_is_unknown(file: KeyFile) -> None:
    secret, kept = file.add("ann"), file.add("bob")
    file.remove("ann")
    assert find_key(file.load(), secret) is None
    assert find_key(file.load(), kept) is not None
    with pytest.raises(NotFoundError, match="no key ann; keys: bob"):
        file.remove("ann")


def test_names_are_given_once_and_can_be_printed(file: KeyFile) -> None:
    file.add("ann")
    with pytest.raises(ConfigError, match="already a key ann") as caught:
        file.add("ann")
    assert caught.value.exit_code == 9
    for name in ("", " ", "a\nb", "bad name", "bad/"):
        with pytest.raises(ConfigError, match="not a valid name"):
            file.add(name)


OWN = "0123456789abcdefghijklmn"


def test_a_key_may_be_chosen(file: KeyFile) -> None:
    assert file.add("ann", manages=True, secret=OWN) == OWN
    found = find_key(file.load(), OWN)
    assert found is not None
    assert (found.name, found.manages) == ("ann", True)
    assert OWN not in file.path.read_text()


@pytest.mark.parametrize(
    ("secret", "said"),
    [
        ("", "0 characters"),
        (OWN[:-1], "23 characters"),
        (OWN * 22, "more than 512 characters"),
        ("abcdefg" * 4, "7 different"),
        (f"{OWN} {OWN}", "spaces"),
        (f"{OWN}\n", "spaces"),
        (f"{OWN}é", "not ASCII"),
    ],
)
def test_keys_that_could_be_guessed_are_refused_and_not_shown(file: KeyFile, secret: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said) as caught:
        file.add("ann", secret=secret)
    assert "24 to 512" in caught.value.hint
    assert OWN[:-1] not in str(caught.value)
    assert not file.path.exists()


@pytest.mark.parametrize("secret", ["abcdefgh" * 3, "!~" + OWN])
def test_the_least_that_a_key_must_have_is_enough(file: KeyFile, secret: str) -> None:
    assert file.add("ann", secret=secret) == secret


def test_one_key_has_one_name(file: KeyFile) -> None:
    file.add("ann", secret=OWN)
    with pytest.raises(ConfigError, match="already exists as ann") as caught:
        file.add("bob", secret=OWN)
    assert caught.value.exit_code == 9
    assert [key.name for key in file.load()] == ["ann"]


@pytest.mark.parametrize("content", [b"{", b"[1]", b'[{"name": "ann"}]', b"\xff"])
def test_a_file_that_was_damaged_is_refused_by_name(file: KeyFile, content: bytes) -> None:
    file.path.parent.mkdir()
    file.path.write_bytes(content)
    with pytest.raises(ConfigError, match=r"keys\.json cannot be read"):
        file.load()


def test_a_file_that_cannot_be_replaced_keeps_its_keys(
    file: KeyFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    file.add("ann")

    def refuse(*_paths: object) -> None:
        raise OSError("full")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", refuse)
        with pytest.raises(LlmdError, match="cannot be written: full"):
            file.add("bob")
    assert [key.name for key in file.load()] == ["ann"]
    assert [path.name for path in file.path.parent.iterdir()] == ["keys.json"]
