"""What the daemon tells about itself: figures for Prometheus, a live feed of events, a line in the log for each request."""
