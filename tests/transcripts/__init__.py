"""Tests of mempalace.transcripts."""
