"""What filing does with words that were forgotten, and with what goes on where they ended (R4)."""

from __future__ import annotations

from pathlib import Path

import pytest

from mempalace.filing import forget as forgetting
from tests.capturing import Capturing, lines, write
from tests.palace_builder import PalaceBuilder
from tests.transcripts.builder import Session

FORK = "5f0c7a60-0000-4000-8000-0000000000b1"


@pytest.fixture
def palace(tmp_path: Path):
    with Capturing(tmp_path / "palace") as capturing:
        yield capturing
        capturing.check()


def exchange_with(palace: Capturing, words: str) -> dict:
    return next(
        row for row in palace.rows() if any(text == words for _, _, text, _, _ in row["records"])
    )


def forget(palace: Capturing, words: str) -> None:
    """Forget the exchange in which these words stand."""
    _forget(palace, forgetting.these([exchange_with(palace, words)["id"]]))


def forget_session(palace: Capturing, session: str) -> None:
    _forget(palace, forgetting.whole_session("claude-code", session), whole=True)


def _forget(palace: Capturing, choose: forgetting.Choice, *, whole: bool = False) -> None:
    for _ in forgetting.forget(palace.palace, choose, whole=whole):
        pass


def texts(palace: Capturing) -> list[str]:
    return [text for row in palace.rows() for _, _, text, _, _ in row["records"]]


def one(palace: Capturing, statement: str) -> int:
    return int(palace.palace.db.execute(statement).fetchone()[0])


class Growing:
    """A file that is read as it grows."""

    def __init__(self, session: Session, folder: Path, palace: Capturing) -> None:
        self.session = session
        self._path = folder / f"{session.session}.jsonl"
        self._palace = palace

    def read(self, *, cold: bool = True) -> None:
        self.session.write(self._path.parent)
        self._palace.read(self._path, cold=cold)


@pytest.fixture
def growing(palace: Capturing, tmp_path: Path) -> Growing:
    return Growing(Session(), tmp_path, palace)


