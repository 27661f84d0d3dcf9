"""Bytes read for 1 KB appended to a file of 500 MB."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from mempalace import config as configuration
from mempalace.store.palace import Palace
from tests.bench.measure import Row
from watcher.capture import Capture
from watcher.disk import Disk

_SIZE = 500_000_000


class _Counting(Disk):
    read_bytes = 0

    def read(self, descriptor: int, length: int, offset: int) -> bytes:
        data = super().read(descriptor, length, offset)
        self.read_bytes += len(data)
        return data


def run(scratch: Path) -> Iterator[Row]:
    folder = scratch / "amplification"
    folder.mkdir()
    path = folder / "0b9f6d1e-5a52-4a53-9a47-6f0e1d6b2c11.jsonl"
    noise = {"type": "progress", "sessionId": path.stem, "data": {"output": "x" * 60_000}}
    line = json.dumps(noise).encode() + b"\n"
    with path.open("wb") as stream:
        for _ in range(_SIZE // len(line)):
            stream.write(line)
    config = replace(configuration.load({"HOME": str(folder)}), home=folder / "palace")
    disk = _Counting()
    with Palace.writer(config.home, create=True) as palace:
        capture = Capture(palace, config, disk, folder_of=lambda _: None)
        while capture.read(str(path), cold=False).more:
            pass
        record = {
            "type": "user", "uuid": "u1", "timestamp": "2026-01-05T08:00:00.000Z", "cwd": "/bench",
            "sessionId": path.stem, "message": {"role": "user", "content": "y" * 850},
        }  # fmt: skip
        appended = json.dumps(record).encode() + b"\n"
        with path.open("ab") as stream:
            stream.write(appended)
        disk.read_bytes = 0
        while capture.read(str(path), cold=False).more:
            pass
    yield Row(
        "read for 1 KB appended to 500 MB", disk.read_bytes, "bytes", "appended, bytes",
        len(appended),
    )  # fmt: skip
