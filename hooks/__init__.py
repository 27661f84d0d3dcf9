"""Wire each agent's session start to `mempalace wake-up`.

Owns: where an agent keeps its settings, the shape it wants, and safe edits of them.
Never: waits for a daemon, a lock, a model or the network (R9).
Called by: the CLI commands that install and remove hooks.
"""
