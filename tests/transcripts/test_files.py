"""The walk of a root: every transcript once, and nothing that is none."""

import errno
import os
import socket
import sys
from pathlib import Path

import pytest

from mempalace.transcripts.files import walk


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "projects"
    (folder / "-work-shop").mkdir(parents=True)
    (folder / "-work-shop" / "a.jsonl").write_text("{}\n")
    return folder


def found(root: Path | str) -> tuple[list[str], list[OSError]]:
    errors: list[OSError] = []
    names = sorted(os.path.relpath(path, root) for path, _ in walk(str(root), errors.append))
    return names, errors


class TestWhatIsFound:
    """R1: every file that may be a transcript; R7: what could not be looked at is named."""

    def test_transcripts_are_found_at_any_depth_with_their_stat(self, root):
        deep = root / "-work-shop" / "5f0c" / "subagents"
        deep.mkdir(parents=True)
        (deep / "agent-1.jsonl").write_text("{}\n" * 7)
        sizes = {path: look.st_size for path, look in walk(str(root), list[OSError]().append)}
        assert sizes == {
            str(root / "-work-shop" / "a.jsonl"): 3,
            str(deep / "agent-1.jsonl"): 21,
        }

    def test_other_names_and_folders_of_tool_results_are_passed_over(self, root):
        for name in ("notes.txt", "a.meta.json", "history.jsonl", "b.jsonl.lock"):
            (root / name).write_text("{}\n")
        (root / "tool-results").mkdir()
        (root / "tool-results" / "c.jsonl").write_text("{}\n")
        assert found(root) == (["-work-shop/a.jsonl"], [])

    def test_a_folder_named_like_a_transcript_is_looked_into(self, root):
        (root / "odd.jsonl").mkdir()
        (root / "odd.jsonl" / "b.jsonl").write_text("{}\n")
        assert found(root) == (["-work-shop/a.jsonl", "odd.jsonl/b.jsonl"], [])

    @pytest.mark.skipif(sys.platform == "darwin", reason="its file systems hold UTF-8 only")
    def test_a_name_that_is_not_utf8_is_found(self, root):
        name = os.fsdecode(b"\xff.jsonl")
        (root / name).write_text("{}\n")
        assert found(root)[0] == ["-work-shop/a.jsonl", name]

    def test_a_linked_file_is_found(self, root, tmp_path):
        (tmp_path / "elsewhere.jsonl").write_text("{}\n")
        (root / "b.jsonl").symlink_to(tmp_path / "elsewhere.jsonl")
        assert found(root)[0] == ["-work-shop/a.jsonl", "b.jsonl"]


class TestLinks:
    """No folder is entered twice, whatever points where."""

    def test_links_in_a_circle_end(self, root):
        (root / "-work-shop" / "again").symlink_to(root / "-work-shop")
        (root / "one").mkdir()
        (root / "one" / "two").symlink_to(root / "one")
        assert found(root) == (["-work-shop/a.jsonl"], [])

    def test_a_folder_goes_before_a_link_to_it(self, root):
        (root / "-a-link").symlink_to(root / "-work-shop")
        (root / "-z-link").symlink_to(root / "-work-shop")
        assert found(root)[0] == ["-work-shop/a.jsonl"]

    def test_a_linked_folder_outside_is_followed(self, root, tmp_path):
        (tmp_path / "disk2").mkdir()
        (tmp_path / "disk2" / "b.jsonl").write_text("{}\n")
        (root / "more").symlink_to(tmp_path / "disk2")
        assert found(root)[0] == ["-work-shop/a.jsonl", "more/b.jsonl"]

    def test_a_link_to_what_holds_the_root_is_not_followed(self, root, tmp_path):
        (tmp_path / "outside.jsonl").write_text("{}\n")
        (root / "up").symlink_to(tmp_path)
        (root / "everything").symlink_to("/")
        assert found(root) == (["-work-shop/a.jsonl"], [])

    def test_a_root_that_is_a_link_itself_is_walked(self, root, tmp_path):
        (tmp_path / "link").symlink_to(root)
        assert found(tmp_path / "link")[0] == ["-work-shop/a.jsonl"]

    def test_a_link_to_itself_is_named_and_the_rest_is_found(self, root):
        for name in ("self.jsonl", "self"):
            (root / name).symlink_to(name)
        names, errors = found(root)
        assert names == ["-work-shop/a.jsonl"]
        assert {(Path(e.filename).name, e.errno) for e in errors} == {
            ("self.jsonl", errno.ELOOP),
            ("self", errno.ELOOP),
        }

    def test_a_link_to_nothing_is_passed_over(self, root):
        (root / "gone.jsonl").symlink_to("nowhere")
        assert found(root) == (["-work-shop/a.jsonl"], [])


class TestTrouble:
    """R6: one entry's trouble is its own; R7: it is told."""

    def test_a_missing_root_is_told_and_empty(self, tmp_path):
        names, errors = found(tmp_path / "nowhere")
        assert names == []
        assert [type(e) for e in errors] == [FileNotFoundError]
        assert errors[0].filename == str(tmp_path / "nowhere")

    def test_a_root_that_is_a_file_is_told(self, tmp_path):
        (tmp_path / "file").write_text("")
        assert [type(e) for e in found(tmp_path / "file")[1]] == [NotADirectoryError]

    def test_what_is_no_file_is_never_opened_and_told(self, root):
        os.mkfifo(root / "pipe.jsonl")
        os.mkfifo(root / "pipe")
        with socket.socket(socket.AF_UNIX) as door:
            door.bind(str(root / "s.jsonl"))
        names, errors = found(root)
        assert names == ["-work-shop/a.jsonl"]
        assert {(Path(e.filename).name, e.errno) for e in errors} == {
            ("pipe.jsonl", errno.EINVAL),
            ("s.jsonl", errno.EINVAL),
        }

    def test_a_closed_folder_is_told_and_the_rest_is_found(self, root, monkeypatch):
        """Through os.scandir, because root may open any folder."""
        (root / "closed").mkdir()
        scandir = os.scandir

        def refuse(path: str):
            if path.endswith("closed"):
                raise PermissionError(errno.EACCES, "Permission denied", path)
            return scandir(path)

        monkeypatch.setattr(os, "scandir", refuse)
        names, errors = found(root)
        assert names == ["-work-shop/a.jsonl"]
        assert [e.filename for e in errors] == [str(root / "closed")]

    @pytest.mark.skipif(os.geteuid() == 0, reason="root may open any folder")
    def test_a_folder_without_permission_is_told(self, root):
        (root / "closed").mkdir(mode=0o000)
        assert [type(e) for e in found(root)[1]] == [PermissionError]

    def test_what_vanishes_during_the_walk_is_no_trouble(self, root):
        for number in range(3):
            (root / f"p{number}").mkdir()
            (root / f"p{number}" / "x.jsonl").write_text("{}\n")
        errors: list[OSError] = []
        for path, _ in walk(str(root), errors.append):
            for number in range(3):
                folder = root / f"p{number}"
                if folder.exists() and not path.startswith(str(folder)):
                    (folder / "x.jsonl").unlink()
                    folder.rmdir()
        assert errors == []
