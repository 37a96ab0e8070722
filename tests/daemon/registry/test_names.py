from __future__ import annotations

import pytest

from llmd.api.errors import RequestError
from llmd.registry.names import HubName, check_alias, check_model_name, check_name, parse_hub_name


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("org/name", HubName("org/name")),
        ("gpt2", HubName("gpt2")),
        (" hf.co/org/name:latest ", HubName("org/name")),
        ("https://huggingface.co/org/na.me-1", HubName("org/na.me-1")),
        ("org/name@v1.0", HubName("org/name", "v1.0")),
        ("org/name@refs/pr/1", HubName("org/name", "refs/pr/1")),
        ("org/name@main", HubName("org/name")),
        ("hf.co/org/name:q4_k_m", HubName("org/name", quant="Q4_K_M")),
        ("org/name@v1:Q8_0", HubName("org/name", "v1", "Q8_0")),
    ],
)
def test_reads_repository_and_revision(text: str, name: HubName) -> None:
    assert parse_hub_name(text) == name


HOSTILE = [
    "../etc",
    "a/../b",
    "a/b/c",
    "/etc",
    "a//b",
    ".hidden",
    "a/.b",
    "a\\b",
    "a b",
    "a\0b",
    "",
    "x" * 200,
    "ä/b",
]
HOSTILE += ["file:///etc", "http://127.0.0.1/x", "evil.example/org/name/x", "-rf", "a\nb"]


@pytest.mark.parametrize(
    "text",
    [
        *HOSTILE,
        "a/b@",
        "a/b@../x",
        "a/b@/x",
        "a/b@x/",
        "a/b@-x",
        "a/b:",
        "a/b:-x",
        "a/b:x/y",
        "a/b:x:y",
        "a/b@" + "x" * 101,
    ],
)
def test_refuses_what_is_no_name_or_leads_elsewhere(text: str) -> None:
    with pytest.raises(RequestError, match="is not a valid model name"):
        parse_hub_name(text)


def test_says_how_long_a_name_may_be() -> None:
    for check in (check_model_name, parse_hub_name, check_alias):
        with pytest.raises(RequestError, match="has 300 characters") as refused:
            check("x" * 300)
        assert "at most 200" in str(refused.value)
    longest = f"{'o' * 42}/{'n' * 96}@{'a' * 40}:UD-Q4_K_XL"
    assert check_model_name(longest) == parse_hub_name(longest).local == longest
    with pytest.raises(RequestError, match="characters"):
        parse_hub_name(f"{'o' * 42}/{'n' * 90}@{'r/' * 30}r")


def test_an_alias_is_a_name_in_which_a_star_stands_for_any_text() -> None:
    names = ["mine", "org/mine:7b", "claude-*", "*", "org/*:*"]
    assert [check_alias(name) for name in names] == names
    for hostile in ("../*", "-*", "a\n*", "a[1]*", "a/b/*", ""):
        with pytest.raises(RequestError, match="is not a valid model name") as refused:
            check_alias(hostile)
        assert (refused.value.param, repr(hostile) in refused.value.message) == ("alias", True)


def test_a_pinned_version_is_a_model_of_its_own() -> None:
    assert parse_hub_name("org/name").local == "org/name"
    assert parse_hub_name("org/name@refs/pr/1").local == "org/name@refs--pr--1"
    assert str(parse_hub_name("org/name@v1")) == "org/name@v1"


def test_a_quantisation_is_a_model_of_its_own() -> None:
    assert parse_hub_name("org/name:q8_0").local == "org/name:Q8_0"
    assert parse_hub_name("org/name@refs/pr/1:q8_0").local == "org/name@refs--pr--1:Q8_0"
    assert check_model_name("org/name@v1:Q8_0") == "org/name@v1:Q8_0"


@pytest.mark.parametrize("text", ["mine", "org/mine", "org/name@refs--pr--1", "mine:latest"])
def test_names_of_the_store_have_one_or_two_parts(text: str) -> None:
    assert check_model_name(text) == text.removesuffix(":latest")


@pytest.mark.parametrize("text", [*HOSTILE, "a@b/c", "a/b\n"])
def test_no_name_of_the_store_leads_out_of_it(text: str) -> None:
    with pytest.raises(RequestError, match="is not a valid model name"):
        check_model_name(text)


def test_other_things_are_named_by_the_same_rule_and_errors_say_what_is_named() -> None:
    assert check_name("org/talk:latest", "conversation") == "org/talk"
    with pytest.raises(RequestError, match="is not a valid conversation name") as refused:
        check_name("../x", "conversation")
    assert refused.value.param is None
    with pytest.raises(RequestError, match="a conversation name has at most 200"):
        check_name("x" * 201, "conversation")
