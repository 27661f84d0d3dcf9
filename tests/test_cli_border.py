"""The border: errors become two lines and an exit code; help costs nothing."""

import importlib.util
import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import click
import pytest

import mempalace
from mempalace import __main__ as way_in
from mempalace import errors
from mempalace.cli import COMMANDS, Command, main

ROOT = Path(mempalace.__file__).parent.parent


def run(*arguments: str, cwd: Path | None = None, **options) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *options.pop("flags", ("-P",)), "-m", "mempalace", *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, **options)


@pytest.fixture
def command(monkeypatch):
    """Add a command `try` to the table that does what it is given."""

    def add(body) -> None:
        module = type(sys)("mempalace_try")
        module.attempt = click.command("try")(body)  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, "mempalace_try", module)
        monkeypatch.setitem(COMMANDS, "try", Command("mempalace_try", "attempt", "Try."))

    return add


def raiser(error: BaseException):
    def raise_it() -> None:
        raise error

    return raise_it


class TestErrors:
    """One family, one exit code each, and nothing but two lines."""

    @pytest.mark.parametrize(
        ("kind", "code"),
        [
            (errors.MemPalaceError, 1),
            (errors.WrongUsage, 2),
            (errors.NotThereYet, 3),
            (errors.Locked, 75),
            (errors.BadConfig, 78),
        ],
    )
    def test_our_error_is_two_lines_and_its_exit_code(self, command, capsys, kind, code):
        command(raiser(kind("it broke", "mend it")))
        assert main(["try"]) == code
        assert capsys.readouterr() == ("", "error: it broke\nhint: mend it\n")

    def test_an_error_without_a_hint_is_one_line(self, command, capsys):
        command(raiser(errors.MemPalaceError("it broke")))
        main(["try"])
        assert capsys.readouterr().err == "error: it broke\n"

    def test_any_other_error_is_one_with_a_hint_and_without_its_message(self, command, capsys):
        command(raiser(ValueError("words of a transcript")))
        assert main(["try"]) == 1
        err = capsys.readouterr().err
        assert err.startswith("error: unexpected ValueError in test_cli_border.py, line ")
        assert "--debug" in err
        assert "transcript" not in err
        assert "Traceback" not in err

    @pytest.mark.parametrize("error", [ValueError("x"), errors.Locked("x")])
    def test_debug_shows_the_traceback_and_keeps_the_report(self, command, capsys, error):
        command(raiser(error))
        assert main(["--debug", "try"]) == getattr(error, "exit_code", 1)
        err = capsys.readouterr().err
        assert "Traceback" in err
        assert "\nerror: " in err

    def test_an_error_keeps_its_hint_when_pickled(self):
        import pickle

        copy = pickle.loads(pickle.dumps(errors.Locked("what", "hint")))
        assert copy.report() == "error: what\nhint: hint"

    @pytest.mark.parametrize("arguments", [["no-such"], ["--no-such"], ["config", "extra"]])
    def test_wrong_usage_exits_2_and_points_to_the_help(self, capsys, arguments):
        assert main(arguments) == 2
        out, err = capsys.readouterr()
        assert out == ""
        assert err.startswith("error: ")
        assert "--help`" in err

    @pytest.mark.parametrize("error", [KeyboardInterrupt(), click.Abort()])
    def test_an_interrupt_exits_130_without_a_report(self, command, capsys, error):
        command(raiser(error))
        assert main(["try"]) == 130
        assert "error" not in capsys.readouterr().err

    def test_a_command_that_is_not_installed_says_so(self, monkeypatch, capsys):
        monkeypatch.setitem(COMMANDS, "gone", Command("mempalace.cli.no_such", "gone", "Gone."))
        assert main(["gone"]) == 1
        assert "`mempalace gone` is not part of this installation" in capsys.readouterr().err

    def test_a_command_whose_own_import_fails_is_not_called_missing(
        self, monkeypatch, capsys, tmp_path
    ):
        (tmp_path / "half_installed.py").write_text("import no_such_dependency\n")
        monkeypatch.syspath_prepend(tmp_path)
        monkeypatch.setitem(COMMANDS, "half", Command("half_installed", "half", "Half."))
        assert main(["half"]) == 1
        assert "unexpected ModuleNotFoundError in half_installed.py" in capsys.readouterr().err

    def test_the_number_a_command_returns_is_the_exit_code(self, command):
        command(lambda: errors.EXIT_DEGRADED)
        assert main(["try"]) == 4

    def test_a_command_that_returns_nothing_exits_0(self, command):
        command(lambda: None)
        assert main(["try"]) == 0

    def test_a_reader_that_leaves_early_is_no_error(self):
        """`mempalace … | head -1` must not end in a traceback, whatever size the output has."""
        program = (
            "import click, sys, types; from mempalace import cli\n"
            "module = types.ModuleType('m'); sys.modules['m'] = module\n"
            "module.c = click.command()(lambda: [click.echo('x' * 100) for _ in range(9999)])\n"
            "cli.COMMANDS['try'] = cli.Command('m', 'c', ''); sys.exit(cli.main(['try']))"
        )
        child = subprocess.Popen(
            [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        with child:
            assert child.stdout is not None
            assert child.stderr is not None
            child.stdout.readline()
            child.stdout.close()
            assert child.stderr.read() == b""
        assert child.returncode == 141

    def test_a_short_output_to_a_closed_pipe_is_no_error_either(self):
        """It breaks at the flush, not at the write."""
        reader, writer = os.pipe()
        os.close(reader)
        command = [sys.executable, "-P", "-m", "mempalace", "config"]
        done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE)
        os.close(writer)
        assert (done.returncode, done.stderr) == (141, b"")

    def test_half_an_emoji_is_printed_escaped(self):
        program = (
            "import click, sys, types; from mempalace import cli\n"
            "module = types.ModuleType('m'); sys.modules['m'] = module\n"
            "module.c = click.command()(lambda: click.echo('a\\ud83dz'))\n"
            "cli.COMMANDS['try'] = cli.Command('m', 'c', ''); sys.exit(cli.main(['try']))"
        )
        done = subprocess.run([sys.executable, "-c", program], capture_output=True)
        assert (done.returncode, done.stdout) == (0, b"a\\ud83dz\n"), done.stderr


class TestHelp:
    """The table is the help; nothing is imported for it."""

    def test_the_help_lists_every_command_with_its_line(self, capsys):
        assert main(["--help"]) == 0
        out = capsys.readouterr().out
        for name, entry in COMMANDS.items():
            assert (f"  {name} " in out) == bool(entry.help)  # the librarian starts itself
            assert entry.help in out

    def test_no_arguments_print_the_help(self, capsys):
        assert main([]) == 0
        assert "Commands:" in capsys.readouterr().out

    def test_the_help_imports_no_command_and_no_engine(self):
        program = (
            "import sys; from mempalace.cli import main; main(['--help'])\n"
            "print([n for n in sys.modules if n.startswith('mempalace.') or n in ('rich', 'yaml')])"
        )
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
        assert (
            done.stdout.splitlines()[-1]
            == "['mempalace.errors', 'mempalace.cli.output', 'mempalace.cli']"
        )

    @pytest.mark.parametrize(
        "name", [n for n, c in COMMANDS.items() if importlib.util.find_spec(c.module)]
    )
    def test_every_command_of_the_table_has_help_of_its_own(self, capsys, name):
        assert main([name, "--help"]) == 0
        assert f"Usage: mempalace {name}" in capsys.readouterr().out

    def test_the_version_is_the_package_version(self, capsys):
        assert main(["--version"]) == 0
        assert capsys.readouterr().out == f"mempalace {mempalace.__version__}\n"


class TestWayIn:
    """`python -P -m mempalace` and its two paths."""

    def test_a_foreign_package_in_the_working_directory_is_refused(self, tmp_path):
        (tmp_path / "hooks").mkdir()
        (tmp_path / "hooks" / "__init__.py").write_text("raise SystemExit('ran foreign code')")
        done = run("config", cwd=tmp_path, flags=())
        assert done.returncode == 78
        assert done.stderr.startswith("error: the package `hooks` is not MemPalace's own")
        assert "Traceback" not in done.stderr

    def test_with_safe_path_the_working_directory_does_not_matter(self, tmp_path):
        (tmp_path / "hooks").mkdir()
        (tmp_path / "hooks" / "__init__.py").write_text("raise SystemExit('ran foreign code')")
        assert run("config", cwd=tmp_path).returncode == 0

    def test_a_missing_package_is_refused(self):
        with pytest.raises(errors.BadConfig, match="found nothing"):
            way_in.refuse_foreign_packages(("no_such_package",))

    def test_our_own_packages_are_accepted(self):
        way_in.refuse_foreign_packages()

    def test_wake_up_gets_its_arguments_and_gives_its_exit_code(self, monkeypatch):
        layers = type(sys)("mempalace.layers")
        layers.main = len  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, "mempalace.layers", layers)
        assert way_in.main(["wake-up", "--wing", "shop"]) == 2

    def test_wake_up_imports_neither_click_nor_the_command_line(self):
        program = (
            "import sys, types; layers = types.ModuleType('mempalace.layers')\n"
            "layers.main = lambda argv: print([n for n in ('click', 'mempalace.cli', 'rich') "
            "if n in sys.modules]) or 0\n"
            "sys.modules['mempalace.layers'] = layers\n"
            "from mempalace.__main__ import main; sys.exit(main(['wake-up']))"
        )
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
        assert (done.returncode, done.stdout) == (0, "[]\n"), done.stderr

    @pytest.mark.parametrize(
        ("error", "code", "line"),
        [
            (errors.NotThereYet("no palace", "run init"), 3, "error: no palace"),
            (KeyError("words of a transcript"), 1, "error: unexpected KeyError in wake-up"),
        ],
    )
    def test_wake_up_that_fails_is_two_lines(self, monkeypatch, capsys, error, code, line):
        layers = type(sys)("mempalace.layers")

        def fail(argv: list[str]) -> int:
            raise error

        layers.main = fail  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, "mempalace.layers", layers)
        assert way_in.main(["wake-up"]) == code
        lines = capsys.readouterr().err.splitlines()
        assert lines[0] == line
        assert lines[1].startswith("hint: ")
        assert len(lines) == 2

    def test_importing_the_package_imports_none_of_its_modules(self):
        program = "import sys, mempalace; print([n for n in sys.modules if 'mempalace.' in n])"
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
        assert done.stdout == "[]\n"

    def test_public_names_are_found_when_asked_for(self):
        for name in set(dir(mempalace)) - set(vars(mempalace)):
            assert getattr(mempalace, name).__name__ == name
        with pytest.raises(AttributeError, match="no_such"):
            _ = mempalace.no_such


