"""`mempalace wake-up`: of which wing."""

import subprocess
import sys

import pytest

from tests.command import mempalace
from tests.palace_builder import PalaceBuilder
from tests.waking import moments, woken


@pytest.fixture
def builder(palace_home):
    with PalaceBuilder(palace_home) as building:
        yield building


class TestWhichWing:
    @pytest.fixture
    def projects(self, builder, home):
        """Two projects: a git repository, and a folder that is none."""
        shop, notes = home / "code" / "my-shop", home / "notes"
        (shop / ".git").mkdir(parents=True)
        (shop / "src" / "deep").mkdir(parents=True)
        (notes / "2026").mkdir(parents=True)
        builder.session(cwd=str(shop)).prompt("A question about the shop")
        builder.session(cwd=str(notes)).prompt("A question about the notes")
        builder.file()
        return home

    @pytest.mark.parametrize("name", ["my_shop", "my-shop", "My Shop"])
    def test_the_one_that_is_named(self, builder, projects, name):
        assert moments(woken(builder, "--wing", name)) == ["A question about the shop"]
        assert moments(woken(builder, f"--wing={name}")) == ["A question about the shop"]

    def test_one_that_is_named_wins_over_the_folder(self, builder, projects):
        lines = woken(builder, "--wing", "notes", cwd=projects / "code" / "my-shop")
        assert moments(lines) == ["A question about the notes"]

    def test_an_unknown_one_exits_3_and_names_the_known(self, builder, projects):
        done = mempalace("wake-up", "--wing", "nope")
        assert (done.returncode, done.stdout) == (3, "")
        assert done.stderr.splitlines() == [
            "error: there is no wing `nope` yet",
            "hint: known wings: my_shop, notes",
        ]

    @pytest.mark.parametrize("folder", ["code/my-shop", "code/my-shop/src/deep"])
    def test_that_of_the_folder_or_the_nearest_above(self, builder, projects, folder):
        lines = woken(builder, cwd=projects / folder)
        assert moments(lines) == ["A question about the shop"]

    def test_a_folder_that_is_no_repository_counts_as_well(self, builder, projects):
        lines = woken(builder, cwd=projects / "notes" / "2026")
        assert moments(lines) == ["A question about the notes"]

    def test_an_unknown_project_below_a_known_folder_is_not_that_folder(self, builder, projects):
        new = projects / "notes" / "new-project"
        (new / ".git").mkdir(parents=True)
        assert len(moments(woken(builder, cwd=new))) == 2

    def test_an_unknown_folder_gets_all_wings(self, builder, projects, tmp_path):
        assert len(moments(woken(builder, cwd=tmp_path))) == 2

    def test_a_worktree_is_its_main_repository(self, builder, projects):
        main_git = projects / "code" / "my-shop" / ".git" / "worktrees" / "fix"
        main_git.mkdir(parents=True)
        worktree = projects / "elsewhere" / "fix"
        (worktree / "src").mkdir(parents=True)
        (worktree / ".git").write_text(f"gitdir: {main_git}\n")
        for folder in (worktree, worktree / "src"):
            assert moments(woken(builder, cwd=folder)) == ["A question about the shop"]

    def test_a_wing_of_nothing_but_answers_falls_back_to_all(self, builder, projects):
        (projects / "quiet").mkdir()
        builder.session(cwd=str(projects / "quiet")).answer("An answer without a prompt")
        assert len(moments(woken(builder, cwd=projects / "quiet"))) == 2

    def test_a_folder_that_was_removed_is_no_error(self, builder, projects):
        gone = projects / "gone"
        gone.mkdir()
        program = (
            "import os, sys; os.rmdir(os.getcwd()); from mempalace.__main__ import main; "
            "sys.exit(main(['wake-up']))"
        )
        done = subprocess.run(
            [sys.executable, "-P", "-c", program], cwd=gone, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        assert done.stdout.count("A question about") == 2
