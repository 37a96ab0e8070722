"""Tokenizers in the metadata of GGUF files, run by the same libraries as the others."""
