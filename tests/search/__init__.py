"""Tests of mempalace.search."""
