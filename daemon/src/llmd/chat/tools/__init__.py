"""Tools in prompts, and the calls that answers may make."""
