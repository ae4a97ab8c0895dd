"""What the README, CONTRIBUTING and the pages of the guide tell people to type works as it stands."""

import doctest
import re
import tomllib
from urllib.parse import unquote

import pytest
import yaml

from cdfsg import __main__ as cli
from cdfsg.files import ROOT

PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")),
    *sorted((ROOT / "docs" / "pages").glob("*.md")),
]


def text_of(path):
    return path.read_text(encoding="utf-8")


def blocks(text):
    """The Python code of a page, with its place among the lines."""
    for found in re.finditer(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
        yield text.count("\n", 0, found.start(1)), found[1]


def run(name, text):
    """Run the code of a page from top to bottom in one namespace; what stands after ``>>>`` must print what follows."""
    namespace = {"__name__": name}
    parser, runner = doctest.DocTestParser(), doctest.DocTestRunner(verbose=False)
    for line, code in blocks(text):
        if ">>>" in code:
            session = parser.get_doctest(code, {}, name, name, line)
            session.globs = namespace
            said = []
            runner.run(session, out=said.append, clear_globs=False)
            assert not said, "".join(said)
        else:
            exec(compile("\n" * line + code, name, "exec"), namespace)


@pytest.mark.parametrize("path", [path for path in PAGES if any(blocks(text_of(path)))], ids=lambda path: path.name)
def test_the_code_of_a_page_runs_and_prints_what_the_page_says(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run(path.name, text_of(path))


@pytest.mark.parametrize("said, error", [("2", AssertionError), ("1\n```\n\n```python\n1 / 0", ZeroDivisionError)])
def test_code_that_fails_or_prints_something_else_is_noticed(said, error):
    run("good.md", "```python\nx = 1\n```\n\n```python\n>>> x\n1\n```\n")
    with pytest.raises(error):
        run("bad.md", f"```python\nx = 1\n```\n\n```python\n>>> x\n{said}\n```\n")


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_every_command_that_a_page_names_exists(path):
    targets = re.findall(r"^([a-z]+):", text_of(ROOT / "Makefile"), re.MULTILINE)
    text = text_of(path)
    assert set(re.findall(r"-m cdfsg ([a-z]+)", text)) <= set(cli._COMMANDS)
    assert set(re.findall(r"(?:`|^)make ([a-z]+)", text, re.MULTILINE)) <= set(targets)


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_every_file_that_a_page_leads_to_exists(path):
    links = re.findall(r"\]\(([^)#\s]+)", text_of(path))
    missing = [link for link in links if "://" not in link and not (path.parent / unquote(link)).exists()]
    assert not missing


def test_the_readme_cites_paper_and_software_as_the_citation_file_does():
    cited = yaml.safe_load(text_of(ROOT / "CITATION.cff"))
    (paper,) = cited["references"]
    entries = re.findall(r"^@\w+\{.+?^\}", text_of(ROOT / "README.md"), re.DOTALL | re.MULTILINE)
    of_paper, of_software = (dict(re.findall(r"(\w+)\s*= \{+(.+?)\}+,?$", text, re.MULTILINE)) for text in entries)
    authors = " and ".join(f"{author['family-names']}, {author['given-names']}" for author in paper["authors"])
    assert (of_paper["title"], of_paper["author"]) == (paper["title"], authors)
    assert (of_paper["year"], f"arXiv:{of_paper['eprint']}") == (str(paper["year"]), paper["identifiers"][0]["value"])
    assert (of_software["title"], of_software["version"]) == (cited["title"], cited["version"])
    assert of_software["author"] == cited["authors"][0]["name"]


def test_changelog_package_and_citation_are_of_one_version():
    (newest, *_) = re.findall(r"^## \[(.+?)\] - ", text_of(ROOT / "CHANGELOG.md"), re.MULTILINE)
    version = tomllib.loads(text_of(ROOT / "pyproject.toml"))["project"]["version"]
    assert newest == version == yaml.safe_load(text_of(ROOT / "CITATION.cff"))["version"]
