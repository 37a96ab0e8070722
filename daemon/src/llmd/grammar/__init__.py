"""Grammars that constrain answers: from a request's schema or grammar to bit masks over the vocabulary. Pure.

Every kind of `llmd.api.messages.Grammar` becomes one Lark text (`lark.py`), which llguidance compiles for a
vocabulary (`compiler.py`). A `Matcher` tracks the position of one sequence in it, and `MaskFiller` fills the
masks of many rows.

**Writing a grammar**, for instance for tool calls: `Grammar("lark", text)` with llguidance's Lark. ``start``
is the whole answer. ``"text"`` is text, ``/…/`` a regular expression, ``<[151657]>`` the control token with
that id (text never matches a control token, and vice versa), ``%json {…}`` a value of a JSON schema.
`llmd.grammar.lark` has functions that write the parts of such a text: `literal`, `control_token`,
`json_value`, `embedded` for a whole grammar of any kind, and `after_reasoning` for a grammar that starts
after the model's reasoning::

    Grammar("lark", f"start: {control_token(7)} {json_value(schema)} {control_token(8)}")

Source: https://github.com/guidance-ai/llguidance, docs/syntax.md. llguidance uses an Earley parser; its lexer
uses derivatives of regular expressions.
"""
