"""`mempalace search` as people and agents call it."""

import json
import os
import re
import stat

import pytest

from mempalace.store.palace import Palace
from tests.command import mempalace, mempalace_json, on_a_terminal
from tests.palace_builder import PalaceBuilder, session_id


@pytest.fixture
def palace(palace_home):
    with PalaceBuilder(palace_home) as building:
        shop = building.session(cwd="/home/ada/shop", at="2026-01-10T09:00:00Z")
        shop.prompt("Why is the basket empty?\nIt was full.").answer("The cookie expired.")
        shop.call("Read", 'Read {"path":"basket.py"}').result("def basket(): ...")
        building.session(cwd="/home/ada/my-app", at="2026-02-01T10:00:00Z").prompt(
            "basket of \x1b[2Jred apples 数据库"
        )
    return palace_home


class TestJson:
    def test_it_has_exactly_the_fields_that_were_promised(self, palace):
        answer = mempalace_json("search", "cookie")
        assert list(answer) == ["query", "degraded", "results"]
        assert answer["query"] == "cookie"
        assert answer["degraded"] == ["keywords only: vectors are off (index.vectors)"]
        (hit,) = answer["results"]
        exchange = hit["exchange_id"]
        assert hit == {
            "drawer_id": f"{exchange}-talk-0",
            "exchange_id": exchange,
            "session_id": session_id(1),
            "wing": "shop",
            "room": "technical",
            "source": "claude-code",
            "path": f"/home/ada/.claude/projects/p/{session_id(1)}.jsonl",
            "said_at": "2026-01-10T09:00:00Z",
            "score": hit["score"],
            "matched_via": ["keyword"],
            "text": "Why is the basket empty?\nIt was full.\n\nThe cookie expired.",
        }
        assert 0 < hit["score"] <= 1
        assert re.fullmatch("[0-9a-f]{32}", exchange)

    def test_words_need_no_quotes(self, palace):
        together = mempalace_json("search", "cookie expired basket")
        assert mempalace_json("search", "cookie", "expired", "basket") == together

    def test_filters_reach_the_search(self, palace):
        def found(*filters: str) -> list[str]:
            return [hit["wing"] for hit in mempalace_json("search", "basket", *filters)["results"]]

        assert sorted(found()) == ["my_app", "shop"]
        assert found("--wing", "my-app") == ["my_app"]
        assert found("--since", "2026-01-15") == ["my_app"]
        assert found("--until", "2026-01-15") == ["shop"]
        assert found("--limit", "1") != found()
        assert found("--room", "technical", "--source", "claude-code", "--wing", "shop") == ["shop"]

    def test_tools_are_a_kind(self, palace):
        (hit,) = mempalace_json("search", "basket.py", "--kind", "tools")["results"]
        assert hit["drawer_id"].endswith("-tools-0")

    def test_nothing_found_is_an_empty_list(self, palace):
        assert mempalace_json("search", "zzzzzz")["results"] == []

    def test_output_is_utf8_whatever_the_locale(self, palace):
        done = mempalace(
            "search", "apples", "--json",
            env={"LC_ALL": "C", "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"},
        )  # fmt: skip
        assert "数据库" in json.loads(done.stdout)["results"][0]["text"]
        assert "数据库" in done.stdout

    def test_an_argument_that_is_no_unicode_is_answered(self, palace):
        done = mempalace("search", "cookie", os.fsdecode(b"\xff\xfe"), "--json")
        assert done.returncode == 0, done.stderr
        assert len(json.loads(done.stdout)["results"]) == 1


class TestForPeople:
    def test_a_hit_says_where_when_what_and_how_to_go_back(self, palace):
        done = mempalace("search", "cookie")
        assert done.returncode == 0
        exchange = mempalace_json("search", "cookie")["results"][0]["exchange_id"]
        for part in (
            "shop/technical",
            "2026-01-10 09:00 UTC",
            f"claude --resume {session_id(1)}",
            "/home/ada/shop",
            f"mempalace show {exchange[:8]}\n",
            "The **cookie** expired.",
            "note: keywords only: vectors are off (index.vectors)",
        ):
            assert part in done.stdout

    def test_the_command_it_names_prints_the_exchange(self, palace):
        shown = mempalace("search", "cookie").stdout
        name = re.search(r"mempalace show (\S+)", shown)
        assert name is not None
        assert "The cookie expired." in mempalace("show", name[1]).stdout

    def test_other_sources_cannot_be_resumed(self, palace_home):
        with PalaceBuilder(palace_home) as building:
            building.session(source="codex").prompt("the basket")
        assert "--resume" not in mempalace("search", "basket").stdout

    def test_nothing_found_exits_0_with_a_hint(self, palace):
        done = mempalace("search", "zzzzzz", "--wing", "shop")
        assert done.returncode == 0
        assert "Nothing found for: zzzzzz\nhint: " in done.stdout
        assert "without the filters" in done.stdout

    @pytest.mark.parametrize("words", [[], [""], ["?!"]])
    def test_no_word_is_wrong_usage(self, palace, words):
        done = mempalace("search", *words)
        assert (done.returncode, done.stdout) == (2, "")
        assert "hint: name what to look for" in done.stderr

    def test_an_unknown_wing_exits_3_and_names_the_known(self, palace):
        done = mempalace("search", "basket", "--wing", "nope")
        assert done.returncode == 3
        assert done.stderr == (
            "error: there is no wing `nope` yet\nhint: known wings: my_app, shop\n"
        )

    def test_a_bad_time_exits_2_and_names_the_forms(self, palace):
        done = mempalace("search", "basket", "--since", "yesterday")
        assert done.returncode == 2
        assert "7d" in done.stderr


