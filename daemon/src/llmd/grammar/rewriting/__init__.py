"""JSON schemas rewritten until llguidance can express them. Pure; one keyword, or family of keywords, a module.

`references` gives every reference a definition of its own, `drafts` writes older drafts as draft 2020-12, and `rewriter`
applies one rule after the other until no keyword is left that llguidance lacks. A rule takes a schema that has its keyword
and returns one that allows the same values, or fewer where the documentation says so, never more.
"""
