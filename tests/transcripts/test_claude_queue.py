"""Words typed while the agent works: one prompt, however many lines carry it.

docs/formats/claude-code.md, "Words typed while the agent works"; R1, R3.
"""

import itertools

import pytest

from mempalace.model import Role
from mempalace.transcripts.claude_queue import Queue
from mempalace.transcripts.claude_text import Words
from tests.capturing import Capturing
from tests.transcripts.builder import Session

WORDS = "and keep the old API"
OTHER = "then run the tests"
TASK = "<task-notification>\n<task-id>b1</task-id>\n</task-notification>"


def working() -> Session:
    """A session in the middle of a turn."""
    return Session().user("refactor it").text("I begin.").call("t1")


CARRIERS = {
    "enqueue": lambda s: s.queue("enqueue", WORDS),
    "dequeue": lambda s: s.queue("dequeue"),
    "remove": lambda s: s.queue("remove"),
    "remove with words": lambda s: s.queue("remove", WORDS, reason="absorbed_mid_turn"),
    "attachment": lambda s: s.attachment(WORDS, origin={"kind": "human"}),
    "user": lambda s: s.user(WORDS),
    "inline": lambda s: s.result(f"t{len(s.records)}", "ok", WORDS),
}
DELIVERED = [
    ("enqueue", "dequeue", "user"),
    ("dequeue", "user"),
    ("enqueue", "user"),
    ("enqueue", "user", "dequeue"),
    ("enqueue", "remove"),
    ("enqueue", "remove with words"),
    ("remove with words",),
    ("attachment",),
    ("inline",),
    ("user",),
    ("enqueue", "remove", "inline"),
    ("enqueue", "inline", "remove"),
    ("enqueue", "attachment", "remove"),
    ("enqueue", "attachment", "remove with words"),
    ("enqueue", "remove with words", "attachment"),
    ("enqueue", "remove", "attachment"),
    ("remove with words", "attachment"),
    ("attachment", "remove with words"),
    ("enqueue", "attachment"),
    ("enqueue", "inline"),
    ("enqueue", "dequeue", "attachment"),
    ("enqueue", "dequeue", "inline"),
    ("enqueue", "remove", "user"),
    ("enqueue", "remove", "attachment", "inline"),
    ("enqueue", "inline", "remove with words", "attachment"),
    ("enqueue", "dequeue"),
    ("enqueue",),
]


