"""A model in the caller's own process:
the engine with tokenizer and chat template, without daemon or sockets.
"""
