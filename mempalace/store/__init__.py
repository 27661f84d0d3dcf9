"""palace.db: the truth (DESIGN.md §1)."""
