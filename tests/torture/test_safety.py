"""Nothing that was downloaded or passed as a parameter is run, and nothing is written where it does not belong."""

import ast
import contextlib
import gzip
import hashlib
import os
import re
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

from cdfsg import __main__ as cli
from cdfsg.datasets import mnist
from cdfsg.datasets.download import DownloadError, Source, obtain
from cdfsg.files import NOTEBOOKS, ROOT, write_atomically
from cdfsg.paper.report import notebooks

GOOD = b"the right bytes"
MD5 = "md5:" + hashlib.md5(GOOD).hexdigest()

RULES = "S102,S108,S301,S302,S306,S307,S506,S602,S604,S605"
"""Ruff's rules on code that is evaluated, on pickles, on shells and on names that can be foreseen."""
MORE = re.compile(
    r"allow_pickle=(?!False)|(?<!\.str)\.extract(all)?\(|\bunpack_archive\(|(?<!re\.)\bcompile\(|__import__\("
    r"|\bjoblib\.load\(|mktemp\("
)


def faults(*paths):
    """What of some modules or notebooks could run or unpack what it should not."""
    ruff = [sys.executable, "-m", "ruff", "check", "--isolated", "--quiet", "--output-format", "concise"]
    done = subprocess.run([*ruff, "--select", RULES, *paths], capture_output=True, text=True)
    found = {f"{path}: {hit[0]}" for path in paths for hit in MORE.finditer(path.read_text(encoding="utf-8"))}
    return [*done.stdout.splitlines(), *done.stderr.splitlines(), *sorted(found)]


FILES = sorted([*(ROOT / "cdfsg").rglob("*.py"), *(ROOT / "benchmarks").glob("*.py"), *NOTEBOOKS.glob("*.ipynb")])


@pytest.mark.case("safety: nothing dangerous is called")
def test_no_module_or_notebook_evaluates_unpickles_unpacks_files_or_calls_a_shell():
    assert len(FILES) > 50 and not faults(*FILES)
    assert [path.name for path in FILES if "Unpickler" in path.read_text(encoding="utf-8")] == ["packages.py"]


@pytest.mark.case("safety: nothing dangerous is called")
@pytest.mark.parametrize(
    "line",
    [
        "eval(x)", "exec(x)", "import pickle as p\np.loads(x)", "from pickle import load as read\nread(x)",
        "import pandas as pd\npd.read_pickle(x)", "import marshal\nmarshal.loads(x)", "joblib.load(x)",
        "np.load(x, allow_pickle=True)", "np.load(x, allow_pickle=flag)", "subprocess.run(x, shell=True)",
        "tarfile.open(x).extractall(y)", "archive.extract(x)", "import tempfile\ntempfile.mktemp()", "__import__(x)",
        "open('/tmp/cdfsg.lock', 'w')", "import os\nos.system(x)", "import os\nos.popen(x)", "compile(x, y, z)",
    ],
)  # fmt: skip
def test_the_search_for_dangerous_calls_finds_each_kind(tmp_path, line):
    (tmp_path / "bad.py").write_text(line)
    (tmp_path / "good.py").write_text("np.load(x, allow_pickle=False)\nsubprocess.run(x)\nre.compile(x)\na.open(x)")
    assert faults(tmp_path / "bad.py") and not faults(tmp_path / "good.py")


# --- checksums come first --------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("CDFSG_DATA_DIR", str(tmp_path / "raw"))
    return tmp_path / "raw"


@pytest.mark.case("safety: checksum before parser")
@pytest.mark.parametrize("name", [mnist.FILE, f"{mnist.FILE}.gz"])
def test_an_idx_file_with_another_checksum_never_reaches_the_parser(folder, monkeypatch, name):
    folder.mkdir()
    (folder / name).write_bytes(gzip.compress(bytes(5000)) if name.endswith(".gz") else bytes(5000))
    monkeypatch.setattr(mnist, "SOURCES", mnist.SOURCES[:1])
    reached = []
    monkeypatch.setattr(mnist.np, "frombuffer", lambda *arguments, **_: reached.append(arguments))
    with pytest.raises(DownloadError):
        mnist.load_images()
    assert reached == [] and os.listdir(folder) == [name]


