"""The front: HTTP on TCP and Unix sockets, dialects, and supervisors that keep engines and requests alive."""
