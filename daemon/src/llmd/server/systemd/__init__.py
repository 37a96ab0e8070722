"""Notifications to systemd, or another service manager with the same protocols."""
