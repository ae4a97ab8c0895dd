import ast
import shutil
from pathlib import Path

import pytest

from cdfsg.paper import fingerprint
from cdfsg.paper.fingerprint import code_of

MODULES = ("cdfsg.solvers.landing", "cdfsg.merits.huber")
BEHIND = ("linalg", "metrics", "problems", "datasets/views", "solvers/lanes", "paper/compute")


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A copy of the package, and the digest of the code in it for a solver and a merit of its own."""
    copy = tmp_path / "cdfsg"
    shutil.copytree(Path(fingerprint.__file__).parent.parent, copy, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(fingerprint, "__file__", str(copy / "paper" / "fingerprint.py"))
    monkeypatch.setattr(fingerprint, "_file_of", lambda module: find(copy, module))
    return copy


def find(copy, module):
    file = copy.parent / (module.replace(".", "/") + ".py")
    return file if file.exists() else None


def digest():
    return fingerprint.code_digest.__wrapped__(*MODULES)  # past the cache


def append(file, text):
    with open(file, "a") as stream:
        stream.write(text)


@pytest.mark.parametrize("name", [*BEHIND, "solvers/landing", "solvers/spans", "merits/huber"])
def test_the_digest_changes_with_the_shared_code_and_all_that_a_solver_and_a_merit_are_made_of(package, name):
    before = digest()
    append(package / f"{name}.py", "\nCHANGED = 1\n")
    assert digest() != before


@pytest.mark.parametrize(
    "name",
    [
        "checks", "solvers/rsg_plus", "solvers/__init__", "merits/identity", "merits/__init__", "paper/run",
        "paper/records",
    ],  # fmt: skip
)
def test_the_digest_does_not_change_with_other_solvers_with_registrations_and_with_how_blocks_are_carried_out(
    package, name
):
    before = digest()
    append(package / f"{name}.py", "\nCHANGED = 1\n")
    append(package / "solvers" / "fifth.py", "STEP = 1\n")
    assert digest() == before


@pytest.mark.parametrize("text", ["# a comment\n", "\n\n", '"""A word on the above."""\n'])
def test_the_digest_does_not_change_with_comments_blank_lines_and_docstrings(package, text):
    before = digest()
    append(package / "problems.py", text)
    assert digest() == before


def test_strings_and_signs_of_comments_that_are_code_stay_code():
    source = '"""Doc."""\n\nx = "# no comment"  # one\n\ndef f():\n    """Doc\n\n    more."""\n    return """kept"""\n'
    assert code_of(source) == 'x = "# no comment"\ndef f():\n    return """kept"""'
    assert code_of("def f(): 'doc'; return 1") == "def f(): 'doc'; return 1"


CHECK = "def f(x):\n    if x < {}:\n        raise {}(\n            # why\n            f'{{x}}'\n        )\n    return x"


def test_a_check_that_only_refuses_is_no_code_of_a_number_but_what_may_be_caught_is():
    assert code_of(CHECK.format(0, "ValueError")) == "def f(x):\n    return x"
    for kept in ("Refusal", "NotPositiveDefiniteError"):
        assert code_of(CHECK.format(0, kept)) != code_of(CHECK.format(1, kept))
    assert code_of("if x:\n    raise ValueError(x)\nelse:\n    y = 1") != "y = 1"
    assert code_of("if x:\n    y = 1\n    raise ValueError(x)") != ""


def test_functions_and_loops_that_only_refuse_count_no_more_and_those_that_say_nothing_do():
    alone = "def check(x):\n    'Doc.'\n    for part in x:\n        require_positive(part)\n    _require_two(x)\n"
    assert code_of(alone) == ""
    assert code_of("def require_two(x):\n    n = len(x)\n    if n < 2:\n        raise TypeError(n)") == ""
    for kept in ("def check(x):\n    ...", "def check(x):\n    'Doc.'", "class A:\n    'Doc.'", "y = require_two(x)"):
        assert code_of(kept) == kept.replace("\n    'Doc.'", "")


def test_the_import_of_a_check_does_not_count_and_any_other_does():
    assert code_of("from a import (\n    b,\n    require_two,\n)\nx = b") == "from a import b\nx = b"
    assert code_of("from a import require_two\nx = 1") == "x = 1"
    assert code_of("from a import b as c") == "from a import b as c"


def test_no_error_that_a_check_raises_is_caught_in_the_code_of_the_numbers():
    """Else it would decide about a number after all.  Conversions of foreign input are excepted: they raise again."""
    for name in fingerprint._SHARED:
        tree = ast.parse((Path(fingerprint.__file__).parent.parent / name).read_text())
        for handler in (node for node in ast.walk(tree) if isinstance(node, ast.ExceptHandler)):
            caught = {node.id for node in ast.walk(handler.type) if isinstance(node, ast.Name)}
            raises = isinstance(handler.body[-1], ast.Raise)
            assert raises or not caught & fingerprint._REFUSALS - {"TypeError"}, f"{name}:{handler.lineno}"


def test_a_module_that_imports_in_any_form_brings_what_it_imports(package):
    text = "from . import spans\nimport cdfsg.metrics\nfrom cdfsg import penalty\n"
    (package / "solvers" / "fifth.py").write_text(text)
    behind = fingerprint._files_behind("cdfsg.solvers.fifth")
    assert {"fifth.py", "spans.py", "metrics.py", "penalty.py"} <= {file.name for file in behind}
