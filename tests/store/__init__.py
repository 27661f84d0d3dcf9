"""Tests of mempalace.store."""
