"""The built-in architectures, which turn a ``config.json`` into a `ModelPlan`: one module for each family."""
