"""What a request or a caller of `llmd.Engine` may ask for: its fields, their ranges, and what they mean."""
