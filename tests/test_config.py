"""What may be set, where from, and what is refused."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from mempalace.config import KEYS, load, render_default
from mempalace.errors import BadConfig

DEFAULTS = {
    "exclude": (),
    "tool_chars": 2000,
    "subagents": False,
    "thinking": False,
    "noise": False,
    "wings": {},
    "reconcile_seconds": 60,
    "vectors": True,
}
SESSION = "0b1e8a52-2c9e-4f0a-9a57-0d7c3f1b2a11"


@pytest.fixture(autouse=True)
def nothing_set(monkeypatch):
    monkeypatch.delenv("MEMPALACE_INDEX_VECTORS")


@pytest.fixture
def write(palace_home):
    """Write config.yaml, as text or as bytes."""

    def write_config(content: str | bytes) -> Path:
        palace_home.mkdir(exist_ok=True)
        file = Path(palace_home, "config.yaml")
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
        return file

    return write_config


def refusal(*parts: str) -> str:
    with pytest.raises(BadConfig) as caught:
        load()
    report = caught.value.report()
    for part in parts:
        assert part in report
    assert caught.value.exit_code == 78
    return report


class TestSources:
    """Environment over file over default, and each value knows."""

    def test_without_a_file_every_key_has_its_default(self):
        config = load()
        assert {name: getattr(config, name) for name in DEFAULTS} == DEFAULTS
        assert set(config.sources.values()) == {"default", "MEMPALACE_HOME"}

    def test_the_home_is_the_one_of_paths(self, palace_home):
        assert load().home == palace_home

    def test_the_file_wins_over_the_default(self, write):
        write("mining.tool_chars: 7\n")
        config = load()
        assert config.tool_chars == 7
        assert config.sources["mining.tool_chars"] == "config.yaml"
        assert config.sources["mining.noise"] == "default"

    def test_the_environment_wins_over_the_file(self, write, monkeypatch):
        write("mining.tool_chars: 7\n")
        monkeypatch.setenv("MEMPALACE_MINING_TOOL_CHARS", "-1")
        config = load()
        assert config.tool_chars == -1
        assert config.sources["mining.tool_chars"] == "MEMPALACE_MINING_TOOL_CHARS"

    def test_a_variable_that_is_set_but_empty_counts_as_unset(self, monkeypatch):
        monkeypatch.setenv("MEMPALACE_MINING_TOOL_CHARS", "")
        assert load().tool_chars == 2000

    def test_dotted_and_nested_keys_are_the_same(self, write):
        write("mining:\n  tool_chars: 7\n  noise: true\nmining.thinking: true\n")
        config = load()
        assert (config.tool_chars, config.noise, config.thinking) == (7, True, True)

    def test_a_key_with_nothing_behind_it_keeps_its_default(self, write):
        write("exclude:\nmining:\n")
        assert load().sources["exclude"] == "default"

    def test_every_key_can_be_set_by_its_variable(self, monkeypatch):
        samples = {
            "folders": "/a:/b",
            "globs": "x:y",
            "number": "5",
            "switch": "yes",
            "wings": "/a/b=shop",
        }
        for key in KEYS:
            monkeypatch.setenv(key.variable, samples[key.kind])
        config = load()
        assert config.claude_code_roots == (Path("/a"), Path("/b"))
        assert config.exclude == ("x", "y")
        assert (config.tool_chars, config.reconcile_seconds) == (5, 5)
        assert config.subagents
        assert config.thinking
        assert config.noise
        assert config.wings == {"/a/b": "shop"}

    def test_every_kind_can_be_set_in_the_file(self, write, home):
        write(
            "roots:\n  claude-code: [~/t, /a]\n"
            "exclude: ['~/secret', '*.tmp']\n"
            "wings: {~/work/: work, ~/work/shop: shop}\n"
            "watch.reconcile_seconds: 1\n"
        )
        config = load()
        assert config.claude_code_roots == (home / "t", Path("/a"))
        assert config.exclude == (f"{home}/secret", "*.tmp")
        assert list(config.wings.items()) == [
            (f"{home}/work/shop", "shop"),
            (f"{home}/work", "work"),
        ]
        assert config.reconcile_seconds == 1

    def test_claude_config_dir_moves_the_default_root(self, home, monkeypatch):
        monkeypatch.setenv("CLAUDE_CONFIG_DIR", "~/elsewhere")
        assert load().claude_code_roots == (home / "elsewhere/projects",)

    def test_without_it_both_usual_folders_are_roots(self, home, monkeypatch):
        monkeypatch.delenv("CLAUDE_CONFIG_DIR")
        expected = (home / ".claude/projects", home / ".config/claude/projects")
        assert load().claude_code_roots == expected

    def test_the_tilde_is_the_home_of_the_given_environment(self):
        config = load({"HOME": "/h", "MEMPALACE_HOME": "/p", "MEMPALACE_EXCLUDE": "~/x"})
        assert config.exclude == ("/h/x",)

    def test_two_loads_of_the_same_are_equal_and_can_be_keys(self):
        assert {load(): "found"}[load()] == "found"

    def test_yaml_is_not_imported_without_a_file(self):
        program = (
            "import sys; from mempalace.config import load; load(); print('yaml' in sys.modules)"
        )
        run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
        assert run.stdout == "False\n", run.stderr


class TestFile:
    """What a file may look like."""

    @pytest.mark.parametrize("content", [b"", b"\n# nothing\n", b"---\n", b"\xef\xbb\xbf"])
    def test_a_file_that_says_nothing_changes_nothing(self, write, content):
        write(content)
        assert load() == load({**os.environ, "NOTHING": ""})
        assert load().tool_chars == 2000

    def test_a_byte_order_mark_is_skipped(self, write):
        write(b"\xef\xbb\xbfmining.tool_chars: 7\n")
        assert load().tool_chars == 7

    def test_a_file_that_is_not_utf_8_is_refused_by_name(self, write):
        file = write(b"exclude: ['caf\xe9']\n")
        refusal(str(file), "not UTF-8", "byte 15")

    def test_a_utf_16_file_is_refused_by_name(self, write):
        file = write("exclude: [x]\n".encode("utf-16"))
        refusal(str(file), "not UTF-8")

    def test_a_syntax_error_names_file_and_line(self, write):
        file = write("mining.noise: true\nexclude: [a, b\nwings: {}\n")
        refusal(f"{file}, line 3", "not valid YAML")

    @pytest.mark.parametrize(
        "content",
        ["a: 2024-99-99\n", "a: !!python/object:os.system {}\n", "a: \x07\n", "a: 1\n---\nb: 2\n"],
    )
    def test_yaml_that_cannot_be_built_is_refused_by_name(self, write, content):
        refusal(str(write(content)), "not valid YAML")

    def test_a_list_at_the_top_is_refused(self, write):
        refusal(str(write("- a\n- b\n")), "expected keys and values")

    def test_a_folder_in_the_place_of_the_file_is_refused(self, palace_home):
        (palace_home / "config.yaml").mkdir(parents=True)
        refusal("cannot read", str(palace_home / "config.yaml"))

    def test_the_default_file_explains_every_key_and_sets_none(self, write):
        write(render_default())
        assert set(load().sources.values()) == {"default", "MEMPALACE_HOME"}
        for key in KEYS:
            assert key.help in render_default()
            assert key.variable in render_default()

    def test_the_default_file_uncommented_gives_the_defaults(self, write, monkeypatch):
        monkeypatch.delenv("CLAUDE_CONFIG_DIR")
        before = load()
        write(re.sub(r"^#(?=\S)", "", render_default(), flags=re.MULTILINE))
        assert load() == before
        assert load().sources["wings"] == "config.yaml"


class TestRefusals:
    """Each names the key, what was expected, and the place."""

    def test_an_unknown_key_names_its_nearest_and_the_place(self, write):
        file = write("\nmining.tool_char: 5\n")
        refusal(f"{file}, line 2", "`mining.tool_char`", "`mining.tool_chars`")

    def test_an_unknown_key_in_a_section_is_named_in_full(self, write):
        write("watch: {reconcile: 5}\n")
        refusal("`watch.reconcile`", "`watch.reconcile_seconds`")

    def test_a_section_with_a_plain_value_is_an_unknown_key(self, write):
        write("mining: 5\n")
        refusal("unknown key `mining`")

    @pytest.mark.parametrize(
        "content",
        [
            "exclude: [a]\nexclude: [b]\n",
            "mining: {noise: true, noise: false}\n",
            "mining.noise: true\nmining: {noise: false}\n",
            "wings: {/a: x, /a: y}\n",
        ],
    )
    def test_a_key_set_twice_is_refused(self, write, content):
        write(content)
        refusal("is set twice")

    @pytest.mark.parametrize(
        ("line", "expected"),
        [
            ("mining.tool_chars: many", "a whole number of at least -1"),
            ("mining.tool_chars: 1.5", "a whole number"),
            ("mining.tool_chars: true", "a whole number"),
            ("mining.tool_chars: -2", "at least -1"),
            ("watch.reconcile_seconds: 0", "at least 1"),
            ("mining.noise: 1", "true or false"),
            ("mining.noise: 'yes'", "true or false"),
            ("exclude: secret", "a list of globs"),
            ("exclude: [1]", "a list of globs"),
            ("exclude: ['']", "a list of globs"),
            ("exclude: {a: b}", "a list of globs"),
            ("roots.claude-code: relative", "a list of folders"),
            ("roots.claude-code: [relative]", "absolute folders"),
            ("wings: [a]", "a mapping"),
            ("wings: {relative: a}", "a mapping of absolute folders"),
            ("wings: {/a: 5}", "a mapping"),
            ("wings: {/a: ' '}", "a mapping"),
            ("wings: {5: a}", "a mapping"),
        ],
    )
    def test_a_wrong_type_names_key_expectation_and_file(self, write, line, expected):
        file = write(line + "\n")
        refusal(str(file), f"`{line.split(':')[0]}`", expected)

    @pytest.mark.parametrize(
        ("variable", "text"),
        [
            ("MEMPALACE_MINING_TOOL_CHARS", "2k"),
            ("MEMPALACE_MINING_TOOL_CHARS", "-2"),
            ("MEMPALACE_MINING_TOOL_CHARS", "9" * 5000),
            ("MEMPALACE_MINING_NOISE", "maybe"),
            ("MEMPALACE_ROOTS_CLAUDE_CODE", "relative"),
            ("MEMPALACE_WINGS", "/only/a/folder"),
        ],
    )
    def test_a_wrong_variable_is_refused_by_its_name(self, monkeypatch, variable, text):
        monkeypatch.setenv(variable, text)
        assert len(refusal(f"${variable}")) < 500

    @pytest.mark.parametrize("text", ["1", "TRUE", "yes", " on "])
    def test_a_switch_is_turned_on_by_the_usual_words(self, monkeypatch, text):
        monkeypatch.setenv("MEMPALACE_MINING_NOISE", text)
        assert load().noise is True

    @pytest.mark.parametrize("text", ["0", "False", "no", "off"])
    def test_a_switch_is_turned_off_by_the_usual_words(self, write, monkeypatch, text):
        write("mining.noise: true\n")
        monkeypatch.setenv("MEMPALACE_MINING_NOISE", text)
        assert load().noise is False


class TestExclusion:
    """R10: what the user names never enters; its neighbours do."""

    @pytest.mark.parametrize(
        ("pattern", "cwd", "path", "session"),
        [
            ("/w/secret", "/w/secret", None, None),
            ("/w/secret", "/w/secret/", None, None),
            ("/w/secret", "/w/secret/deep/er", None, None),
            ("/w/secret/", "/w/secret", None, None),
            ("/w/secret/", "/w/secret/deep", None, None),
            ("/w/*-private", "/w/my-private/src", None, None),
            ("/w/s[ae]cret", "/w/sacret", None, None),
            ("secret", "/w/secret/deep", None, None),
            ("secret", "/w/secret", None, None),
            ("*-private", "/w/my-private/src", None, None),
            ("*.bak.jsonl", None, "/t/a.bak.jsonl", None),
            ("/t/-w-secret", None, "/t/-w-secret/a.jsonl", None),
            ("-w-secret*", None, "/t/-w-secret-deep/a.jsonl", None),
            (SESSION, None, None, SESSION),
            ("0b1e8a52*", None, None, SESSION),
            ("~/secret", "/h/secret/deep", None, None),
            ("/", "/anything", None, None),
            ("*", None, None, SESSION),
        ],
    )
    def test_a_pattern_hits(self, pattern, cwd, path, session):
        config = load(
            {"HOME": "/h", "MEMPALACE_HOME": "/p", "MEMPALACE_EXCLUDE": f"other:{pattern}"}
        )
        assert config.excludes(cwd=cwd, path=path, session=session)

    @pytest.mark.parametrize(
        ("pattern", "cwd", "path", "session"),
        [
            ("/w/secret", "/w/secrets", None, None),
            ("/w/secret", "/w", None, None),
            ("/w/secret", "/x/w/secret", None, None),
            ("/w/Secret", "/w/secret", None, None),
            ("secret", "/w/secrets/a", None, None),
            ("secret", "/w/my-secret", None, None),
            ("w/secret", "/w/secret", None, None),
            ("0b1e8a52", None, None, SESSION),
            ("~/secret", "/home/other/secret", None, None),
            ("secret", None, None, None),
        ],
    )
    def test_a_pattern_spares(self, pattern, cwd, path, session):
        config = load({"HOME": "/h", "MEMPALACE_HOME": "/p", "MEMPALACE_EXCLUDE": pattern})
        assert not config.excludes(cwd=cwd, path=path, session=session)

    def test_without_patterns_nothing_is_excluded(self):
        assert not load().excludes(cwd="/", path="/a", session=SESSION)

    def test_a_folder_reached_by_a_link_is_excluded_by_its_real_name(self, tmp_path, monkeypatch):
        (tmp_path / "real").mkdir()
        (tmp_path / "link").symlink_to(tmp_path / "real")
        monkeypatch.setenv("MEMPALACE_EXCLUDE", str((tmp_path / "real").resolve()))
        assert load().excludes(cwd=str(tmp_path / "link"), path=None, session=None)

    def test_a_folder_reached_by_a_link_is_excluded_by_the_links_name(self, tmp_path, monkeypatch):
        (tmp_path / "real").mkdir()
        (tmp_path / "link").symlink_to(tmp_path / "real")
        monkeypatch.setenv("MEMPALACE_EXCLUDE", str(tmp_path / "link"))
        assert load().excludes(cwd=str(tmp_path / "link"), path=None, session=None)

    @pytest.mark.parametrize("cwd", ["/w/\0/secret", "/w/\ud800/secret"])
    def test_a_folder_that_cannot_exist_is_still_compared(self, monkeypatch, cwd):
        monkeypatch.setenv("MEMPALACE_EXCLUDE", "secret")
        assert load().excludes(cwd=cwd, path=None, session=None)


class TestReadingSettings:
    """R5: the settings hash changes exactly with what changes the stored words."""

    @pytest.mark.parametrize(
        "line",
        [
            "mining.tool_chars: 1",
            "mining.subagents: true",
            "mining.thinking: true",
            "mining.noise: true",
        ],
    )
    def test_it_changes_with_what_is_stored(self, write, line):
        before = load().reading_settings()
        write(line)
        assert load().reading_settings() != before

    @pytest.mark.parametrize(
        "line",
        ["exclude: [x]", "wings: {/a: b}", "watch.reconcile_seconds: 5", "roots.claude-code: [/a]"],
    )
    def test_it_stays_with_everything_else(self, write, line):
        before = load().reading_settings()
        write(line)
        assert load().reading_settings() == before

    def test_its_form_is_kept_for_ever_since_checkpoints_hold_it(self):
        expected = "tool_chars=2000,subagents=0,thinking=0,noise=0"
        assert load().reading_settings() == expected


def test_the_settings_list_the_home_and_every_key_once():
    names = [setting.key for setting in load().settings()]
    assert names == ["home", *(key.name for key in KEYS)]