# --- temporary files -------------------------------------------------------------------------------------


@pytest.mark.case("safety: temporary files")
def test_nothing_is_written_through_a_link_that_someone_put_in_the_way(tmp_path, folder):
    folder.mkdir()
    victim = tmp_path / "victim"
    victim.write_bytes(b"precious")
    (folder / "x").symlink_to(victim)
    obtain("x", MD5, [Source("mirror", lambda: GOOD)])
    (folder / "y").symlink_to(victim)
    write_atomically(folder / "y", "new")
    assert victim.read_bytes() == b"precious"
    assert (folder / "x").read_bytes() == GOOD and (folder / "y").read_bytes() == b"new"


@pytest.mark.case("safety: temporary files")
def test_temporary_files_lie_beside_their_target_under_names_not_to_be_foreseen(folder, monkeypatch):
    seen = []
    replace = os.replace
    monkeypatch.setattr(os, "replace", lambda old, new: seen.append(Path(old)) or replace(old, new))
    for _ in range(2):
        obtain("x", MD5, [Source("mirror", lambda: GOOD)])
        (folder / "x").unlink()
    first, second = seen
    assert first != second and first.parent == second.parent == folder
    assert len(first.name.removeprefix("x").removesuffix(".cdfsg.tmp")) >= 8  # letters that nobody can foresee


# --- parameters are values, not code ---------------------------------------------------------------------


def codes(target):
    return [
        f"__import__('os').mkdir({target!r})",
        f'mnist"\n__import__("os").mkdir({target!r})\n"',
        f'mnist"; __import__("os").mkdir({target!r}); "',
        f"{{__import__('os').mkdir({target!r})}}",
        f"$(mkdir {target})",
        f"`mkdir {target}`; mkdir {target} & mkdir {target}",
        f"%sx mkdir {target}",
        f"\\\n!mkdir {target}\n",
        f"'''\n!mkdir {target}\n'''",
    ]


@pytest.mark.case("safety: code in parameters of notebooks")
def test_code_in_the_parameters_of_a_notebook_arrives_as_text(tally, tmp_path, monkeypatch):
    monkeypatch.setattr(notebooks, "NOTEBOOKS", tmp_path)
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    target = str(tmp_path / "pwned")
    parameters = nbformat.v4.new_code_cell('word = ""\nwords = []', metadata={"tags": ["parameters"]})
    notebook = nbformat.v4.new_notebook(cells=[parameters, nbformat.v4.new_code_cell("print([word, *words])")])
    notebook.metadata["kernelspec"] = {"display_name": "Mine", "language": "python", "name": "python3"}
    nbformat.write(notebook, tmp_path / "tale.ipynb")
    word, *words = codes(target)  # all in one execution, as to start a kernel takes seconds
    output = notebooks.execute("tale", {"word": word, "words": words}, tmp_path / "out.ipynb")
    printed = [out["text"] for cell in nbformat.read(output, as_version=4).cells for out in cell.get("outputs", [])]
    for text, code in zip(ast.literal_eval("".join(printed)), [word, *words], strict=True):
        tally(text == code and not Path(target).exists())
    with pytest.raises(ValueError, match="has no parameter"):
        notebooks.execute("tale", {f"x = __import__('os').mkdir({target!r})": 1}, tmp_path / "out.ipynb")
    tally(not Path(target).exists())


@pytest.mark.case("safety: code in arguments of commands")
def test_code_in_the_arguments_of_commands_is_refused_in_words(tally, tmp_path, capsys):
    target = str(tmp_path / "pwned")
    for code in codes(target):
        commands = [["status", "--only", only] for only in (code, f"dataset={code}", f"{code}=x")]
        commands += [["quick", "--dask", code], ["quick", "--jobs", code], [code]]
        for command in commands:
            with contextlib.suppress(SystemExit):
                assert cli.main(command) == 1
            err = capsys.readouterr().err
            tally("Traceback" not in err and len(err) > 10 and not Path(target).exists())
