"""Bytes of a source become messages: one module a format, one registry."""
