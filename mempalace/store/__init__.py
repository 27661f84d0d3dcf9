"""palace.db: the truth (docs/design.md)."""
