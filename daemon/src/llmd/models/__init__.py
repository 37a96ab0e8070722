"""Models on disk: configuration, checkpoint, plan, weight formats, lowering."""
