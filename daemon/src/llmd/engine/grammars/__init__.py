"""Grammars of running requests, which a process of their own compiles, and the masks of a step's rows."""
