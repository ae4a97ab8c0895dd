"""The API reference of the report: which modules there are, and a page for each group of them.

What the pages say are the docstrings, which Sphinx reads itself; here is only where they stand.
"""

import pkgutil
from importlib import import_module
from inspect import cleandoc
from types import ModuleType

import cdfsg

LEFT_OUT = ("__main__", "files", "paper")
"""Of no use to others: the commands, the project's own folders, and the reproduction, which CONTRIBUTING describes."""
FRONT = "reference"
"""Page that lists the groups; theirs lie in a folder of that name."""


def groups() -> dict[str, list[str]]:
    """Modules of the package by page: a module by itself, a subpackage with all of its modules."""
    return {
        found.name: [f"cdfsg.{found.name}", *(_inside(found.name) if found.ispkg else ())]
        for found in pkgutil.iter_modules(cdfsg.__path__)
        if found.name not in LEFT_OUT and not found.name.startswith("_")
    }


def pages() -> dict[str, str]:
    """The reference as Markdown (MyST) by name of page."""
    found = groups()
    lines = [
        f"* {{doc}}`cdfsg.{name} <{FRONT}/{name}>`: {_summary(import_module(modules[0]))}"
        for name, modules in found.items()
    ]
    menu = "\n".join(f"cdfsg.{name} <{FRONT}/{name}>" for name in found)
    front = ["# API reference", "What each module offers, from its docstrings.", "\n".join(lines),
             f"```{{toctree}}\n:hidden:\n\n{menu}\n```"]  # fmt: skip
    texts = {f"{FRONT}/{name}": _page(modules) for name, modules in found.items()}
    return {FRONT: "\n\n".join(front) + "\n"} | texts


def _inside(package: str) -> list[str]:
    modules = pkgutil.iter_modules(import_module(f"cdfsg.{package}").__path__, f"cdfsg.{package}.")
    return [module.name for module in modules if not module.name.rpartition(".")[2].startswith("_")]


def _page(modules: list[str]) -> str:
    first, *others = modules
    parts = [f"# {first}", _automodule(first)]
    exported = _exported(import_module(first)) if others else []
    if exported:
        parts.append(f"All of these can be imported from `{first}` itself: {', '.join(exported)}.")
    for name in others:
        parts += [f"## {name}", _automodule(name)]
    return "\n\n".join(parts) + "\n"


def _exported(package: ModuleType) -> list[str]:
    """What a package passes on, each a link to where it is described; constants have no place of their own."""
    found = {name: getattr(package, name) for name in getattr(package, "__all__", ())}
    return [
        f"{{py:obj}}`{name} <{value.__module__}.{name}>`" if hasattr(value, "__module__") else f"`{name}`"
        for name, value in found.items()
    ]


def _automodule(name: str) -> str:
    # What a package only passes on is described where it is defined.
    return f"```{{eval-rst}}\n.. automodule:: {name}\n   :members:\n   :ignore-module-all:\n```"


def _summary(module: ModuleType) -> str:
    return cleandoc(module.__doc__ or "").partition("\n\n")[0].replace("\n", " ")
