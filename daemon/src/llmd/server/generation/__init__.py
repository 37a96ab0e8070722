"""Runs a request of any dialect: from the prompt to the tokens and text pieces of its answer."""
