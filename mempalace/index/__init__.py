"""Vectors: what was said, found by what it means (docs/design.md).

The only room that knows numpy and onnxruntime, and each module imports them only when it must.
"""

import os

# Nothing leaves the machine. From its first import on, onnxruntime (1.32 does) gives the machine an
# id and uploads events, unless this stands in the environment before.
os.environ["ORT_DISABLE_TELEMETRY"] = "1"
