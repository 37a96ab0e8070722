"""What the daemon does now, and why."""
