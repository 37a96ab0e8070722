"""Bytes and connections: routes, who may ask, bodies, replies and errors in every dialect's shape."""
