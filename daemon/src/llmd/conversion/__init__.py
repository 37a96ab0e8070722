"""Models rewritten in another form: a directory as a GGUF file, and back."""
