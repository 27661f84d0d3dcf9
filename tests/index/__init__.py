"""Tests of mempalace.index."""
