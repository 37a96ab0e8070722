"""``llmd doctor``: one module for each topic, with a function ``checks`` that yields what it found."""
