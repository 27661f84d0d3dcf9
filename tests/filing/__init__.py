"""Filing: where a record belongs, and what of it is kept."""
