"""Grammars that bind answers: from a request's schema or grammar to bit masks over the vocabulary. Pure.

Every kind of `llmd.api.messages.Grammar` becomes one Lark text (`lark.py`), which llguidance compiles for a vocabulary
(`compiler.py`); a `Matcher` keeps the place of one sequence in it, and `MaskFiller` makes the masks of many rows.

**Writing a grammar**, for instance for calls of tools: `Grammar("lark", text)` with llguidance's Lark. ``start`` is the
whole answer. ``"text"`` is text, ``/…/`` a regular expression, ``<[151657]>`` the control token of that id (text never
matches one, and one never matches text), ``%json {…}`` a value of a JSON schema. `llmd.grammar.lark` quotes what is
put into such a text: `literal`, `control_token`, `json_value`, `embedded` for a whole grammar of any kind, and
`after_reasoning` for one that begins where the model stops thinking::

    Grammar("lark", f"start: {control_token(7)} {json_value(schema)} {control_token(8)}")

Source: https://github.com/guidance-ai/llguidance, docs/syntax.md; the method is Earley's parser over lexemes that are
derivatives of regular expressions.
"""
