"""Text to token ids and back, whatever format a model's tokenizer has."""
