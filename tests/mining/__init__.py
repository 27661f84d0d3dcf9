"""Exchanges become drawers."""
