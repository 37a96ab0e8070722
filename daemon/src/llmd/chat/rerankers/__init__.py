"""Generative models that score how well documents answer a query."""
