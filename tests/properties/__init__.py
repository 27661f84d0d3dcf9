"""Laws that hold for every session, not for one example."""
