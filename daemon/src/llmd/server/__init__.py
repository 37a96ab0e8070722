"""The daemon: HTTP on TCP and Unix sockets, API dialects, and supervisors of engine processes."""
