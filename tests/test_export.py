"""`mempalace export`: everything the palace knows of the words, one exchange a line."""

import json
import subprocess

import pytest

from mempalace.cli import main
from mempalace.store import connect
from mempalace.store.palace import Palace
from tests.command import COMMAND, mempalace
from tests.palace_builder import PalaceBuilder, session_id

KEYS = [
    "exchange_id", "source", "session_id", "started_at", "ended_at", "cwd", "wing", "room", "hall",
    "memory_type", "importance", "key_sentence", "entities", "human", "assistant", "alternates",
    "says", "tools", "sightings",
]  # fmt: skip


@pytest.fixture
def builder(palace_home):
    with PalaceBuilder(palace_home) as building:
        yield building


def exported(builder: PalaceBuilder, *arguments: str) -> list[dict]:
    builder.file()
    done = mempalace("export", *arguments)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "" or done.stdout.endswith("\n")
    return [json.loads(line) for line in done.stdout.split("\n")[:-1]]


def humans(rows: list[dict]) -> list[str]:
    return [row["human"] for row in rows]


class TestALine:
    def test_it_has_exactly_the_fields_that_were_promised(self, builder):
        session = builder.session(at="2026-01-10T09:00:00.25Z")
        session.prompt("Why?").call("Read", 'Read {"path":"a.py"}').result("def a(): ...")
        session.answer("Because.").says("No, not that").answer("I see.")
        (row,) = exported(builder, "--format", "jsonl")
        assert list(row) == KEYS
        assert row == {
            "exchange_id": row["exchange_id"],
            "source": "claude-code",
            "session_id": session_id(1),
            "started_at": "2026-01-10T09:00:00.250000Z",
            "ended_at": "2026-01-10T09:00:05.250000Z",
            "cwd": "/home/ada/shop",
            "wing": "shop",
            "room": "general",
            "hall": "events",
            "memory_type": None,
            "importance": 1,
            "key_sentence": row["key_sentence"],
            "entities": [],
            "human": "Why?",
            "assistant": ["Because.", "I see."],
            "alternates": [],
            "says": ["No, not that"],
            "tools": [
                {
                    "name": "Read",
                    "call": 'Read {"path":"a.py"}',
                    "result": "def a(): ...",
                    "omitted_chars": 0,
                }
            ],
            "sightings": [{"path": session.path, "offset": 0}],
        }

    @pytest.mark.parametrize(
        "text",
        [
            "nul \0 in the middle",
            "\u2028 and \u2029 and \u0085 and \r\n and \x1b[1m",
            "数据库 корзина 🎉 e\u0301 \U0010ffff \ufeff \uffff",
            '"quotes" \\ back and \t tab',
            "  blanks around  \n\n",
            "long " * 5_000,
        ],
    )
    def test_words_are_verbatim(self, builder, text):
        """R2: character for character, through every window."""
        builder.session().prompt(text).answer(text).call("X", text).result(text).answer(text)
        (row,) = exported(builder)
        assert row["human"] == text
        assert row["assistant"] == [text, text]

    def test_output_is_utf8_whatever_the_locale(self, builder):
        builder.session().prompt("数据库 🎉")
        builder.file()
        env = {"LC_ALL": "C", "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
        done = mempalace("export", env=env)
        assert json.loads(done.stdout)["human"] == "数据库 🎉"

    def test_abandoned_answers_are_alternates(self, builder):
        session = builder.session().prompt("Why?").answer("Wrong.").abandon().answer("Right.")
        del session
        (row,) = exported(builder)
        assert (row["assistant"], row["alternates"]) == (["Right."], ["Wrong."])

    def test_a_session_without_a_folder_of_its_own_has_its_sessions(self, builder):
        session = builder.session(cwd="/home/ada/shop").prompt("one")
        session.cwd = None
        session.prompt("two")
        assert [row["cwd"] for row in exported(builder)] == ["/home/ada/shop"] * 2

    def test_no_time_is_null(self, builder):
        builder.session(at=None).prompt("when?")
        (row,) = exported(builder)
        assert (row["started_at"], row["ended_at"]) == (None, None)

    def test_sightings_are_sorted_and_those_of_the_prompt(self, builder):
        for path, offset in (("/b.jsonl", 700), ("/a.jsonl", 900), ("/a.jsonl", 50)):
            copy = builder.session("s", path=path)
            copy.offset = offset
            copy.prompt("the same")
            copy.messages[-1] = _named(copy.messages[-1], b"k" * 16)
        (row,) = exported(builder)
        assert row["sightings"] == [
            {"path": "/a.jsonl", "offset": 50},
            {"path": "/a.jsonl", "offset": 900},
            {"path": "/b.jsonl", "offset": 700},
        ]


def _named(message, key: bytes):
    from dataclasses import replace

    return replace(message, keys=(key,))


class TestTools:
    def test_results_go_to_their_calls_whatever_the_order(self, builder):
        session = builder.session().prompt("both")
        session.call("A", "A {}", tag="a").call("B", "B {}", tag="b")
        session.result("of b", tag="b").result("of a", tag="a")
        (row,) = exported(builder)
        assert [(t["name"], t["result"]) for t in row["tools"]] == [("A", "of a"), ("B", "of b")]

    def test_a_call_without_a_result_has_none(self, builder):
        builder.session().prompt("one").call("A", "A {}")
        (row,) = exported(builder)
        assert row["tools"] == [{"name": "A", "call": "A {}", "result": None, "omitted_chars": 0}]

    def test_what_was_left_out_of_call_and_result_is_added(self, builder):
        builder.session().prompt("one").call("A", "c" * 2_500).result("r" * 2_100)
        (row,) = exported(builder)
        (tool,) = row["tools"]
        assert tool["omitted_chars"] == 600
        assert tool["call"].startswith("c" * 2_000 + " [")

    def test_a_result_without_a_call_stands_alone(self, builder):
        builder.session().result("of nothing", tag=None)
        (row,) = exported(builder, "--headless")
        assert row["human"] is None
        assert row["tools"] == [
            {"name": None, "call": None, "result": "of nothing", "omitted_chars": 0}
        ]


class TestWhich:
    def test_headless_exchanges_come_only_when_asked_for(self, builder):
        builder.session().answer("an answer")
        builder.session().prompt("a prompt")
        assert humans(exported(builder)) == ["a prompt"]
        rows = exported(builder, "--headless")
        assert sorted(map(str, humans(rows))) == ["None", "a prompt"]

    def test_retired_exchanges_never_come(self, builder):
        """R5: out of search and export."""
        builder.session().prompt("no prompt after all").retract().prompt("a prompt")
        assert humans(exported(builder, "--headless")) == ["a prompt"]

    def test_a_wing_in_any_spelling(self, builder):
        builder.session(cwd="/home/ada/my-app").prompt("mine")
        builder.session(cwd="/home/ada/other").prompt("other")
        assert humans(exported(builder, "--wing", "My-App")) == ["mine"]
        assert mempalace("export", "--wing", "nope").returncode == 3

    def test_a_session_by_its_id_or_its_beginning(self, builder):
        builder.session("aaaaaaaa-1").prompt("first")
        builder.session("aaaaaaaa-2").prompt("second")
        assert humans(exported(builder, "--session", "aaaaaaaa-2")) == ["second"]
        ambiguous = mempalace("export", "--session", "aaaaaaaa")
        assert ambiguous.returncode == 2
        assert "aaaaaaaa-1, aaaaaaaa-2" in ambiguous.stderr
        assert mempalace("export", "--session", "nope").returncode == 3

    def test_an_empty_palace_is_an_empty_export(self, builder):
        assert exported(builder) == []


class TestOrder:
    def test_sessions_come_as_they_began_not_as_they_were_filed(self, builder):
        builder.session("late", at="2026-03-01").prompt("3").prompt("4")
        builder.session("early", at="2026-01-01").prompt("1", at="2026-01-01").prompt(
            "2", at="2026-12-01"
        )
        builder.session("never", at=None).prompt("5")
        assert humans(exported(builder)) == ["1", "2", "3", "4", "5"]

    def test_inside_a_session_they_come_in_file_order_whatever_their_times(self, builder):
        builder.session(at="2026-01-01").prompt("1", at="2026-01-03").prompt("2", at="2026-01-02")
        assert humans(exported(builder)) == ["1", "2"]

    def test_files_of_a_session_come_as_they_began(self, builder):
        builder.session("s", at="2026-02-01", path="/a.jsonl").prompt("3").prompt("4")
        builder.session("s", at="2026-01-01", path="/b.jsonl").prompt("1").prompt(
            "2", at="2026-03-01"
        )
        assert humans(exported(builder)) == ["1", "2", "3", "4"]

    def test_a_rewritten_file_goes_on_behind_what_it_held_before(self, builder):
        builder.session("s").prompt("new, at byte 0").prompt("newer")
        builder.session("s").prompt("old, at byte 0 before").prompt("old")
        builder.file()
        builder.execute(
            "UPDATE exchanges SET content = 1 WHERE n IN (SELECT n FROM exchanges LIMIT 2)"
        )
        rows = humans(exported(builder))
        assert rows == ["old, at byte 0 before", "old", "new, at byte 0", "newer"]


class TestStreaming:
    def test_a_reader_that_leaves_early_is_no_error(self, builder):
        session = builder.session()
        for number in range(300):
            session.prompt(f"{number} " + "x" * 4_000)
        builder.file()
        with subprocess.Popen(
            [*COMMAND, "export"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
        ) as child:
            assert child.stdout is not None
            assert child.stderr is not None
            child.stdout.readline()
            child.stdout.close()
            assert child.stderr.read() == b""
        assert child.returncode == 141

    def test_an_export_sees_one_moment_while_others_write(self, builder):
        """R9: the writer goes on, and the reader does not see half of it."""
        session = builder.session()
        for number in range(300):
            session.prompt(f"{number} " + "x" * 4_000)
        builder.file()
        with subprocess.Popen([*COMMAND, "export"], stdout=subprocess.PIPE) as child:
            assert child.stdout is not None
            first = child.stdout.readline()  # it has begun, and now waits for us
            session.prompt("after the export began")
            builder.file()
            rest = child.stdout.read().splitlines()
        rows = [json.loads(line) for line in (first, *rest)]
        assert child.returncode == 0
        assert len(rows) == 300
        assert humans(exported(builder))[-1] == "after the export began"

    def test_a_writer_that_begins_while_there_is_no_log_changes_nothing(self, palace_home):
        """As the librarian does behind a backfill."""
        with PalaceBuilder(palace_home) as building:
            session = building.session()
            for number in range(300):
                session.prompt(f"{number} " + "x" * 4_000)
        assert not (palace_home / "palace.db-wal").exists()
        with subprocess.Popen([*COMMAND, "export"], stdout=subprocess.PIPE) as child:
            assert child.stdout is not None
            first = child.stdout.readline()
            with Palace.writer(palace_home) as writer:
                writer.set_note("x", "y")
            rest = child.stdout.read().splitlines()
        assert child.returncode == 0
        assert len([first, *rest]) == 300

    def test_a_palace_that_changes_without_a_log_is_told(self, palace_home, monkeypatch, capsys):
        """Opened as unchangeable, because no log could be made: what was printed may be torn."""
        with PalaceBuilder(palace_home) as building:
            building.session().prompt("one")
        uri = connect.read_only_uri
        patch = pytest.MonkeyPatch()
        patch.setattr(connect, "read_only_uri", lambda path: uri(path) + "&immutable=1")

        def write_to_the_palace(_: bytes) -> None:
            patch.undo()
            with Palace.writer(palace_home) as writer:
                writer.set_note("x", "y")

        monkeypatch.setattr("mempalace.cli.export.write", write_to_the_palace)
        assert main(["export"]) == 1
        assert "written to while it was exported" in capsys.readouterr().err
