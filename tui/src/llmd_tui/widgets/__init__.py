"""Widgets that know only what they show. They post messages, and never call the daemon."""
