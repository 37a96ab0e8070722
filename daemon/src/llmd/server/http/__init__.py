"""HTTP: connections, routes, access checks, request bodies, and replies and errors in each dialect's
format.
"""
