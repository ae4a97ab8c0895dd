"""The code that decides a record's numbers, and its digest.

A record is made anew when that code changes, and only then: comments and docstrings do not count, nor do the checks
that refuse bad input, nor a solver or a merit that the record does not use.  A new one therefore leaves the records of
the others as they are.
"""

import ast
import hashlib
import importlib.util
import io
import tokenize
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import TypeGuard

_SHARED = (
    "linalg.py", "problems.py", "metrics.py", "datasets/views.py", "solvers/lanes.py", "solvers/draws.py",
    "paper/compute.py",
)  # fmt: skip
"""What every record's numbers come from."""

_REFUSALS = {"ValueError", "TypeError", "IndexError"}
"""What a check raises.  Any other error may be caught and decide about a record, as a solver's `Refusal` does."""


@lru_cache(maxsize=64)
def code_digest(*modules: str) -> str:
    """Digest of the shared code and of that behind the modules named: a solver's, a merit's.

    To a module belong its own file and all that this imports of its package, packages' ``__init__`` excepted: there are
    registrations only.
    """
    package = Path(__file__).resolve().parent.parent
    files = {package / name for name in _SHARED}
    for module in modules:
        files |= _files_behind(module)
    digest = hashlib.sha256()
    for file in sorted(files, key=lambda file: (file.parent.name, file.name)):
        digest.update(file.name.encode() + b"\0" + code_of(file.read_text(encoding="utf-8")).encode() + b"\0")
    return digest.hexdigest()


def code_of(source: str) -> str:
    """Python source without its comments, docstrings, blank lines, and the checks that do nothing but refuse."""
    lines = source.splitlines()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            row, column = token.start
            lines[row - 1] = lines[row - 1][:column]
    bare = "\n".join(lines)
    for node in ast.walk(ast.parse(bare)):
        if _is_docstring(node) or _only_refuses(node):
            rows = slice(node.lineno - 1, node.end_lineno)
            alone = ast.get_source_segment(bare, node) == "\n".join(lines[rows]).strip()
            if alone:
                lines[rows] = [""] * len(lines[rows])
    return "\n".join(line.rstrip() for line in lines if line.strip())


def _is_docstring(node: ast.AST) -> TypeGuard[ast.Expr]:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _only_refuses(node: ast.AST) -> TypeGuard[ast.If]:
    """Whether a node is ``if ...: raise ValueError(...)``: it has a say in whether there are numbers, not in which."""
    if not (isinstance(node, ast.If) and len(node.body) == 1 and not node.orelse):
        return False
    raised = node.body[0].exc if isinstance(node.body[0], ast.Raise) else None
    kind = raised.func if isinstance(raised, ast.Call) else None
    return isinstance(kind, ast.Name) and kind.id in _REFUSALS


def _files_behind(module: str) -> set[Path]:
    """The file of a module and those of the modules of its package that it imports, and so on."""
    package = module.split(".")[0]
    files: dict[str, Path] = {}
    waiting = [module]
    while waiting:
        name = waiting.pop()
        file = _file_of(name)
        if name in files or file is None or file.name == "__init__.py":
            continue
        files[name] = file
        waiting += [other for other in _imports(name, file) if other.split(".")[0] == package]
    return set(files.values())


def _file_of(module: str) -> Path | None:
    try:
        found = importlib.util.find_spec(module)
    except (ModuleNotFoundError, ValueError):  # a name in a module; a module without a file, as __main__
        return None
    return Path(found.origin).resolve() if found is not None and found.has_location and found.origin else None


def _imports(module: str, file: Path) -> Iterator[str]:
    """Every name after ``import`` and ``from``, also ``a.b`` of ``from a import b``, which may be a module."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            origin = "." * node.level + (node.module or "")
            origin = importlib.util.resolve_name(origin, module.rpartition(".")[0])
            yield origin
            yield from (f"{origin}.{alias.name}" for alias in node.names)
