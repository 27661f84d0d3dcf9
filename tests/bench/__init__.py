"""Measurements, run with `make bench`: ratios against a named baseline of the same run.

Nothing here is asserted by the tests: machines are noisy. `python -m tests.bench NAME…` runs some.
"""
