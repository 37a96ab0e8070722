from __future__ import annotations

import pytest

from llmd.api.errors import GrammarError
from llmd.grammar.json_schema import enforceable, schema_grammar
from llmd.grammar.rewriting.formats import NATIVE, PATTERNS, is_known, pattern_of_format
from tests.structured.conformity import allows, compiler, disagreements

TEXTS = {
    "date": (
        ["2020-02-29", "2000-02-29", "1999-12-31", "0004-02-29", "0001-01-01", "2024-04-30"],
        ["2021-02-29", "1900-02-29", "2020-02-30", "2020-04-31", "2020-13-01", "2020-1-1", "20200101", "0000-02-29"],
    ),
    "date-time": (
        ["2020-02-29T23:59:59Z", "1998-12-31T23:59:60z", "2020-01-01t00:00:00.25+05:30"],
        ["2021-02-29T00:00:00Z", "2020-01-01 00:00:00Z", "2020-01-01T24:00:00Z", "2020-01-01T00:00:00"],
    ),
    "time": (["23:59:60Z", "00:00:00-00:00", "12:34:56.7+23:59"], ["22:59:60Z", "23:58:60Z", "12:34Z", "1:00:00Z"]),
    "ipv6": (
        ["::", "::1", "1::", "2001:db8::8a2e:370:7334", "1:2:3:4:5:6:7:8", "::ffff:192.168.0.1", "1:2:3:4:5:6:1.2.3.4"],
        [":", "1:2:3:4:5:6:7", "1:2:3:4:5:6:7:8:9", "1::2::3", "12345::", "::1.2.3", "1:2:3:4:5:6:7:1.2.3.4", ":1"],
    ),
    "json-pointer": (["", "/", "/a~1b/~0", "//x"], ["a", "/~", "/~2", "#/a"]),
    "relative-json-pointer": (["0", "12/a", "1#"], ["", "/a", "01", "1#/a", "-1"]),
    "uri-reference": (["", "a/b?c#d", "//host/x", "http://u@h:80/%41", "#x", "./a:b"], ["a b", "\\x", "%4", "a#b#c", "1:b"]),
    "uri-template": (["", "/a/{b}", "{+x,y*}{?q:3}", "http://x/%41"], ["{", "{a", "a}", "{a b}", "<x>", "%4", "{a:0}"]),
    "iri": (["http://ƒøø.ßår/?∂éœ=πîx#πîüx", "urn:a", "http://[::1]:80/"], ["/a", "", "http://a b", "http://x^", "ä:b"]),
    "iri-reference": (["", "/ä?ö#ü", "ä"], ["\\ä", "a b", "#ƒräg\\mênt"]),
    "idn-email": (["a.b@c.de", "실례@실례.테스트"], ["2962", "@x", "a@", ".a@b", "a..b@c", "a@-b"]),
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(TEXTS))
def test_a_format_has_its_texts_and_no_others(name: str) -> None:
    matcher = compiler().compile(schema_grammar({"format": name}))
    taken, refused = TEXTS[name]
    assert [text for text in taken if not allows(matcher, text)] == []
    assert [text for text in refused if allows(matcher, text)] == []
    assert allows(matcher, 1)


def test_every_pattern_is_tested() -> None:
    assert sorted(PATTERNS) == sorted(TEXTS)
    assert all(pattern_of_format(name) is None for name in NATIVE)


def test_a_format_holds_beside_a_pattern() -> None:
    assert disagreements({"format": "date", "pattern": "^2020"}, ["2020-01-01", "2021-01-01", "2020"]) == []


def test_other_formats_are_notes_and_some_are_refused() -> None:
    assert not is_known("password")
    assert enforceable({"format": "password"}) == {}
    for name in ("regex", "idn-hostname"):
        with pytest.raises(GrammarError, match=f"format {name} at #/items"):
            enforceable({"items": {"format": name}})
