"""Convert models: a directory to a GGUF file, and back."""
