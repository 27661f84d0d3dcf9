"""The tests: they mirror the tree, and every name is a sentence."""
