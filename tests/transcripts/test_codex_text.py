"""Whose words stand in a user-role message of Codex."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mempalace.transcripts.codex_text import (
    answers_in,
    answers_retained,
    folder_in,
    human_words,
)
from tests.transcripts.codex_builder import ABORTED, AGENTS, ENVIRONMENT, SKILL

_REPLY = "<send_user_message_question_reply>\n{}\n</send_user_message_question_reply>"
_IDE = "# Context from my IDE setup:\n\n## Active file: a.py\n\n## My request for Codex:\n"
_PROCESSES = (
    "Warning: The maximum number of unified exec processes you can keep open is 60 and you"
    " currently have 61 processes open. Reuse older processes or close them to prevent automatic"
    " pruning of old processes"
)
_PATCH = (
    "Warning: apply_patch was requested via exec_command. Use the apply_patch tool instead of"
    " exec_command."
)


def _agents(*lines: str) -> str:
    return "\n".join(["# AGENTS.md instructions for /w", "", "<INSTRUCTIONS>", *lines])


class TestEnvelopes:
    """Only what is provably the harness's is cut off, from the front."""

    @pytest.mark.parametrize(
        "text",
        [
            ENVIRONMENT,
            AGENTS,
            AGENTS.replace("\n", "\r\n"),
            AGENTS.replace(" for /repo/shop", ""),
            AGENTS.removesuffix("</INSTRUCTIONS>"),
            SKILL,
            ABORTED,
            AGENTS + "\n" + ENVIRONMENT + "\n\n" + SKILL,
            "<user_instructions>\n\nBe brief.\n\n</user_instructions>",
            "<user_shell_command>\n<command>\nls\n</command>\n</user_shell_command>",
            "<subagent_notification>{}</subagent_notification>",
            "<additional_context>x</additional_context>",
            "<extension_context>x</extension_context>",
            "<goal_context>x</goal_context>",
            '<codex_internal_context source="goal">\nx\n</codex_internal_context>',
            "<recommended_plugins>x</recommended_plugins>",
            '<hook_prompt hook_run_id="h1">x</hook_prompt>',
            "<user_action>\n<action>review</action>\n</user_action>",
            "Warning: The maximum number of unified exec processes you can keep open is 60.",
            _PROCESSES,
            _PATCH + "\n",
            ENVIRONMENT + "\n" + _PROCESSES,
        ],
    )
    def test_what_the_harness_writes_is_no_prompt(self, text):
        words = human_words(text)
        assert (words.text, words.rule) == ("", "context-envelope")

    @pytest.mark.parametrize("warning", [_PROCESSES, _PATCH])
    @pytest.mark.parametrize("asked", ["{}\n\nWhat does this mean?", "{} - why?", "Why: {}"])
    @pytest.mark.parametrize("is_told", [False, True])
    def test_a_human_who_quotes_a_warning_is_heard(self, warning, asked, is_told):
        """R1: only a warning that is all there is was written by Codex."""
        text = asked.format(warning)
        assert human_words(text, is_told=is_told).text == text

    @pytest.mark.parametrize(
        "lines",
        [
            ("wrap rules in </INSTRUCTIONS> tags", "more", "</INSTRUCTIONS>"),
            ("<INSTRUCTIONS>", "an example", "</INSTRUCTIONS>", "more", "</INSTRUCTIONS>"),
            ("</INSTRUCTIONS>", "more", "  </INSTRUCTIONS>  "),
            ("one <INSTRUCTIONS> a </INSTRUCTIONS> and <INSTRUCTIONS>", "b", "</INSTRUCTIONS>"),
        ],
    )
    @pytest.mark.parametrize("behind", ["", "\n", "\n\n" + ENVIRONMENT, "\n" + SKILL + "\nfix it"])
    def test_instructions_that_name_their_own_tag_are_left_out_as_a_whole(self, lines, behind):
        """R1: nothing else gets in."""
        words = human_words(_agents(*lines) + behind)
        assert words.text == ("fix it" if behind.endswith("fix it") else "")

    def test_other_envelopes_that_name_their_own_tag_are_too(self):
        assert human_words("<skill>\nend it with </skill> or so\nmore\n</skill>").text == ""

    @pytest.mark.parametrize(
        ("before", "asked"),
        [
            (AGENTS, "what does </INSTRUCTIONS> mean?"),
            (_agents("end with </INSTRUCTIONS>!", "</INSTRUCTIONS>"), "fix it"),
            (SKILL, "why does\n<skill>\nb\n</skill>\nfail?"),
            (SKILL, "why does\n<skill>\nb\n</skill>"),
            (SKILL, "is </skill> right?"),
            (SKILL, "how does it end? With </skill>"),
            (AGENTS, "how do they end? With </INSTRUCTIONS>"),
            (ENVIRONMENT, "what is\n</environment_context>\ngood for?"),
        ],
    )
    def test_a_human_who_names_a_closing_tag_is_heard(self, before, asked):
        """R1: what follows an envelope is not taken for more of it."""
        assert human_words(f"{before}\n\n{asked}").text == asked

    def test_many_envelopes_take_no_long_time(self):
        """R8: the text is not gone through once for each of them."""
        text = "<skill>x</skill>\n" * 20_000
        assert human_words(text + "fix it").text == "fix it"
        assert human_words(AGENTS + "\n</INSTRUCTIONS> x" * 20_000).text != ""

    @pytest.mark.parametrize(
        "text",
        [
            "fix it",
            "  indented\r\nand more \n",
            "<environment_context> is a tag of theirs, why?",
            "<skill> what does this tag mean?",
            "see <turn_aborted>x</turn_aborted> in the log",
            "<skill-list>a</skill-list>",
            "# AGENTS.md instructions are too long, cut them",
            "Warning: the tests fail",
            "## My request for Codex:\nis a heading of yours",
            "<image> is an HTML element",
            "see \u2028 there",
        ],
    )
    def test_prose_about_them_is_left_as_it_stands(self, text):
        assert human_words(text).text == text

    @pytest.mark.parametrize("before", [AGENTS, ENVIRONMENT, SKILL, AGENTS + "\n\n" + ENVIRONMENT])
    @pytest.mark.parametrize("between", ["\n", "\n\n", "\r\n \r\n"])
    def test_the_human_s_words_behind_them_stay_with_their_blanks(self, before, between):
        assert human_words(before + between + "    code()\nrun this\n").text == (
            "    code()\nrun this\n"
        )

    def test_what_codex_marks_as_a_human_s_may_look_like_an_envelope(self):
        assert human_words(SKILL, is_marked=True).text == SKILL

    @pytest.mark.parametrize("before", [SKILL, ENVIRONMENT, AGENTS, ABORTED])
    def test_what_an_event_tells_is_a_human_s_whatever_it_begins_with(self, before):
        """R2: verbatim; but nothing but an envelope is no human's."""
        text = f"{before}\nwhy does my parser choke on this?"
        words = human_words(text, is_told=True)
        assert (words.text, words.is_abort) == (text, False)
        assert human_words(before, is_told=True).rule == "context-envelope"
        assert human_words(_IDE + "fix it", is_told=True).text == "fix it"

    def test_a_turn_that_was_aborted_is_told_of(self):
        assert human_words(ABORTED).is_abort
        assert not human_words(SKILL).is_abort

    def test_only_the_request_of_an_ide_s_context_is_the_human_s(self):
        assert human_words(_IDE + "fix it\n").text == "fix it\n"
        assert human_words(_IDE.replace("\n", "\r\n") + "fix it").text == "fix it"
        assert human_words(_IDE).text == ""
        again = "why does\n## My request for Codex:\nstand here?"
        assert human_words(_IDE + again).text == again

    @pytest.mark.parametrize(
        "text", ["<image name=[Image #1] path=/a.png>", "</image>", " </image>\n"]
    )
    def test_the_tags_around_a_picture_are_no_words(self, text):
        assert human_words(text).rule == "image"

    @given(st.text())
    def test_text_without_a_tag_or_heading_is_never_changed(self, text):
        if "<" not in text and "#" not in text and "Warning" not in text and text.strip():
            assert human_words(text).text == text