class TestWhatFollows:
    """An exchange goes with all that its answer still adds to it."""

    def test_answers_to_a_forgotten_open_prompt_are_left_out_and_counted(self, palace, growing):
        growing.session.user("the key is 123").text("I see.")
        growing.read()
        forget(palace, "the key is 123")
        growing.session.text("Noted: 123.").call("t", command="echo 123").result("t", "123")
        growing.session.result("t", "123").user("now the tests").text("Green.")
        growing.read()
        assert texts(palace) == ["now the tests", "Green."]
        assert palace.rows()[0]["headless"] == 0
        counted = "SELECT count FROM tallies WHERE rule = 'forgotten'"
        assert one(palace, counted) >= 3

    def test_also_where_the_process_ends_between_any_two_lines(self, palace, growing):
        growing.session.user("the key is 123")
        growing.read()
        forget(palace, "the key is 123")
        for number in range(3):
            palace.again()
            growing.session.text(f"Part {number} of the answer.")
            growing.read(cold=False)
        assert texts(palace) == []

    def test_a_result_follows_its_call_even_behind_another_prompt(self, palace, growing):
        growing.session.user("the key is 123").call("t", command="echo 123")
        growing.read()
        forget(palace, "the key is 123")
        growing.session.user("meanwhile").result("t", "123").text("Done.")
        growing.read()
        assert texts(palace) == ["meanwhile", "Done."]

    def test_the_result_of_a_stored_call_stays_with_it(self, palace, growing):
        growing.session.user("first").call("t", command="make").user("the key is 123")
        growing.read()
        forget(palace, "the key is 123")
        growing.session.result("t", "made").text("Noted: 123.")
        growing.read()
        assert texts(palace) == ["first", 'Bash {"command":"make"}', "made"]

    def test_an_answer_that_grows_is_still_forgotten(self, palace, growing):
        growing.session.user("the key is 123").text("The k", message="m", parentUuid="p")
        growing.read()
        forget(palace, "the key is 123")
        growing.session.text("The key is 123.", message="m", parentUuid="p")
        growing.read()
        assert texts(palace) == []

    def test_a_forgotten_headless_exchange_is_not_continued(self, palace, growing):
        growing.session.text("The end of an answer.")
        growing.read()
        forget(palace, "The end of an answer.")
        growing.session.text("And its very end.").user("next").text("Yes.")
        growing.read()
        assert texts(palace) == ["next", "Yes."]

    def test_a_forgotten_subagent_task_is_not_continued(self, tmp_path):
        with Capturing(tmp_path / "palace", subagents=True) as palace:
            growing = Growing(Session(), tmp_path, palace)
            growing.session.user("go").user("search 123", isSidechain=True)
            growing.session.text("Found 1.", isSidechain=True)
            growing.read()
            forget(palace, "search 123")
            growing.session.text("Found 123.", isSidechain=True).text("All is found.")
            growing.session.user("search more", isSidechain=True).text("None.", isSidechain=True)
            growing.read()
            assert sorted(texts(palace)) == ["All is found.", "None.", "go", "search more"]
            palace.check()

    def test_a_file_that_begins_with_forgotten_answers_goes_on_with_them(self, palace, tmp_path):
        session = Session().text("The end of an answer.")
        palace.read_ok(session.write(tmp_path))
        forget(palace, "The end of an answer.")
        session.text("And its very end.").user("next").text("Yes.")
        copy = tmp_path / "copy.jsonl"  # read from its first line, with no state from before
        copy.write_bytes(session.bytes())
        palace.read_ok(copy)
        assert texts(palace) == ["next", "Yes."]

    def test_a_copy_of_a_forgotten_task_goes_on_with_it(self, tmp_path):
        with Capturing(tmp_path / "palace", subagents=True) as palace:
            session = Session().user("go").user("search 123", isSidechain=True)
            palace.read_ok(session.write(tmp_path))
            forget(palace, "search 123")
            session.text("Found 123.", isSidechain=True).text("All is found.")
            copy = tmp_path / "copy.jsonl"
            copy.write_bytes(session.bytes())
            palace.read_ok(copy)
            assert texts(palace) == ["go", "All is found."]
            palace.check()

    def test_a_forgotten_prompt_that_was_taken_back_takes_no_answer_with_it(self, tmp_path):
        with PalaceBuilder(tmp_path / "palace") as builder:
            session = builder.session()
            session.prompt("first").answer("Yes.").prompt("the key is 123")
            builder.file()
            key = builder.palace.db.execute("SELECT MAX(n), id FROM exchanges").fetchone()[1]
            for _ in forgetting.forget(builder.palace, forgetting.these([key]), whole=False):
                pass
            session.retract().answer("More on the first.")
            builder.file()
            kept = builder.palace.db.execute("SELECT text FROM drawers").fetchall()
            assert kept == [("first\n\nYes.\n\nMore on the first.",)]

    def test_the_next_prompt_is_a_prompt_as_ever(self, palace, growing):
        growing.session.user("the key is 123")
        growing.read()
        forget(palace, "the key is 123")
        growing.session.user("the key is 123").text("You said so.")  # said again, at another time
        growing.read()
        assert palace.prompts() == ["the key is 123"]


