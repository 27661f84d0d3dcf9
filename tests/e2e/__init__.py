"""The programs as they are started, from a line on disk to a row in the palace."""
