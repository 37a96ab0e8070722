"""Rewrite JSON schemas until llguidance can express them. Pure; one module per keyword or family of keywords.

`references` makes every reference local, `drafts` converts older drafts to draft 2020-12, and `rewriter`
applies rules until no keyword is left that llguidance lacks. A rule takes a schema that has its keyword and
returns one that allows the same values, or fewer if documented, but never more.
"""