class TestReplies:
    """Answers that a human gave to the agent's questions."""

    def test_the_answers_of_a_reply_are_the_words(self):
        inside = '[{"questionItemId":"q","question":"Which?","answer":"The first"},{"answer":"Go"}]'
        assert human_words(_REPLY.format(inside)).text == "The first\nGo"

    @pytest.mark.parametrize("inside", ["just words", "[1, null]", '{"other": 1}'])
    def test_a_reply_of_an_unknown_form_stays_as_it_is(self, inside):
        assert human_words(_REPLY.format(inside)).text == inside

    @pytest.mark.parametrize(
        ("output", "said"),
        [
            ('{"answers":{"q1":{"answers":["Green"]}}}', ["Green"]),
            ('{"answers":{"q1":{"answers":["a","b"]},"q2":"c"}}', ["a", "b", "c"]),
            ('{"answers":{}}', []),
            ('{"answers":[1]}', []),
            ('{"answers":{"q":{"answers":[1,null," "]}}}', []),
            ("cancelled", []),
            ("[]", []),
        ],
    )
    def test_answers_stand_in_the_output(self, output, said):
        assert answers_in(output) == said

    @pytest.mark.parametrize(
        ("questions", "said"),
        [
            ([{"question": "?", "answer": "Green"}, {"answer": ["a", "b"]}], ["Green", "a", "b"]),
            ([{"answers": {"answers": ["x"]}}], ["x"]),
            ([1, {"answer": None}], []),
            ("words", []),
        ],
    )
    def test_answers_stand_in_retained_context(self, questions, said):
        assert answers_retained({"questions": questions}) == said


class TestFolder:
    """Old sessions name their folder only in what is injected."""

    def test_the_environment_names_it(self):
        told = "Current working directory: /w/a b\r\nApproval: never"
        old = f"<environment_context>\n{told}\n</environment_context>"
        assert folder_in(ENVIRONMENT) == "/repo/shop"
        assert folder_in(old) == "/w/a b"
        assert folder_in(AGENTS + "\n" + ENVIRONMENT + "\nfix it") == "/repo/shop"

    def test_prose_does_not(self):
        assert folder_in("Current working directory: /etc") is None
        assert folder_in("<cwd>/etc</cwd>") is None
        assert folder_in("<environment_context><cwd></cwd></environment_context>") is None
