"""Grammars of answers, tried in a process of their own before an engine gets them."""
