"""What goes wrong on real machines, done on purpose to the real parts."""
