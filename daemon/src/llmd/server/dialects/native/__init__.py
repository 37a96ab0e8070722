"""llmd's own API: health for supervisors, ``/llmd/…`` for the command line of this machine."""
