"""Measurements; run with `make bench`. Nothing here is asserted by the tests."""
