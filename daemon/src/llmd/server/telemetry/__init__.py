"""Telemetry of the daemon: Prometheus metrics, a live feed of events, request logs and traces."""
