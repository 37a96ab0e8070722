"""Tokenizers that stand in the metadata of GGUF files, run by the libraries that run the others."""
