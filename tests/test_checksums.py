import os
import shutil
import subprocess

import pytest

from cdfsg import checksums
from cdfsg.files import PAPER, RECORDS, Damaged
from tests.torture.test_rot import damage


@pytest.mark.parametrize("folder", [PAPER, RECORDS], ids=lambda folder: folder.name)
def test_every_data_file_of_the_repository_is_listed_and_has_its_checksum(folder):
    paths = [path for path in folder.iterdir() if path.suffix in (".csv", ".toml")]
    for path in paths:
        checksums.read(path)
    assert len((folder / checksums.LIST).read_text().splitlines()) == len(paths)


def test_a_file_comes_back_as_it_was_written_and_the_usual_tool_checks_the_list(tmp_path):
    for name, content in (("a.csv", "x\n1\n"), ("b c.csv", b"y\n2\n"), ("a.csv", "x\n3\n")):
        checksums.write(tmp_path / "new" / name, content)
    assert checksums.read(tmp_path / "new" / "b c.csv") == b"y\n2\n"
    assert list(checksums.read_csv(tmp_path / "new" / "a.csv")["x"]) == [3]
    assert sorted(os.listdir(tmp_path / "new")) == ["SHA256SUMS", "a.csv", "b c.csv"]
    if shutil.which("sha256sum"):
        done = subprocess.run(["sha256sum", "-c", checksums.LIST], cwd=tmp_path / "new", capture_output=True, text=True)
        assert done.returncode == 0 and done.stdout == "a.csv: OK\nb c.csv: OK\n"


@pytest.mark.parametrize("kind", ["flip first", "cut", "empty", "folder", "unreadable", "gone"])
def test_damage_to_the_list_is_told_with_the_name_of_a_file_and_the_remedy(tmp_path, kind):
    path, listed = tmp_path / "a.csv", tmp_path / checksums.LIST
    checksums.write(path, "x\n1\n")
    listed.unlink() if kind == "gone" else damage(listed, kind)
    with pytest.raises(Damaged, match=r"(a\.csv|SHA256SUMS).*; do this$"):
        checksums.read(path, "do this")


def test_a_file_that_is_gone_is_missing_and_not_damaged(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"a\.csv"):
        checksums.read(tmp_path / "a.csv")
