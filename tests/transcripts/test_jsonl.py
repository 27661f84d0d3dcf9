"""The byte rules of docs/formats/jsonl.md, one test a sentence."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mempalace.transcripts.jsonl import BOM, Line, read_line

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=6,
)
# As programs write them: every line of a session says of which.
RECORDS = st.dictionaries(st.text(max_size=6), VALUES, max_size=3).map(
    lambda fields: {"type": "user", "sessionId": "s", **fields, "timestamp": "t"}
)


def values(line: Line) -> list[object]:
    return [value for _, value in line.objects]


def dump(value: object, *, ascii_only: bool = False) -> bytes:
    return json.dumps(value, ensure_ascii=ascii_only, separators=(",", ":")).encode(
        "utf-8", "surrogatepass"
    )


class TestLines:
    """docs/formats/jsonl.md, "Lines"."""

    @pytest.mark.parametrize("mark", ["\u2028", "\u2029", "\x85", "\v", "\f", "\x1c"])
    def test_what_parts_lines_elsewhere_may_stand_raw_in_a_string(self, mark):
        assert values(read_line(dump({"a": "x"}).replace(b"x", mark.encode()), 0)) == [{"a": mark}]

    def test_a_byte_order_mark_counts_at_the_first_byte_of_a_file_only(self):
        assert values(read_line(BOM + b'{"a":1}', 0)) == [{"a": 1}]
        later = read_line(BOM + b'{"a":1}', 700)
        assert not later.objects
        assert later.bad

    @pytest.mark.parametrize("line", [b'{"a":1}\r', b'  {"a":1}', b'{"a":1}\t ', b'\0\0{"a":1}'])
    def test_what_surrounds_the_object_is_no_part_of_it(self, line):
        assert values(read_line(line, 0)) == [{"a": 1}]

    @pytest.mark.parametrize("line", [b"", b"\r", b" \t\v\f\r"])
    def test_an_empty_line_is_nothing(self, line):
        assert read_line(line, 9) == Line()

    def test_padding_is_counted_and_nothing_else(self):
        padding = read_line(b"\0" * 512, 9)
        assert not padding.objects
        assert [(bad.offset, bad.length) for bad in padding.bad] == [(9, 512)]


class TestText:
    """docs/formats/jsonl.md, "Text"."""

    def test_bytes_that_are_not_utf8_are_replaced_and_the_line_is_kept(self):
        assert values(read_line(b'{"a":"x\xff\xfey","b":1}', 0)) == [
            {"a": "x\ufffd\ufffdy", "b": 1}
        ]

    def test_a_lone_surrogate_is_replaced_so_that_it_can_be_stored(self):
        (value,) = values(read_line(rb'{"\udc00":["\ud83d","\ud83d\ude00"]}', 0))
        assert "😀" in str(value)
        str(value).encode("utf-8")

    def test_raw_control_characters_are_taken_as_they_are(self):
        assert values(read_line(b'{"a":"x\x01\ty"}', 0)) == [{"a": "x\x01\ty"}]

    def test_nul_as_an_escape_is_text(self):
        assert values(read_line(rb'{"a":"x\u0000y"}', 0)) == [{"a": "x\0y"}]


class TestLinesThatAreNotOneObject:
    """docs/formats/jsonl.md, "Lines that are not one object"; R1, R6."""

    def test_glued_objects_are_read_in_order_each_at_its_byte(self):
        line = dump({"a": "é"}) + dump({"b": 2}) + b" " + dump({"c": 3})
        assert read_line(line, 100).objects == [
            (100, {"a": "é"}), (110, {"b": 2}), (118, {"c": 3}),
        ]  # fmt: skip

    def test_a_whole_record_behind_a_torn_one_is_read_and_the_torn_part_set_aside(self):
        torn = b'{"type":"user","message":{"content":"how do I'
        read = read_line(torn + b'{"type":"assistant","uuid":"u"}', 50)
        assert read.objects == [(50 + len(torn), {"type": "assistant", "uuid": "u"})]
        assert [(bad.offset, bad.length) for bad in read.bad] == [(50, len(torn))]

    def test_what_a_torn_record_encloses_is_no_record(self):
        inner = b'{"type":"user","message":{"content":"written by the main agent"}}'
        torn = b'{"type":"progress","data":{"message":' + inner
        assert not read_line(torn, 0).objects
        assert not read_line(torn + b',"more":', 0).objects
        named = inner.replace(b"}}", b'},"sessionId":"s"}')
        assert not read_line(b'{"type":"progress","data":[' + named + b',"more":', 0).objects
        whole = b'{"type":"assistant","sessionId":"s"}'
        assert values(read_line(torn + whole, 0)) == [{"type": "assistant", "sessionId": "s"}]

    @pytest.mark.parametrize("line", [b'"text"', b"17", b"[1,2]", b"null", b'[1]"x"', b"NaN"])
    def test_values_that_are_no_objects_are_counted_and_passed_over(self, line):
        read = read_line(line, 0)
        assert not read.objects
        assert read.strays

    @pytest.mark.parametrize(
        "line", [b"{", b"nonsense", b'{"a":', b"\x89PNG\r", b'{"a":1} trailing']
    )
    def test_no_json_is_set_aside(self, line):
        read = read_line(line, 0)
        assert read.bad
        assert values(read) in ([], [{"a": 1}])

    @pytest.mark.parametrize("depth", [200, 900, 3_000, 50_000])
    @pytest.mark.parametrize("before", [b"", b'{"a":1}'])
    def test_however_deep_a_value_is_the_line_does_not_raise(self, depth, before):
        read = read_line(before + b'{"b":' + b"[" * depth + b"]" * depth + b"}", 0)
        assert read.objects or read.bad

    def test_a_line_of_junk_is_given_up_at_some_point(self):
        read = read_line(b'{"type":,' * 40_000, 0)
        assert read.bad
        assert not read.objects


class TestAnyBytes:
    """R6: bad input hurts itself only."""

    @given(st.binary(max_size=400), st.sampled_from([0, 12345]))
    def test_no_bytes_raise_and_what_is_bad_lies_in_the_line(self, line, offset):
        read = read_line(line, offset)
        for bad in read.bad:
            assert offset <= bad.offset
            assert bad.length > 0
            assert bad.offset + bad.length <= offset + len(line)

    @given(
        st.lists(st.sampled_from([b"{", b"}", b'"', b":", b",", b"[", b'{"type":', b"\xff", b"1"]))
    )
    def test_no_shards_of_json_raise(self, shards):
        read_line(b"".join(shards), 0)

    @given(st.lists(RECORDS, min_size=1, max_size=4), st.sampled_from([b"", b" ", b"\r", b"\0"]))
    def test_objects_on_one_line_come_back_whatever_joins_them(self, records, joint):
        line = joint.join(dump(record) for record in records)
        assert values(read_line(line, 0)) == records

    @given(RECORDS, RECORDS, st.data())
    def test_a_record_behind_a_torn_one_is_found_and_nothing_is_invented(self, torn, whole, data):
        front = dump(torn)
        cut = data.draw(st.integers(1, len(front) - 1))
        assert values(read_line(front[:cut] + dump(whole), 0)) == [whole]


class TestWhatNoProgramMeant:
    """R6: odd values hurt themselves only, and the reason that is noted is true."""

    def test_a_number_of_thousands_of_digits_costs_no_words(self):
        line = b'{"type":"user","n":' + b"9" * 5_000 + b',"message":{"content":"kept"}}'
        (found,) = read_line(line, 0).objects
        assert found[1]["message"]["content"] == "kept"

    def test_what_is_nested_too_deeply_is_noted_as_that(self):
        depth = 200_000
        found = read_line(b'{"type":"user","x":' + b"[" * depth + b"]" * depth + b"}", 0)
        assert [bad.reason for bad in found.bad] == ["nested too deeply"]
        assert found.objects == []
