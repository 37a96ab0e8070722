"""GGUF files: the container format, and the models in it."""
