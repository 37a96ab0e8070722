"""Grammars of answers, test-compiled in a separate process before they reach an engine."""
