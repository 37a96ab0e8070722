"""From candidates to tokens. Pure."""