class TestCarriers:
    @pytest.mark.parametrize("order", DELIVERED, ids=" ".join)
    def test_whatever_lines_carry_them_the_words_are_one_prompt(self, order):
        session = working()
        for carrier in order:
            CARRIERS[carrier](session)
        session.text("Done.")
        assert session.read().prompts == ["refactor it", WORDS]

    @pytest.mark.parametrize(
        "order", [one for one in DELIVERED if one != ("enqueue",)], ids=" ".join
    )
    def test_they_are_a_prompt_by_the_next_answer_though_the_file_goes_on(self, order):
        session = working()
        for carrier in order:
            CARRIERS[carrier](session)
        session.text("Done.")
        messages = session.read(cold=False).messages
        last = max(n for n, m in enumerate(messages) if m.role is Role.ASSISTANT)
        assert WORDS in [m.text for m in messages[:last] if m.role is Role.HUMAN]

    @pytest.mark.parametrize("order", DELIVERED, ids=" ".join)
    def test_the_same_words_once_more_are_a_second_prompt(self, order):
        session = working()
        for _ in range(2):
            for carrier in order:
                CARRIERS[carrier](session)
            session.text("Done.")
        assert session.read().prompts == ["refactor it", WORDS, WORDS]

    @pytest.mark.parametrize(
        "order",
        [
            ("remove with words", "enqueue"),
            ("attachment", "enqueue"),
        ],
    )
    def test_what_is_queued_after_its_words_were_delivered_is_new(self, order):
        session = working()
        for carrier in order:
            CARRIERS[carrier](session)
        assert session.read().prompts == ["refactor it", WORDS, WORDS]

    def test_every_order_of_two_prompts_in_the_queue_gives_each_once(self):
        ends = ["remove", "remove with words", "attachment"]
        for first, second in itertools.product(ends, repeat=2):
            session = working().queue("enqueue", WORDS).queue("enqueue", OTHER)
            for end, words in ((first, WORDS), (second, OTHER)):
                if end == "attachment":
                    session.attachment(words)
                session.queue("remove", None if end == "remove" else words)
            assert session.text("Done.").read().prompts == ["refactor it", WORDS, OTHER]

    def test_white_space_around_the_words_does_not_make_two_of_them(self):
        session = working().queue("enqueue", f"{WORDS}\n").queue("remove", WORDS)
        assert session.attachment(f" {WORDS}").read().prompts == ["refactor it", f"{WORDS}\n"]

    def test_the_prompt_has_the_time_and_place_of_its_first_line(self):
        session = working().queue("enqueue", WORDS).queue("remove").attachment(WORDS)
        (prompt,) = (m for m in session.read().of(Role.HUMAN) if m.text == WORDS)
        assert prompt.offset == 3

    def test_the_first_prompt_of_a_session_may_be_queued(self):
        session = Session().queue("enqueue", "hello").queue("dequeue").user("hello").text("Hi")
        assert session.read().kinds == [("typed", "hello")]

    def test_words_that_were_queued_are_steering_and_so_are_those_beside_a_result(self):
        session = working().queue("enqueue", WORDS).queue("remove").result("t1", "ok", OTHER)
        assert session.read().kinds[1:] == [("steer", WORDS), ("steer", OTHER)]

    def test_a_mirror_after_the_next_answer_is_a_prompt_of_its_own(self):
        session = working().queue("enqueue", WORDS).queue("remove").text("Done.").user(WORDS)
        assert session.read().prompts == ["refactor it", WORDS, WORDS]

    def test_a_tool_call_alone_is_no_answer_that_ends_the_wait(self):
        session = working().queue("enqueue", WORDS).queue("remove").call("t2").attachment(WORDS)
        assert session.read().prompts == ["refactor it", WORDS]

    def test_two_lines_of_one_kind_are_two_prompts(self):
        session = working().attachment("yes").attachment("yes").text("Done.")
        assert session.read().prompts == ["refactor it", "yes", "yes"]

    def test_a_remove_does_not_mean_words_that_a_user_line_has_carried(self):
        session = working().queue("enqueue", WORDS).queue("enqueue", OTHER).user(WORDS)
        assert session.queue("remove").read(cold=False).prompts == ["refactor it", WORDS, OTHER]

    def test_a_copy_under_another_uuid_is_known_by_the_line_it_came_from(self):
        session = working().attachment("yes", source_uuid="q1").text("Ok.")
        session.attachment("yes", source_uuid="q1").attachment("yes", source_uuid="q2")
        assert session.read().prompts == ["refactor it", "yes", "yes"]

    def test_words_typed_again_after_an_interrupt_are_new(self):
        session = working().queue("enqueue", WORDS).queue("remove").interrupt().user(WORDS)
        assert session.read().prompts == ["refactor it", WORDS, WORDS]

    def test_pictures_in_the_queue_are_a_prompt(self):
        picture = {"type": "image", "source": {"type": "base64", "data": "aGk="}}
        session = (
            working()
            .attachment([picture])
            .text("Seen.")
            .attachment([picture, {"type": "text", "text": "[Image #1] this one"}])
        )
        assert session.read().kinds[1:] == [
            ("image", "[image]"), ("steer", "[Image #1] this one"),
        ]  # fmt: skip


class TestTwoHonestEqualTexts:
    """docs/formats/claude-code.md: "The same words twice in the queue are two prompts"."""

    @pytest.mark.parametrize("end", ["remove", "remove with words"])
    def test_two_removed_are_two(self, end):
        session = working().queue("enqueue", WORDS).queue("enqueue", WORDS)
        CARRIERS[end](CARRIERS[end](session))
        assert session.text("Done.").read().prompts == ["refactor it", WORDS, WORDS]

    def test_two_with_all_their_mirrors_are_two(self):
        session = working()
        for _ in range(2):
            session.queue("enqueue", WORDS)
        for _ in range(2):
            session.queue("remove", WORDS).attachment(WORDS)
        assert session.text("Done.").read().prompts == ["refactor it", WORDS, WORDS]

    def test_two_run_one_after_the_other_are_two(self):
        session = working().queue("enqueue", WORDS).queue("enqueue", WORDS)
        for _ in range(2):
            session.queue("dequeue").user(WORDS).text("Done.")
        assert session.read().prompts == ["refactor it", WORDS, WORDS]

    def test_one_taken_back_leaves_the_one_delivered(self):
        session = working().queue("enqueue", WORDS).queue("remove").queue("enqueue", WORDS)
        assert session.queue("popAll", WORDS).text("Ok").read().prompts == ["refactor it", WORDS]


