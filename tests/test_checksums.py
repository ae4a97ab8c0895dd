import os
import shutil
import subprocess

import pytest

from cdfsg import checksums
from cdfsg.files import PAPER, RECORDS, Damaged


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


@pytest.mark.parametrize("victim", ["a.csv", "SHA256SUMS"])
@pytest.mark.parametrize("damage", ["flip", "cut", "empty", "folder", "delete"])
def test_damage_to_a_file_or_to_the_list_is_told_with_the_name_and_the_remedy(tmp_path, victim, damage):
    path, hurt = tmp_path / "a.csv", tmp_path / victim
    checksums.write(path, "x\n1\n")
    data = hurt.read_bytes()
    hurt.unlink()
    if damage == "folder":
        hurt.mkdir()
    elif damage != "delete":
        hurt.write_bytes({"flip": bytes([data[0] ^ 1]) + data[1:], "cut": data[: len(data) // 2], "empty": b""}[damage])
    expected = FileNotFoundError if (victim, damage) == ("a.csv", "delete") else Damaged
    with pytest.raises(expected, match=r"a\.csv") as refused:
        checksums.read(path, "do this")
    assert expected is FileNotFoundError or str(refused.value).endswith("; do this")
