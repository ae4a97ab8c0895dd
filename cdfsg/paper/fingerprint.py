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


@lru_cache(maxsize=64)
def code_of(source: str) -> str:
    """Python source without its comments, docstrings, blank lines, and what does nothing but refuse."""
    lines = source.splitlines()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            row, column = token.start
            lines[row - 1] = lines[row - 1][:column]
    for node in ast.walk(ast.parse("\n".join(lines))):
        if not (isinstance(node, ast.stmt) and _is_alone(node, lines)):
            continue
        rows = slice(node.lineno - 1, node.end_lineno)
        if _is_docstring(node) or _only_refuses(node):
            lines[rows] = [""] * len(lines[rows])
        elif isinstance(node, ast.ImportFrom):
            node.names = _deciding(node)
            kept = " " * node.col_offset + ast.unparse(node) if node.names else ""
            lines[rows] = [kept, *[""] * (len(lines[rows]) - 1)]
    return "\n".join(line.rstrip() for line in lines if line.strip())


def _is_alone(node: ast.stmt, lines: list[str]) -> bool:
    """Whether a statement shares its lines with no other, and was not dropped with what is around it."""
    first, last = lines[node.lineno - 1].encode(), lines[(node.end_lineno or node.lineno) - 1].encode()
    return bool(first.strip()) and not first[: node.col_offset].strip() and not last[node.end_col_offset :].strip()


def _is_docstring(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _only_refuses(node: ast.AST) -> bool:
    """Whether a statement has a say in whether there are numbers but not in which.

    That is ``raise ValueError(...)``, a call of a function whose name begins with ``require_`` or ``_require_``, such
    a function, and an ``if``, a loop or a function with nothing else in it.
    """
    match node:
        case ast.Raise(exc=ast.Call(func=ast.Name(id=kind))):
            return kind in _REFUSALS
        case ast.Expr(value=ast.Call(func=ast.Name(id=name))) | ast.FunctionDef(name=name) if _requires(name):
            return True
        case ast.If(body=body, orelse=[]) | ast.For(body=body, orelse=[]):
            return all(map(_only_refuses, body))
        case ast.FunctionDef(body=body, decorator_list=[]):
            said = [part for part in body if not _is_docstring(part)]
            return bool(said) and all(map(_only_refuses, said))
    return False


def _requires(name: str) -> bool:
    return name.removeprefix("_").startswith("require_")


def _deciding(node: ast.ImportFrom) -> list[ast.alias]:
    """What an import brings but functions that only refuse."""
    return [alias for alias in node.names if not _requires(alias.name)]


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
    """Every name after ``import`` and ``from``, also ``a.b`` of ``from a import b``, which may be a module.

    Functions that only refuse do not count, so that a module of such is not followed.
    """
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and (names := _deciding(node)):
            origin = "." * node.level + (node.module or "")
            origin = importlib.util.resolve_name(origin, module.rpartition(".")[0])
            yield origin
            yield from (f"{origin}.{alias.name}" for alias in names)
