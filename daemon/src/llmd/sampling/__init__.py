"""Sample tokens from candidates. No I/O."""
