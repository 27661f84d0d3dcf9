"""The tour that `make run` takes: a palace filled, one exchange captured live, searched, woken.

Owns: the order of the steps and what is printed. Everything that it shows is done by the real
commands, started as a user starts them.
Never: writes to a transcript, or to any home but the user's own palace and a temporary folder.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

HERE = Path(__file__).resolve().parent
EXAMPLES = HERE / "transcripts"
COMMAND = [sys.executable, "-P", "-m", "mempalace"]
LIVE_SECONDS = 30.0  # a line is findable within two; this is for machines that are very busy


def mempalace(*arguments: str, env: dict[str, str] | None = None, show: bool = True) -> str:
    """Run a command as a user would; show it and what it says."""
    if show:
        print(f"\n$ mempalace {' '.join(arguments)}", flush=True)
    done = subprocess.run(
        [*COMMAND, *arguments],
        env=env,
        text=True,
        encoding="utf-8",
        capture_output=True,
        check=False,
    )
    if show:
        print((done.stdout + done.stderr).rstrip())
    if done.returncode and show:
        sys.exit(f"`mempalace {' '.join(arguments)}` exited with {done.returncode}")
    return done.stdout


def transcripts_of_this_machine() -> bool:
    """Are there sessions of Claude Code here that may be filed?"""
    settings = {
        row["key"]: row["value"] for row in json.loads(mempalace("config", "--json", show=False))
    }
    return any(True for root in settings["roots.claude-code"] for _ in Path(root).rglob("*.jsonl"))


def a_word_to_search_for(env: dict[str, str] | None) -> str:
    """Three words of the latest prompt that has them."""
    found = json.loads(mempalace("sessions", "--json", env=env, show=False) or "[]")
    for session in found:
        words = re.findall(r"[^\W\d_]{4,}", session.get("first_prompt") or "")
        if len(words) >= 2:
            return " ".join(words[:3])
    return "hello"


def capture_live(folder: Path) -> None:
    """Start a watcher on an empty root, write one exchange, and find it."""
    root = folder / "claude" / "projects" / "-home-ada-shop"
    root.mkdir(parents=True)
    env = private_home(folder)
    watcher = subprocess.Popen(
        [*COMMAND, "watch"], env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        session = "0b9f6d1e-5a52-4a53-9a47-6f0e1d6b2c11"
        words = [
            ("user", "Remember: the staging password rotates on the first Monday."),
            ("assistant", "Noted: on the first Monday of the month."),
        ]
        print("\nAn agent writes an exchange while `mempalace watch` follows its folder …")
        with (root / f"{session}.jsonl").open("a", encoding="utf-8") as stream:
            for number, (role, text) in enumerate(words):
                now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
                record = {
                    "type": role, "uuid": f"live-{number}", "timestamp": now,
                    "sessionId": session, "cwd": "/home/ada/shop", "isSidechain": False,
                    "message": {"id": f"m{number}", "role": role, "content": text},
                }  # fmt: skip
                stream.write(json.dumps(record) + "\n")
        started = time.monotonic()
        while "Noted" not in mempalace("search", "rotates Monday", env=env, show=False):
            if time.monotonic() - started > LIVE_SECONDS:
                sys.exit("the exchange was not captured; run `mempalace status` and see")
        print(f"… and {time.monotonic() - started:.1f} seconds later it is found:")
        mempalace("search", "staging password Monday", env=env)
    finally:
        watcher.terminate()
        watcher.wait(timeout=30)


def private_home(folder: Path) -> dict[str, str]:
    """An environment whose palace and transcripts are in `folder` alone."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith("MEMPALACE_")}
    return kept | {
        "MEMPALACE_HOME": str(folder / "palace"),
        "CLAUDE_CONFIG_DIR": str(folder / "claude"),
        "HOME": str(folder),
    }


def main() -> None:
    # A librarian may still be at work in it: it leaves when its home is gone.
    with tempfile.TemporaryDirectory(
        prefix="mempalace-tour-", ignore_cleanup_errors=True
    ) as scratch:
        own = transcripts_of_this_machine()
        env = None if own else private_home(Path(scratch) / "examples")
        if own:
            print("This machine has transcripts: filing them (run it again, and only what is new).")
            mempalace("backfill", env=env)
        else:
            print("This machine has no transcripts yet: filing three examples in a temporary home.")
            mempalace("backfill", str(EXAMPLES), env=env)
        mempalace("search", a_word_to_search_for(env) if own else "outbox invoices", env=env)
        mempalace("wake-up", env=env)
        capture_live(Path(scratch) / "live")
    print("\nWhat to type next:")
    print("  .venv/bin/mempalace watch            follow your agents from now on")
    if not own:
        print("The examples' palace is gone again; once an agent has written something here:")
    print('  .venv/bin/mempalace search "…"       find what was said')
    print("  .venv/bin/mempalace wake-up          what a new session should know")
    print("  .venv/bin/mempalace status           what is stored, what is behind")


if __name__ == "__main__":
    main()
