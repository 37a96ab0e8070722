"""llmd's own API: health checks, metrics and ``/llmd/…`` for the command line."""