class TestOnATerminal:
    def test_words_are_bold(self, palace):
        assert "The \x1b[1mcookie\x1b[0m expired." in on_a_terminal("search", "cookie")

    @pytest.mark.parametrize("env", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
    def test_no_color_is_honoured(self, palace, env):
        shown = on_a_terminal("search", "cookie", env=env)
        assert "The **cookie** expired." in shown
        assert "\x1b" not in shown

    def test_a_transcript_cannot_command_the_terminal(self, palace):
        shown = on_a_terminal("search", "apples")
        assert "\x1b[2J" not in shown
        assert "␛[2Jred" in shown

    def test_into_a_pipe_it_goes_verbatim(self, palace):
        assert "\x1b[2Jred" in mempalace("search", "apples").stdout


class TestReading:
    """R9: readers need no permission to write and wait for nobody."""

    @staticmethod
    def close_to_writing(home) -> None:
        for path in home.iterdir():
            path.chmod(0o400)
        home.chmod(0o500)

    @pytest.fixture
    def open_again(self, palace):
        yield
        palace.chmod(0o700)

    def test_a_read_only_home_answers(self, palace, open_again):
        self.close_to_writing(palace)
        assert len(mempalace_json("search", "cookie")["results"]) == 1
        assert {path.name for path in palace.iterdir()} == {"palace.db"}

    def test_a_read_only_home_answers_while_a_writer_has_the_log(self, palace, open_again):
        with Palace.writer(palace) as writer:
            writer.set_note("x", "y")
            self.close_to_writing(palace)
            assert len(mempalace_json("search", "cookie")["results"]) == 1
        assert stat.S_IMODE((palace / "palace.db").stat().st_mode) == 0o400

    def test_where_the_log_cannot_be_opened_the_last_checkpoint_answers(self, palace):
        """As in a sandbox; a folder in place of the shared memory stops root as well."""
        (palace / "palace.db-wal").write_bytes(b"\0" * 32)
        (palace / "palace.db-shm").mkdir()
        assert len(mempalace_json("search", "cookie")["results"]) == 1

    def test_a_locked_palace_answers_at_once(self, palace):
        with Palace.writer(palace) as writer, writer.transaction() as db:
            db.execute("DELETE FROM exchanges WHERE 0")
            assert len(mempalace_json("search", "cookie")["results"]) == 1


class TestNoPalace:
    """Every reading command says what is missing and what to do; none creates anything."""

    COMMANDS = (
        ["search", "x"], ["show", "abcdef12"], ["sessions"], ["export"], ["status"], ["wake-up"],
    )  # fmt: skip

    @pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
    def test_none_there_exits_3(self, palace_home, command):
        done = mempalace(*command)
        assert (done.returncode, done.stdout) == (3, "")
        assert f"there is no palace in {palace_home} yet" in done.stderr
        assert "mempalace backfill" in done.stderr
        assert not palace_home.exists()

    @pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
    def test_an_empty_file_is_no_palace(self, palace_home, command):
        palace_home.mkdir()
        (palace_home / "palace.db").touch()
        assert mempalace(*command).returncode == 3
        assert (palace_home / "palace.db").stat().st_size == 0

    @pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
    def test_a_damaged_one_is_named_and_left_alone(self, palace_home, command):
        palace_home.mkdir()
        damaged = palace_home / "palace.db"
        damaged.write_bytes(b"no database at all " * 1_000)
        done = mempalace(*command)
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr.startswith(f"error: {damaged} is damaged")
        assert "hint: " in done.stderr
        assert damaged.read_bytes() == b"no database at all " * 1_000

    @pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
    def test_one_with_a_torn_page_is_named(self, palace, command):
        database = palace / "palace.db"
        data = bytearray(database.read_bytes())
        data[4_096:] = b"\xa5" * (len(data) - 4_096)
        database.write_bytes(data)
        done = mempalace(*command)
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr.startswith(f"error: {database} is damaged")

    @pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
    def test_one_of_a_newer_version_says_to_update(self, palace, command):
        with Palace.writer(palace) as writer:
            writer.db.execute("PRAGMA user_version = 99")
        done = mempalace(*command)
        assert (done.returncode, done.stdout) == (1, "")
        assert "written by a newer MemPalace" in done.stderr
        assert "update this installation" in done.stderr