class TestOtherReadings:
    """R3: whatever name a reading gives to a forgotten record, it is that record."""

    def read_and_forget(self, palace: Capturing, folder: Path) -> Session:
        session = Session().user("keep").text("Kept.").user("the key is 123").text("Noted: 123.")
        palace.read_ok(session.write(folder))
        forget(palace, "the key is 123")
        return session

    @pytest.mark.parametrize("anew", [False, True], ids=["fork", "resume"])
    def test_a_fork_or_a_resume_brings_nothing_back(self, palace, tmp_path, anew):
        session = self.read_and_forget(palace, tmp_path)
        copy = session.copied(session=FORK, anew=anew).text("It was 123.").user("new").text("Yes.")
        palace.read_ok(copy.write(tmp_path))
        assert texts(palace) == ["keep", "Kept.", "new", "Yes."]

    def test_names_learnt_after_forgetting_keep_it_out_too(self, palace, tmp_path):
        """Queued words are forgotten by the name of their `enqueue`; a fork has only the name of
        the line that delivered them."""
        session = Session().user("keep").text("I begin.").queue("enqueue", "the key is 123")
        growing = Growing(session, tmp_path, palace)
        growing.read()
        forget(palace, "the key is 123")
        session.queue("dequeue").user("the key is 123").text("Noted: 123.")
        growing.read()
        palace.read_ok(session.copied(session=FORK).write(tmp_path))
        assert texts(palace) == ["keep", "I begin."]

    def test_a_prompt_stored_again_under_a_new_name_goes_when_a_line_tells(self, palace, tmp_path):
        original = Session().user("keep").text("I begin.").queue("enqueue", "the key is 123")
        original.attachment("the key is 123").text("Noted: 123.")
        palace.read_ok(original.copied(session=FORK).write(tmp_path))  # without the `enqueue`
        forget(palace, "the key is 123")
        path = original.write(tmp_path)
        every = lines(path)
        write(path, every[:3])
        palace.read(path)
        assert "the key is 123" in palace.prompts()  # nothing tells yet that it is the same
        write(path, every)
        palace.read(path)
        assert texts(palace) == ["keep", "I begin."]

    def test_a_line_that_says_forgotten_words_otherwise_is_forgotten_too(self, tmp_path):
        """A paste in full, say: the format takes the short form back in the same line."""
        with PalaceBuilder(tmp_path / "palace") as builder:
            session = builder.session()
            session.prompt("keep").prompt("see [Pasted text #1 +2 lines]")
            builder.file()
            key = builder.palace.db.execute("SELECT MAX(n), id FROM exchanges").fetchone()[1]
            for _ in forgetting.forget(builder.palace, forgetting.these([key]), whole=False):
                pass
            session.retract()
            session.offset -= 100
            session.prompt("see a\n123\nc").answer("Seen: 123.").prompt("new").answer("Yes.")
            builder.file()
            kept = builder.palace.db.execute("SELECT text FROM drawers ORDER BY n").fetchall()
            assert kept == [("keep",), ("new\n\nYes.",)]

    def test_reading_a_file_once_more_brings_nothing_back(self, palace, tmp_path):
        session = self.read_and_forget(palace, tmp_path)
        copy = tmp_path / "copy.jsonl"
        copy.write_bytes(session.bytes())
        palace.read_ok(copy)
        (tmp_path / f"{session.session}.jsonl").unlink()  # another inode: read from its beginning
        palace.read_ok(session.text("It was 123.").write(tmp_path))
        assert texts(palace) == ["keep", "Kept."]


class TestWaiting:
    """A text that waits to be delivered is no less forgotten."""

    def test_a_copy_of_a_forgotten_prompt_waits_no_longer(self, palace, growing):
        growing.session.user("keep").queue("enqueue", "the key is 123")
        growing.read()
        assert one(palace, "SELECT COUNT(*) FROM waiting") == 1
        forget(palace, "the key is 123")
        assert one(palace, "SELECT COUNT(*) FROM waiting") == 0
        growing.read()
        assert palace.prompts() == ["keep"]

    def test_the_same_words_said_twice_wait_on(self, palace, growing):
        growing.session.user("keep").queue("enqueue", "yes")
        growing.read()
        growing.session.queue("enqueue", "yes")
        growing.read(cold=False)
        forget(palace, "yes")
        assert one(palace, "SELECT COUNT(*) FROM waiting") == 1
        growing.read()
        assert palace.prompts() == ["keep", "yes"]

    def test_what_was_typed_in_a_forgotten_session_is_never_delivered(self, palace, growing):
        growing.session.user("go").text("I begin.").queue("enqueue", "the key is 123")
        growing.read(cold=False)
        forget_session(palace, growing.session.session)
        growing.session.queue("dequeue").user("the key is 123").text("Noted: 123.")
        growing.session.user("new").text("Yes.")
        growing.read()
        assert texts(palace) == ["new", "Yes."]
        assert one(palace, "SELECT COUNT(*) FROM waiting") == 0

    def test_who_reads_meanwhile_does_not_write_it_back(self, palace, growing, monkeypatch):
        growing.session.user("keep").queue("enqueue", "the key is 123")
        growing.read()
        growing.session.queue("enqueue", "and this")
        store = palace.capture._store

        def forget_first(*arguments):
            monkeypatch.setattr(palace.capture, "_store", store)
            forget(palace, "the key is 123")
            return store(*arguments)

        monkeypatch.setattr(palace.capture, "_store", forget_first)
        growing.read(cold=False)
        waiting = palace.palace.db.execute("SELECT text FROM waiting").fetchall()
        assert waiting == [("and this",)]


