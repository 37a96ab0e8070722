"""Models on disk: configuration, checkpoint, plan, weight formats and lowering."""
