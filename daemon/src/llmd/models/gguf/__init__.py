"""GGUF files: the container, and the models in it as the rest of llmd knows them."""
