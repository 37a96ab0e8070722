"""The built-in architectures: from a ``config.json`` to a `ModelPlan`, one module for each family."""