class TestRows:
    """What goes, and what stays beside it."""

    def test_no_row_names_what_was_forgotten(self, palace, tmp_path):
        session = Session().user("keep").text("K.").user("go " * 900).call("t", command="x")
        palace.read_ok(session.result("t", "y" * 3_000).text("Done. " * 300).write(tmp_path))
        row = exchange_with(palace, "go " * 900)
        db = palace.palace.db
        n = db.execute("SELECT n FROM exchanges WHERE id = ?", (row["id"],)).fetchone()[0]
        db.execute("INSERT INTO closets (exchange, position, lines) VALUES (?, 0, 'go|')", (n,))
        talk = [f"{row['id']}-talk-{p}" for s, p, _, _ in row["drawers"] if s == 0]
        forget(palace, "go " * 900)
        for table in ("drawers", "closets", "records"):
            assert one(palace, f"SELECT COUNT(*) FROM {table} WHERE exchange = {n}") == 0
        left = one(palace, "SELECT COUNT(*) FROM records")
        assert left == one(palace, "SELECT COUNT(DISTINCT record) FROM keys")
        assert one(palace, "SELECT COUNT(*) FROM sightings s LEFT JOIN records r ON r.n = s.record"
                   " WHERE r.n IS NULL") == 0  # fmt: skip
        posted = db.execute("SELECT item, operation, md5 FROM outbox WHERE operation = 'delete'")
        expected = [(item, "delete", b"") for item in [*talk, f"{row['id']}-closet-0"]]
        assert sorted(posted.fetchall()) == sorted(expected)
        assert one(palace, "SELECT COUNT(*) FROM outbox WHERE operation = 'embed'") == 1  # keep

    def test_bytes_stay_accounted_for(self, palace, tmp_path):
        path = Session().user("the key is 123").text("Noted.").write(tmp_path)
        palace.read_ok(path)
        forget_session(palace, path.stem)
        assert one(palace, "SELECT offset FROM files") == path.stat().st_size
        for table in ("sessions", "wings", "folders", "exchanges"):
            assert one(palace, f"SELECT COUNT(*) FROM {table}") == 0

    def test_a_session_with_other_words_keeps_its_row_and_its_beginning(self, palace, tmp_path):
        session = Session().user("the key is 123").text("Noted.").user("keep").text("Kept.")
        palace.read_ok(session.write(tmp_path))
        forget(palace, "the key is 123")
        began = one(palace, "SELECT started_at FROM sessions")
        assert began == exchange_with(palace, "keep")["started"]
        assert one(palace, "SELECT COUNT(*) FROM wings") == 1

    def test_retired_and_headless_exchanges_go_with_their_session(self, palace, growing):
        growing.session.text("The end of an answer.").user("go").queue("enqueue", "half a thou")
        growing.read()
        growing.session.queue("popAll", "half a thou").text("Done.")
        growing.read()
        kinds = {(row["headless"], bool(row["retired"])) for row in palace.rows()}
        assert kinds == {(1, False), (0, False), (0, True)}
        forget_session(palace, growing.session.session)
        assert palace.rows() == []

    def test_a_run_that_ended_early_is_finished_by_the_next(self, palace, tmp_path, monkeypatch):
        monkeypatch.setattr("mempalace.store.forget._AT_ONCE", 2)
        session = Session()
        for number in range(7):
            session.user(f"prompt {number}").text("Yes.")
        palace.read_ok(session.write(tmp_path))
        choose = forgetting.whole_session("claude-code", session.session)
        next(forgetting.forget(palace.palace, choose, whole=True))  # and no further
        assert len(palace.rows()) == 5
        palace.check()
        palace.again()
        palace.read_ok(session.user("prompt 7").write(tmp_path))
        assert len(palace.rows()) == 6
        forget_session(palace, session.session)
        assert palace.rows() == []


def test_a_forgotten_paste_does_not_come_back_in_full(tmp_path):
    """R4: the line that has a queued paste in full is the prompt that was forgotten."""
    session = Session().user("start").text("working")
    session.queue("enqueue", "see [Pasted text #1 +2 lines]")
    path = session.write(tmp_path)
    with Capturing(tmp_path / "palace") as palace:
        palace.read_ok(path)
        forget(palace, "see [Pasted text #1 +2 lines]")
        session.queue("dequeue").user("see one\ntwo\nthree").text("done").write(tmp_path)
        palace.read_ok(path)
        assert palace.prompts() == ["start"]