class TestInit:
    """`mempalace init` gives a new user a place to start, and takes nothing away."""

    def test_it_creates_a_private_home_with_a_commented_config(self, palace_home, capsys):
        assert main(["init"]) == 0
        modes = {
            p.name: stat.S_IMODE(p.stat().st_mode) for p in (palace_home, *palace_home.iterdir())
        }
        assert modes == {"palace": 0o700, "config.yaml": 0o600}
        assert "#mining.tool_chars: 2000" in (palace_home / "config.yaml").read_text()

    def test_without_a_terminal_it_asks_nothing_and_says_how_to_get_an_identity(self, capsys):
        main(["init"])
        assert "--yes" in capsys.readouterr().out

    def test_yes_writes_an_identity_to_edit(self, palace_home):
        main(["init", "--yes"])
        assert (palace_home / "identity.txt").read_text().strip()

    def test_it_overwrites_nothing(self, palace_home):
        palace_home.mkdir()
        for name in ("config.yaml", "identity.txt"):
            (palace_home / name).write_text("# mine\n")
        assert main(["init", "--yes"]) == 0
        for name in ("config.yaml", "identity.txt"):
            assert (palace_home / name).read_text() == "# mine\n"

    @pytest.mark.parametrize(("answer", "is_written"), [("y\n", True), ("n\n", False)])
    def test_on_a_terminal_it_asks(self, palace_home, answer, is_written):
        master, slave = os.openpty()
        os.write(master, answer.encode())
        command = [sys.executable, "-P", "-m", "mempalace", "init"]
        done = subprocess.run(command, stdin=slave, stdout=slave, stderr=subprocess.PIPE)
        os.close(slave)
        os.close(master)
        assert done.returncode == 0, done.stderr
        assert (palace_home / "identity.txt").exists() is is_written