class TestTakenBack:
    """docs/formats/claude-code.md: "`popAll`: taken back into the editor"."""

    def test_words_taken_back_are_no_prompt(self):
        session = working().queue("enqueue", WORDS).queue("enqueue", OTHER).queue("popAll", WORDS)
        assert session.text("Done.").read().prompts == ["refactor it"]

    def test_what_is_sent_instead_is_one(self):
        session = working().queue("enqueue", WORDS).queue("popAll", WORDS).queue("enqueue", OTHER)
        assert session.queue("remove").text("Done.").read().prompts == ["refactor it", OTHER]

    def test_one_stored_meanwhile_is_named_to_be_retired(self):
        session = working().queue("enqueue", WORDS)
        (stored,) = (m for m in session.read().messages if m.text == WORDS)
        after = session.queue("popAll", WORDS).read().messages
        assert [m.keys for m in after if m.role is Role.RETRACTED] == [stored.keys]

    def test_words_that_were_run_already_are_not_taken_back(self):
        session = working().queue("enqueue", WORDS).queue("dequeue").queue("popAll", "")
        assert session.text("Done.").read().prompts == ["refactor it", WORDS]


class TestNoiseInTheQueue:
    """docs/formats/claude-code.md: "Noise is queued like prompts and keeps its turn"."""

    def test_a_notification_is_no_prompt_and_keeps_its_turn(self):
        session = working().queue("enqueue", TASK).queue("enqueue", WORDS)
        session.queue("remove").queue("remove").text("Done.")
        assert session.read().prompts == ["refactor it", WORDS]
        session = working().queue("enqueue", TASK).queue("enqueue", WORDS).queue("dequeue")
        session.user(TASK, origin={"kind": "task-notification"}).queue("dequeue").user(WORDS)
        assert session.text("Done.").read().prompts == ["refactor it", WORDS]

    @pytest.mark.parametrize(
        "fields",
        [
            {"mode": "task-notification"},
            {"origin": {"kind": "peer"}},
            {"isMeta": True},
        ],
    )
    def test_an_attachment_that_no_human_wrote_is_no_prompt_nor_is_what_was_queued(self, fields):
        for order in ("aeR", "eaR", "eRa", "Ra", "eDa"):
            session = working()
            for letter in order:
                if letter == "a":
                    session.attachment("from a peer", **fields)
                elif letter == "e":
                    session.queue("enqueue", "from a peer")
                elif letter == "D":
                    session.queue("dequeue")
                elif order != "aeR":
                    session.queue("remove", "from a peer")
                else:
                    session.queue("popAll")
            assert session.text("Done.").read().prompts == ["refactor it"], order

    def test_a_line_of_another_origin_disowns_what_was_run_for_it(self):
        session = working().queue("enqueue", "the build is red").queue("dequeue")
        session.user("<peer>\nthe build is red\n</peer>", origin={"kind": "peer"}).text("I look.")
        assert session.read().prompts == ["refactor it"]

    def test_a_line_of_another_origin_disowns_no_words_that_only_occur_in_it(self):
        session = working().queue("enqueue", "red").queue("dequeue")
        session.user("the build is red", origin={"kind": "peer"}).user("red").text("I look.")
        assert session.read().prompts == ["refactor it", "red"]

    def test_words_that_a_human_said_too_stay_a_prompt(self):
        session = working().attachment("yes").attachment("yes", origin={"kind": "peer"})
        assert session.text("Done.").read().prompts == ["refactor it", "yes"]

    def test_an_attachment_of_another_type_says_nothing(self):
        session = working()
        session.line("attachment", ..., attachment={"type": "hook_success", "prompt": WORDS})
        assert session.read().prompts == ["refactor it"]

    def test_a_shell_command_in_the_queue_is_one(self):
        assert working().attachment("ls", mode="bash").read().kinds[1:] == [("bash", "!ls")]
        session = working().queue("enqueue", "ls").attachment("ls", mode="bash")
        assert session.queue("remove", "ls").read().kinds[1:] == [("bash", "!ls")]
        session = working().queue("enqueue", "ls").queue("dequeue")
        session.user("<bash-input>ls</bash-input>").text("Done.")
        assert session.read().kinds[1:] == [("bash", "!ls")]

    @pytest.mark.parametrize("command", ["/model", "/fix this now"])
    def test_a_slash_command_in_the_queue_is_one_prompt(self, command):
        name, _, args = command.partition(" ")
        line = f"<command-name>{name}</command-name><command-args>{args}</command-args>"
        for session in (
            working().queue("enqueue", command).queue("remove"),
            working().queue("enqueue", command).queue("dequeue").user(line),
            working().queue("enqueue", command).queue("remove").user(line),
        ):
            assert session.text("Done.").read().prompts == ["refactor it", command]


