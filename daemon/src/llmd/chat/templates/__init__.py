"""Turn conversations into prompts: chat templates, rendered in a separate process."""
