"""The blocks of the KV cache."""
