from __future__ import annotations

from llmd.api.parsing import ChoiceTerm, SchemaTerm, TextTerm
from llmd.builtin.parsers.plain_values import plain_terms


def test_texts_are_free_or_words_and_other_values_json() -> None:
    assert plain_terms({"type": "string"}, "</v>") == (TextTerm("</v>", None),)
    assert plain_terms({"type": "string", "pattern": "^a+$"}, "</v>") == (TextTerm("</v>", "(?:a+)"),)
    assert plain_terms({"type": "string", "enum": ["C", "F"]}, "</v>") == (
        ChoiceTerm((("C",), ("F",))),
        "</v>",
    )
    assert plain_terms({"type": "string", "const": "C"}, "</v>") == (ChoiceTerm((("C",),)), "</v>")
    assert plain_terms({"type": "integer"}, "</v>") == (SchemaTerm({"type": "integer"}), "</v>")