class TestOtherWords:
    """docs/formats/claude-code.md: a paste in full, several prompts in one line."""

    SHORT = "look: [Pasted text #1 +2 lines] and fix"
    FULL = "look: a\nb\nc and fix"

    @pytest.mark.parametrize(
        "steps",
        [
            lambda s, full: s.queue("dequeue").user(full),
            lambda s, full: s.user(full),
            lambda s, full: s.queue("remove").attachment(full),
            lambda s, full: s.queue("remove", full).attachment(full),
            lambda s, full: s.attachment(full).queue("remove", full),
            lambda s, full: s.attachment(full).queue("remove"),
            lambda s, full: s.attachment(full).queue("remove", TestOtherWords.SHORT),
            lambda s, full: s.queue("remove").result("t1", "ok", full),
            lambda s, full: s.queue("remove").user(full),
        ],
    )
    def test_a_paste_is_the_line_that_has_it_in_full(self, steps):
        session = working().queue("enqueue", self.SHORT)
        cold = [m for m in session.read().messages if m.text == self.SHORT]
        steps(session, self.FULL).text("Done.")
        assert session.read().prompts == ["refactor it", self.FULL]
        gone = {m.keys[0] for m in session.read().messages if m.role is Role.RETRACTED}
        assert {m.keys[0] for m in cold} <= gone  # what was stored of it while the file was cold

    def test_a_paste_that_no_line_has_in_full_is_kept_as_it_was_queued(self):
        session = working().queue("enqueue", self.SHORT).queue("remove").text("Done.")
        assert session.read().prompts == ["refactor it", self.SHORT]

    def test_other_words_are_no_paste(self):
        session = working().queue("enqueue", self.SHORT).attachment("look: elsewhere")
        assert session.read().prompts == ["refactor it", "look: elsewhere", self.SHORT]

    def test_other_words_right_after_a_dequeue_are_what_was_queued(self):
        session = working().queue("enqueue", "/fix-42").queue("dequeue").user("Fix number 42.")
        assert session.text("Done.").read().prompts == ["refactor it", "Fix number 42."]

    def test_several_that_were_queued_may_be_run_in_one_line(self):
        session = working().queue("enqueue", WORDS).queue("enqueue", OTHER)
        session.queue("dequeue").queue("dequeue").user(f"{WORDS}\n{OTHER}").text("Done.")
        assert session.read().prompts == ["refactor it", f"{WORDS}\n{OTHER}"]


class TestColdAndGrowing:
    """docs/formats/claude-code.md: "Neither, and the file is cold: a prompt"."""

    @pytest.mark.parametrize("order", [o for o in DELIVERED if o[0] == "enqueue"], ids=" ".join)
    def test_a_prompt_stored_while_the_file_was_cold_is_known_when_it_grows(self, order):
        session = working()
        keys = set()
        for carrier in order:
            CARRIERS[carrier](session)
            found = [m for m in session.read().of(Role.HUMAN) if m.text == WORDS]
            assert len(found) == 1
            keys.add(found[0].keys[0])
        assert len(keys) == 1


