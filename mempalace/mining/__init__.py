"""Exchanges and files become drawers and closets."""
