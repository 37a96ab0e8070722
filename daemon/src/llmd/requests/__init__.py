"""The fields of requests and the options of `llmd.Engine`: their names, ranges and meaning."""
