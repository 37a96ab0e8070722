"""Tokenizers of all supported file formats: text to token ids and back."""
