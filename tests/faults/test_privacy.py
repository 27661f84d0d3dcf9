"""R10: what is private reaches no byte under the home, and no log; everything else is stored.

Every secret holds one of a few made-up words, which are looked for in every file of the home, in
whatever case, with the write-ahead log still there (the daemon is killed) and after it was folded
in (a clean end).
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from tests.capturing import Capturing
from tests.faults.lines import Lines
from tests.faults.programs import prompts, run, until, watching
from tests.faults.test_files import Failing
from watcher.disk import Disk
from watcher.scan import scan

SECRET = "zqxsecret"
FOLDER = "zqxfolder"
EXCLUDED = f"/home/ada/{FOLDER}"


@pytest.fixture
def root(home: Path) -> Path:
    made = home / ".claude" / "projects"
    made.mkdir(parents=True)
    return made


@pytest.fixture
def folder(root: Path) -> Path:
    made = root / "-home-ada-shop"
    made.mkdir()
    return made


def found(home: Path, *words: str) -> list[str]:
    """Where under the home any of these words stands."""
    return [
        f"{word} in {path.name}"
        for path in home.rglob("*")
        if path.is_file()
        for word in words
        if word.encode() in path.read_bytes().lower() or word in path.name.lower()
    ]


def excluding(palace_home: Path, *patterns: str) -> None:
    palace_home.mkdir(exist_ok=True)
    (palace_home / "config.yaml").write_text("")
    os.environ["MEMPALACE_EXCLUDE"] = os.pathsep.join(patterns)  # no file under the home names it


@pytest.fixture(autouse=True)
def _no_exclusion_is_left_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMPALACE_EXCLUDE", "")


def write(folder: Path, said: Lines, *parts: bytes) -> Path:
    path = folder / f"{said.session}.jsonl"
    with path.open("ab") as stream:
        stream.write(b"".join(parts))
    return path


# --- <private> ------------------------------------------------------------------------------------

BLOCKS = {
    "closed": (f"before <private>{SECRET}</private> after", "before  after"),
    "unclosed": (f"before <private>{SECRET}\n\nmore {SECRET}", "before "),
    "nested": (
        f"before <private>a <private>{SECRET}</private> {SECRET}</private> after",
        "before  after",
    ),
    "in capitals": (f"before <PRIVATE>{SECRET.upper()}</Private> after", "before  after"),
    "twice": (
        f"before <private>{SECRET}</private> between <private>{SECRET}</private> after",
        "before  between  after",
    ),
    "closed twice": (f"before <private>{SECRET}</private> after</private>", None),
    "long": (f"before <private>{SECRET * 900}</private> after", "before  after"),
}  # fmt: skip


def everywhere(said: Lines, text: str) -> list[bytes]:
    """The text in every place where a transcript holds words."""
    return [
        said.prompt(f"prompt {text}"),
        said.answer(f"answer {text}"),
        said.thinking(f"thinking {text}"),
        said.call("Bash", {"command": f"call {text}"}),
        said.result(f"result {text}"),
        said.call("Bash", {text: "a name"}),
        said.queue("enqueue", f"removed {text}"),
        said.result("done"),
        said.queue("remove"),
        said.answer("yes"),
        said.queue("enqueue", f"attached {text}"),
        said.attachment(f"attached {text}"),
        said.answer("yes"),
        said.queue("enqueue", f"run {text}"),
        said.queue("dequeue"),
        said.prompt(f"run {text}"),
        said.answer("yes"),
        said.line("system", content=f"system {text}"),
        said.line("summary", summary=f"summary {text}"),
        said.line("unheard-of", text=text),
        said.queue("enqueue", f"waiting {text}"),
    ]


class TestPrivate:
    @pytest.mark.parametrize("name", BLOCKS)
    def test_a_private_block_is_in_no_byte_after_one_pass(self, folder, palace_home, name):
        text, kept = BLOCKS[name]
        said = Lines(1)
        write(folder, said, *everywhere(said, text))
        done = run("watch", "--once")
        assert done.returncode == 0
        assert found(palace_home, SECRET) == []
        assert SECRET not in (done.stdout + done.stderr).lower()
        openings = ["attached", "prompt", "removed", "run", "waiting"]
        assert [words.split(" ")[0] for words in prompts(palace_home)] == openings
        if kept is not None:
            assert prompts(palace_home) == [f"{opening} {kept}" for opening in openings]
        with Capturing(palace_home) as captured:
            captured.check()
            (answer,) = [t for _, t in captured.words() if t.startswith("answer")]
            assert kept is None or answer == f"answer {kept}"

    # With all that may be turned on turned on.
    @pytest.mark.parametrize("name", BLOCKS)
    def test_nor_where_noise_and_thinking_are_kept_and_nothing_is_cut(
        self, folder, palace_home, name
    ):
        said = Lines(1)
        path = write(folder, said, *everywhere(said, BLOCKS[name][0]))
        more: dict[str, Any] = {"noise": True, "thinking": True, "subagents": True}
        with Capturing(palace_home, tool_chars=-1, **more) as captured:
            captured.read_ok(path)
            assert found(palace_home, SECRET) == []
        assert found(palace_home, SECRET) == []

    # The log of the daemon, its write-ahead log and the texts that wait, at any moment.
    def test_a_private_block_is_in_no_byte_while_the_daemon_follows_the_lines(
        self, tmp_path, folder, palace_home
    ):
        said = Lines(1)
        lines = [line for text, _ in BLOCKS.values() for line in everywhere(said, text)]
        log = tmp_path / "watch.log"
        path = folder / f"{said.session}.jsonl"
        with watching(log) as daemon:
            with path.open("ab", buffering=0) as stream:
                for line in lines:
                    stream.write(line[: len(line) // 2])
                    stream.write(line[len(line) // 2 :])
                    assert found(palace_home, SECRET) == []
            write(folder, said, b'{"torn": "<private>' + SECRET.encode() + b"\n")
            write(folder, said, said.answer("yes"), said.prompt("the end"))
            until(lambda: "the end" in prompts(palace_home))
            daemon.kill()
        assert (palace_home / "palace.db-wal").exists()
        assert found(palace_home, SECRET) == []
        assert SECRET not in daemon.output().lower()

    # A block that was open in the first lines of a streamed answer is closed in the last.
    def test_an_answer_that_grows_over_the_end_of_a_block_keeps_what_is_behind_it(
        self, folder, palace_home
    ):
        said = Lines(1)
        texts = [f"a <private>{SECRET}", f"a <private>{SECRET}</private> b"]
        path = write(folder, said, said.prompt("go"))
        with Capturing(palace_home) as captured:
            for text in texts:
                message = {"id": "msg_1", "role": "assistant"}
                content = [{"type": "text", "text": text}]
                message["content"] = content  # type: ignore[assignment]
                write(folder, said, said.line("assistant", message=message, parentUuid="p"))
                captured.read_ok(path)
                assert found(palace_home, SECRET) == []
            assert captured.words() == [("ASSISTANT", "a  b"), ("HUMAN", "go")]

    # A line of several blocks is one message: what is open at the end of one is open in the next.
    def test_an_unclosed_block_reaches_to_the_end_of_the_message(self, folder, palace_home):
        said = Lines(1)
        blocks = [{"type": "text", "text": t} for t in (f"a <private>{SECRET}", f"b {SECRET}")]
        prompt = said.line("user", message={"role": "user", "content": blocks})
        path = write(folder, said, prompt, said.answer("yes"))
        with Capturing(palace_home) as captured:
            captured.read_ok(path)
            assert captured.prompts() == ["a "]
        assert found(palace_home, SECRET) == []


# --- exclude --------------------------------------------------------------------------------------


def secrets(said: Lines) -> list[bytes]:
    return everywhere(said, SECRET)


PATTERNS = {
    "its working folder": EXCLUDED,
    "a glob on its working folder": f"/home/*/{FOLDER[:4]}*",
    "a part of its working folder": FOLDER,
    "its file": f"*/-home-ada-{FOLDER}/*",
    "its session": Lines(2).session,
}


class TestExcluded:
    @pytest.mark.parametrize("name", PATTERNS)
    def test_an_excluded_session_leaves_no_byte_and_the_others_are_stored(
        self, tmp_path, root, folder, palace_home, name
    ):
        excluding(palace_home, PATTERNS[name])
        kept, hidden = Lines(1), Lines(2, cwd=EXCLUDED)
        other = root / f"-home-ada-{FOLDER}"
        other.mkdir()
        write(folder, kept, kept.prompt("kept"), kept.answer("kept too"))
        write(other, hidden, *secrets(hidden))
        for command in (["watch", "--once"], ["backfill"]):
            done = run(*command)
            assert done.returncode == 0
            assert prompts(palace_home) == ["kept"]
            assert found(palace_home, SECRET, FOLDER) == []
            assert not [w for w in (SECRET, FOLDER) if w in done.stderr.lower()]
        with watching(tmp_path / "watch.log") as daemon:
            write(other, hidden, *secrets(hidden))
            write(folder, kept, kept.prompt("kept as well"))
            until(lambda: prompts(palace_home) == ["kept", "kept as well"])
            daemon.kill()
        assert found(palace_home, SECRET, FOLDER) == []
        assert not [w for w in (SECRET, FOLDER) if w in daemon.output().lower()]

    def test_only_what_was_said_in_an_excluded_folder_is_left_out_of_a_session_that_went_there(
        self, folder, palace_home
    ):
        excluding(palace_home, EXCLUDED)
        said = Lines(1)
        path = write(folder, said, said.prompt("before"), said.answer("before too"))
        said.cwd = EXCLUDED
        write(folder, said, *everywhere(said, SECRET))
        said.cwd = "/home/ada/shop"
        write(folder, said, said.prompt("behind"), said.answer("behind too"))
        assert run("watch", "--once").returncode == 0
        assert prompts(palace_home) == ["before", "behind"]
        assert found(palace_home, SECRET, FOLDER) == []
        assert path.exists()

    # Every line alone, so that each may be the last of a transaction.
    @pytest.mark.parametrize("cold", [False, True])
    def test_nor_when_it_is_read_line_by_line(self, folder, palace_home, cold):
        excluding(palace_home, EXCLUDED)
        said = Lines(1)
        parts = [said.prompt("before")]
        said.cwd = EXCLUDED
        parts += everywhere(said, SECRET)
        said.cwd = "/home/ada/shop"
        parts += [said.prompt("behind"), said.answer("behind too")]
        with Capturing(palace_home) as captured:
            for part in parts:
                path = write(folder, said, part)
                captured.read(path, cold=cold)
                assert found(palace_home, SECRET, FOLDER) == []
            assert captured.prompts() == ["before", "behind"]

    # The words of a queue line were typed where the session was then, not where it ended up.
    @pytest.mark.parametrize("ending", ["remove", "dequeue", "nothing"])
    def test_words_queued_in_an_excluded_folder_do_not_come_out_elsewhere(
        self, folder, palace_home, ending
    ):
        excluding(palace_home, EXCLUDED)
        said = Lines(1)
        parts = [said.prompt("before")]
        said.cwd = EXCLUDED
        parts += [said.prompt(SECRET), said.queue("enqueue", f"typed {SECRET}")]
        said.cwd = "/home/ada/shop"
        parts += [said.call("Bash", {"command": "cd -"}), said.result("back")]
        if ending != "nothing":
            parts += [said.queue(ending), said.answer("behind")]
        write(folder, said, *parts)
        assert run("watch", "--once").returncode == 0
        assert prompts(palace_home) == ["before"]
        assert found(palace_home, SECRET, FOLDER) == []

    def test_a_prompt_queued_before_any_folder_is_known_waits_for_one(
        self, tmp_path, root, palace_home
    ):
        excluding(palace_home, EXCLUDED)
        said, kept = Lines(2, cwd=EXCLUDED), Lines(1)
        odd, plain = root / "odd", root / "plain"
        odd.mkdir()
        plain.mkdir()
        with watching(tmp_path / "watch.log") as daemon:
            write(odd, said, said.queue("enqueue", f"first {SECRET}"))
            write(odd, said, said.line("summary", summary=SECRET, cwd=None))
            write(plain, kept, kept.queue("enqueue", "first kept"))
            write(plain, kept, kept.prompt("second kept"))
            until(lambda: "second kept" in prompts(palace_home))
            assert found(palace_home, SECRET, FOLDER) == []
            write(odd, said, *secrets(said))
            write(plain, kept, kept.prompt("third kept"))
            until(lambda: "third kept" in prompts(palace_home))
            assert daemon.end() == 0
        assert run("watch", "--once").returncode == 0
        assert prompts(palace_home) == ["first kept", "second kept", "third kept"]
        assert found(palace_home, SECRET, FOLDER) == []

    @pytest.mark.parametrize("to", [f"-home-ada-{FOLDER}-2/x.jsonl", "-home-ada-shop/x.jsonl"])
    def test_an_excluded_file_that_moves_stays_out(self, root, folder, palace_home, to):
        excluding(palace_home, EXCLUDED)
        said = Lines(2, cwd=EXCLUDED)
        other = root / f"-home-ada-{FOLDER}"
        other.mkdir()
        path = write(other, said, *secrets(said))
        with Capturing(palace_home) as captured:
            captured.read(path)
            moved = root / to
            moved.parent.mkdir(exist_ok=True)
            path.rename(moved)
            with moved.open("ab") as stream:
                stream.write(b"".join([said.line("system", cwd=None), *secrets(said)]))
            captured.read(moved)
            captured.read(moved, cold=False)
            assert captured.rows() == []
            assert found(palace_home, SECRET, FOLDER) == []
            assert captured.palace.db.execute("SELECT COUNT(*) FROM files").fetchone() == (1,)

    # The next line of an excluded session may be one that names no folder.
    @pytest.mark.parametrize("cold", [False, True])
    def test_a_line_without_a_folder_behind_an_excluded_one_stays_out(
        self, folder, palace_home, cold
    ):
        excluding(palace_home, EXCLUDED)
        said = Lines(2, cwd=EXCLUDED)
        path = write(folder, said, said.prompt(SECRET))
        said.cwd = None
        lines = [said.queue("enqueue", SECRET), said.attachment(SECRET), said.prompt(SECRET)]
        with Capturing(palace_home) as captured:
            captured.read(path)
            for line in lines:
                write(folder, said, line)
                captured.read(path, cold=cold)
            assert captured.rows() == []
        assert found(palace_home, SECRET, FOLDER) == []

    # R8: a file that stays out is read once, however often it grows.
    def test_an_excluded_file_that_grows_is_read_on_and_is_not_unread(self, folder, palace_home):
        excluding(palace_home, EXCLUDED)
        said = Lines(2, cwd=EXCLUDED)
        with Capturing(palace_home) as captured:
            for _ in range(3):
                line = said.prompt(SECRET)
                path = write(folder, said, line)
                assert [o.bytes_read for o in captured.read(path)] == [len(line)]
            behind = scan(captured.palace, captured.config, Disk(), [str(folder)])
            assert (behind.files, behind.bytes) == ([], 0)

    def test_a_session_whose_exclusion_is_lifted_is_stored_under_its_own_names(
        self, folder, palace_home
    ):
        said = Lines(2, cwd=EXCLUDED)
        path = write(folder, said, said.prompt("one"), said.answer("two"))
        with Capturing(palace_home, exclude=(EXCLUDED,)) as captured:
            captured.read(path)
            assert captured.rows() == []
        with Capturing(palace_home) as captured:
            captured.read(path, reread=True)
            (row,) = captured.rows()
            assert row["session"] == said.session
            assert row["sightings"] == [(path.name, 0)]

    # What is read of it is never its words, but its name would tell as well.
    def test_the_name_of_an_excluded_folder_is_not_kept_for_what_stands_beside_its_sessions(
        self, root, palace_home, tmp_path
    ):
        real = tmp_path / FOLDER
        real.mkdir()
        excluding(palace_home, str(real))
        other = root / str(real).replace("/", "-").replace("_", "-").replace(".", "-")
        other.mkdir()
        said = Lines(2, cwd=str(real))
        path = write(other, said, *secrets(said))
        junk, torn = other / "junk.jsonl", other / "torn.jsonl"
        junk.write_text(f"no transcript: {SECRET}\n")
        torn.write_text('{"type":"user","message":{"content":"' + SECRET)
        with Capturing(palace_home, disk=Failing(path, errno.EACCES, on="open")) as captured:
            for one in (path, junk, torn):
                captured.read(one)
            captured.again()
            for one in (path, junk, torn):
                captured.read(one)
                captured.read(one, reread=True)
            assert captured.rows() == []
        assert found(palace_home, SECRET, FOLDER) == []

    # R5: a stricter setting acts from now on; what was stored before stays until it is forgotten.
    def test_an_exclusion_that_is_set_later_acts_from_then_on(self, folder, palace_home):
        said = Lines(1, cwd=EXCLUDED)
        path = write(folder, said, said.prompt("before"), said.answer("before too"))
        with Capturing(palace_home) as captured:
            captured.read_ok(path)
            before = captured.rows()
        with Capturing(palace_home, exclude=(EXCLUDED,)) as captured:
            write(folder, said, *secrets(said))
            captured.read(path)
            captured.read(path, reread=True)
            assert captured.rows() == before
        assert found(palace_home, SECRET) == []


def test_the_words_that_are_looked_for_would_be_found(folder, palace_home):
    said = Lines(1, cwd=EXCLUDED)
    write(folder, said, *secrets(said))
    assert run("watch", "--once").returncode == 0
    assert_all_found(palace_home, (SECRET, FOLDER))


def assert_all_found(palace_home: Path, words: Iterable[str]) -> None:
    for word in words:
        assert found(palace_home, word)
