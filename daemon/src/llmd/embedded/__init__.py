"""A model in the caller's own process: the engine and the text around it, without daemon and sockets."""