class TestBounds:
    """R5: a small state, never text; R1: nothing is lost for it."""

    def test_the_state_holds_no_text(self):
        waiting: dict[str, str] = {}
        queue = Queue([], [], waiting)
        queue.enqueue(Words("a secret plan", "typed"), b"k" * 16, 1, 0)
        queue.carried("a secret plan", [b"l" * 16], 1, 0, carrier="attachment")
        assert "secret" not in str(queue.state())
        assert list(waiting.values()) == ["a secret plan"]

    def test_no_prompt_is_lost_for_a_long_queue(self):
        session = working()
        wanted = [f"number {n}" for n in range(260)]
        for words in wanted:
            session.queue("enqueue", words)
        assert sorted(session.read().prompts) == sorted(["refactor it", *wanted])

    def test_texts_that_no_longer_wait_are_let_go(self):
        waiting: dict[str, str] = {}
        queue = Queue([], [], waiting)
        for _ in range(2):
            queue.enqueue(Words("go on", "typed"), b"k" * 16, 1, 0)
        queue.remove(None, [], 2, 1)
        assert waiting
        queue.clear()
        assert not waiting

    @pytest.mark.parametrize("content", [17, {"a": 1}, [], [3], None])
    def test_wrong_types_say_nothing(self, content):
        session = working()
        session.add("queue-operation", operation="enqueue", content=content)
        session.add("queue-operation", operation=content).add("queue-operation")
        session.add("attachment", attachment={"type": "queued_command", "prompt": content})
        session.add("attachment", attachment=content)
        assert session.text("Done.").read().prompts == ["refactor it"]


class TestInThePalace:
    """What was a prompt for a moment leaves nothing behind (R1)."""

    def test_answers_after_words_that_were_disowned_answer_the_prompt_before(self, tmp_path):
        session = working().queue("enqueue", "from a peer").queue("remove", "from a peer")
        session.attachment("from a peer", origin={"kind": "peer"}).text("Done.")
        with Capturing(tmp_path / "palace") as capturing:
            capturing.read_ok(session.write(tmp_path))
            kept = [row for row in capturing.rows() if not row["retired"]]
            assert capturing.words() == [
                ("ASSISTANT", "Done."), ("ASSISTANT", "I begin."), ("HUMAN", "refactor it"),
            ]  # fmt: skip
            assert len(kept) == 1


class TestWordsThatWereRunAndNeverCarried:
    """R1: another prompt is no carrier of what was queued before it."""

    def start(self) -> Session:
        session = Session().user("start").text("working")
        return session.queue("enqueue", "also update the docs").queue("dequeue")

    def test_another_prompt_does_not_swallow_them(self):
        session = self.start().user("next").text("done")
        assert session.read().prompts == ["start", "also update the docs", "next"]

    def test_nor_with_a_tool_call_in_between(self):
        session = self.start().call("t1", command="ls").user("next").text("done")
        assert session.read().prompts == ["start", "also update the docs", "next"]

    def test_nor_with_an_interrupt_in_between(self):
        session = self.start().interrupt().user("next").text("done")
        assert session.read().prompts == ["start", "also update the docs", "next"]

    def test_a_line_that_carries_them_late_is_their_mirror(self):
        session = self.start().user("next").user("also update the docs").text("done")
        assert session.read().prompts == ["start", "also update the docs", "next"]

    def test_the_answer_belongs_to_the_prompt_that_was_typed_last(self, tmp_path):
        with Capturing(tmp_path / "palace") as palace:
            path = self.start().user("next").text("done").write(tmp_path)
            palace.read_ok(path)
            answered = {
                row["records"][0][2]: [t for role, _, t, _, _ in row["records"] if role != "HUMAN"]
                for row in palace.rows()
            }
        assert answered["next"] == ["done"]
        assert answered["also update the docs"] == []

    def test_a_word_that_a_notification_happens_to_hold_is_not_disowned(self):
        session = Session().user("start").text("working").queue("enqueue", "completed")
        notice = "<task-notification>\n<task-id>b1</task-id>\n<status>completed</status>\n"
        notice += "<summary>The background task has come to its end</summary>\n</task-notification>"
        session.queue("dequeue").user(notice, origin={"kind": "task-notification"}).text("done")
        assert "completed" in session.read().prompts