class TestConfigCommand:
    """`mempalace config` shows every value with its source."""

    def test_json_holds_key_value_source_and_variable(self, monkeypatch, capsys):
        monkeypatch.setenv("MEMPALACE_EXCLUDE", "a:b")
        assert main(["config", "--json"]) == 0
        shown = {row["key"]: row for row in json.loads(capsys.readouterr().out)}
        assert shown["exclude"]["value"] == ["a", "b"]
        assert shown["exclude"]["source"] == shown["exclude"]["variable"] == "MEMPALACE_EXCLUDE"
        assert shown["mining.tool_chars"]["source"] == "default"

    def test_a_pipe_gets_one_line_of_fields_a_key(self, capsys):
        main(["config"])
        rows = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
        assert {len(row) for row in rows} == {4}
        assert ["mining.noise", "false", "default"] in [row[:3] for row in rows]

    def test_a_terminal_gets_a_table_in_which_brackets_survive(self, monkeypatch):
        monkeypatch.setenv("MEMPALACE_EXCLUDE", "[red]x[/red]")
        monkeypatch.setenv("COLUMNS", "200")
        master, slave = os.openpty()
        command = [sys.executable, "-P", "-m", "mempalace", "config"]
        done = subprocess.run(command, stdout=slave, stderr=subprocess.PIPE)
        os.close(slave)
        shown = os.read(master, 65_536).decode()
        os.close(master)
        assert done.returncode == 0, done.stderr
        assert "[red]x[/red]" in shown
        assert "what it does" in shown

    def test_a_broken_config_exits_78(self, palace_home):
        palace_home.mkdir()
        (palace_home / "config.yaml").write_text("mining.nois: true\n")
        done = run("config")
        assert done.returncode == 78
        assert "`mining.noise`" in done.stderr
