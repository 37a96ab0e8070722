"""HTTP: connections, routes, access checks, request bodies, and replies in each dialect's format."""
