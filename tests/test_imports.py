"""Imports point down; what the lower floors need is in `tests.test_environments`, where they have nothing else."""

import ast
from graphlib import TopologicalSorter

from cdfsg.files import ROOT

FLOORS = (
    {"checks", "linalg", "merits", "problems", "penalty", "metrics", "files", "checksums"}
    | {"convention", "streamed", "exact", "refinement", "structure"},
    {"datasets", "solvers", "lock", "processes"},
    {"theory", "estimator", "eigenproblems"},
    {"paper", "suite", "__main__"},
)


def name_of(path):
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


MODULES = {name_of(path): ast.parse(path.read_text(encoding="utf-8")) for path in (ROOT / "cdfsg").rglob("*.py")}
LATE = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


def for_types_alone(node):
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def imported(module, *, at_once):
    """Modules named by the import statements of a module: all, or those that importing the module runs."""
    todo, names = list(MODULES[module].body), set()
    while todo:
        node = todo.pop()
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            parts = {f"{node.module}.{alias.name}" for alias in node.names}
            names |= (parts & MODULES.keys()) | ({node.module} if parts - MODULES.keys() else set())
        elif not at_once or not (isinstance(node, LATE) or for_types_alone(node)):
            todo += ast.iter_child_nodes(node)
    return names


def floor_of(module):
    """Number of the floor of a module; -1 for the package itself, which imports the estimator at its first use."""
    part = [*module.split("."), ""][1]
    return next((number for number, floor in enumerate(FLOORS) if part in floor), -1)


def test_every_module_stands_on_a_floor():
    assert [module for module in MODULES if floor_of(module) < 0] == ["cdfsg"]


def test_a_module_imports_nothing_from_a_floor_above_even_in_a_function():
    ours = {module: imported(module, at_once=False) & MODULES.keys() for module in MODULES.keys() - {"cdfsg"}}
    upward = {module: {other for other in ours[module] if floor_of(other) > floor_of(module)} for module in ours}
    assert not {module: others for module, others in upward.items() if others}


def test_no_imports_go_in_a_circle():
    ours = {module: imported(module, at_once=True) & MODULES.keys() - {module} for module in MODULES}
    # A module may name its own package for a part of it.
    TopologicalSorter({module: ours[module] - {module.rpartition(".")[0]} for module in MODULES}).prepare()
