"""The package alone, and environments for others: they install what is named and nothing else, and run what is said."""

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from importlib import metadata

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from cdfsg.files import ROOT
from cdfsg.paper.report.site import SITE
from tests.project import copy, python

LOCKED = "--require-hashes -r requirements.lock"
OURS = "--no-deps --no-build-isolation -e ."


def text_of(*parts):
    return ROOT.joinpath(*parts).read_text(encoding="utf-8")


def commands(*parts):
    """Lines of a file that are no comments, without the continuation of lines."""
    return [line for line in text_of(*parts).replace("\\\n", " ").splitlines() if line and line[0] != "#"]


def installs(text):
    """What ``pip install`` is asked for, without options on how it works."""
    found = re.findall(r"pip install (.+?)(?=\s*(?:&&|\"|$))", text, re.MULTILINE)
    return [" ".join(word for word in line.split() if word not in ("--no-cache-dir", "--quiet")) for line in found]


def project():
    return tomllib.loads(text_of("pyproject.toml"))["project"]


@pytest.mark.parametrize(
    "file, expected",
    [("Dockerfile", [LOCKED, OURS]), ("Makefile", [LOCKED, OURS]), ("binder/postBuild", [OURS]),
     (".devcontainer/devcontainer.json", [OURS])],
)  # fmt: skip
def test_an_environment_installs_the_lock_and_then_the_package_alone(file, expected):
    text = "\n".join(commands(file)).rpartition(".venv/ready:")[2].replace(" --disable-pip-version-check", "")
    assert installs(text) == expected


@pytest.mark.parametrize("given, anew", [("", False), (sys.executable, False), ("other", True), ("missing", True)])
def test_another_python_that_is_given_makes_the_environment_anew_and_its_own_does_not(tmp_path, given, anew):
    copy(tmp_path, "Makefile", "requirements.lock", "pyproject.toml")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / ".venv"], check=True)
    (tmp_path / ".venv" / "ready").touch()
    if given == "other":
        (tmp_path / given).write_text("#!/bin/sh\necho /usr/another 3.14")
        (tmp_path / given).chmod(0o755)
        given = str(tmp_path / given)
    command = ["make", "--dry-run", "setup", *([f"PYTHON={given}"] if given else [])]
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0 and ("venv --clear" in done.stdout) == anew, done.stdout + done.stderr


def test_the_dev_container_is_the_docker_image_and_nobody_is_root():
    container = json.loads(text_of(".devcontainer", "devcontainer.json"))
    build = {key: (ROOT / ".devcontainer" / value).resolve() for key, value in container["build"].items()}
    assert build == {"dockerfile": ROOT / "Dockerfile", "context": ROOT}
    users = [line for line in commands("Dockerfile") if line.startswith("USER ")]
    assert users[-1] == f"USER {container['remoteUser']}" not in ("USER root", "USER 0")
    assert commands("Dockerfile")[-1] == 'CMD ["make", "help"]'


def test_binder_installs_the_lock_and_has_no_other_file_that_could_bring_packages():
    assert commands("binder", "requirements.txt") == ["--require-hashes", "-r ../requirements.lock"]
    assert os.access(ROOT / "binder" / "postBuild", os.X_OK)
    assert set(os.listdir(ROOT / "binder")) == {"requirements.txt", "runtime.txt", "postBuild"}


@pytest.mark.parametrize("file, pattern", [("Dockerfile", r"^FROM python:(3\.\d+)-slim$"),
                                           ("binder/runtime.txt", r"^python-(3\.\d+)$")])  # fmt: skip
def test_every_environment_has_a_python_that_the_package_allows_and_all_the_same(file, pattern):
    (version,) = re.findall(pattern, text_of(file), re.MULTILINE)
    assert version in SpecifierSet(project()["requires-python"])
    assert f"python-{version}\n" == text_of("binder/runtime.txt")


def test_what_docker_leaves_out_is_nothing_that_git_keeps():
    left_out = {line.strip("/").removeprefix("**/") for line in commands(".dockerignore")}
    ignored = {line.strip("/") for line in commands(".gitignore")}
    assert left_out - ignored == {".git"}


WORKFLOWS = {"test": ["make test"], "nightly": ["make reproduce", "make kernels", "make report"]}


def workflow(name):
    """The only job of a workflow."""
    (job,) = yaml.safe_load(text_of(".github", "workflows", f"{name}.yml"))["jobs"].values()
    return job


def inputs(name):
    """What the actions of a workflow are given, by the name of the action."""
    return {
        step["uses"].partition("@")[0].removeprefix("actions/"): step["with"]
        for step in workflow(name)["steps"] if "uses" in step
    }  # fmt: skip


@pytest.mark.parametrize("name", WORKFLOWS)
def test_a_workflow_runs_commands_that_make_help_lists(name):
    assert [step["run"] for step in workflow(name)["steps"] if "run" in step] == WORKFLOWS[name]
    listed = re.findall(r"^(\w+):.*## ", text_of("Makefile"), re.MULTILINE)
    assert set(WORKFLOWS[name]) <= {f"make {target}" for target in listed}
    assert set(WORKFLOWS["test"]) <= set(re.findall(r"^(make \w+) +#", text_of("README.md"), re.MULTILINE))


def test_the_tests_run_on_all_pythons_of_the_classifiers():
    pythons = [line.rpartition(" ")[2] for line in project()["classifiers"] if re.search(r":: 3\.\d+$", line)]
    matrix = workflow("test")["strategy"]["matrix"]
    assert matrix["python"] == [pythons[0], pythons[-1]]
    assert [more["python"] for more in matrix["include"]] == pythons[1:-1]
    assert {more["os"] for more in matrix["include"]} <= set(matrix["os"])
    assert project()["requires-python"] == f">={pythons[0]}"
    assert inputs("nightly")["setup-python"]["python-version"] in pythons
    assert f"Python {pythons[0]} to {pythons[-1]}" in text_of("README.md")


@pytest.mark.parametrize("name", WORKFLOWS)
def test_what_a_workflow_keeps_and_what_its_keys_are_made_of_is_there(name):
    given = inputs(name)
    assert (ROOT / given["setup-python"]["cache-dependency-path"]).is_file()
    assert f"{given['cache']['path']}/" in commands(".gitignore")
    (pattern,) = re.findall(r"hashFiles\('(.+?)'\)", given["cache"]["key"])
    assert ROOT / "cdfsg" / "datasets" / "download.py" in ROOT.glob(pattern)
    if "upload-artifact" in given:
        assert ROOT / given["upload-artifact"]["path"] == SITE


# --- the package without the extra and without the repository --------------------------------------------


def required(requires):
    """Names of the distributions that pip installs for these requirements, on this machine."""
    found, todo = set(), [*requires]
    while todo:
        requirement = Requirement(todo.pop())
        wanted = requirement.marker is None or requirement.marker.evaluate({"extra": ""})
        if wanted and requirement.name not in found:
            found.add(requirement.name)
            todo += metadata.distribution(requirement.name).requires or ()
    return found


@pytest.fixture(scope="module")
def light(tmp_path_factory):
    """Folder of packages that has our wheel, and links to what pip would install with it; nothing else."""
    folder = tmp_path_factory.mktemp("light")
    source = copy(folder / "source", "cdfsg", "pyproject.toml", "README.md", "LICENSE")
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    offline = ["--no-deps", "--no-index"]
    subprocess.run([*pip, "wheel", *offline, "--no-build-isolation", "-w", folder, source], check=True)
    subprocess.run([*pip, "install", *offline, "--target", folder / "site", *folder.glob("*.whl")], check=True)
    (ours,) = metadata.distributions(path=[str(folder / "site")])
    for name in required(ours.requires):
        distribution = metadata.distribution(name)
        for top in {file.parts[0] for file in distribution.files} - {"..", "__pycache__"}:
            (folder / "site" / top).symlink_to(distribution.locate_file(top))
    return folder / "site"


ALONE = ("-S", "-W", "error")
"""How Python has no packages but those of its path."""


def test_the_package_brings_neither_jupyter_nor_matplotlib_nor_pandas(light):
    assert {path.name for path in light.iterdir()} >= {"cdfsg", "numpy", "scipy", "sklearn"}
    assert not {path.name for path in light.iterdir()} & {"pandas", "matplotlib", "jupyter", "IPython", "httpx2"}


def test_the_lines_of_the_readme_run_with_the_package_alone(light, tmp_path):
    (lines,) = re.findall(r"```python\n(.*?)```", text_of("README.md"), re.DOTALL)
    done = python(*ALONE, "-c", lines, root=light, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("[0.8")


def test_the_lower_floors_and_the_bundled_data_work_with_the_package_alone(light, tmp_path):
    code = """
import pkgutil
import cdfsg
from cdfsg.datasets import load, make_views
above = ("cdfsg.paper", "cdfsg.suite", "cdfsg.__main__")
for module in pkgutil.walk_packages(cdfsg.__path__, "cdfsg."):
    if not module.name.startswith(above):
        __import__(module.name)
print(cdfsg.__file__, load("digits"), load("synthetic"), make_views(50, (3, 2), (0.9,), 0))
"""
    done = python(*ALONE, "-c", code, root=light, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(str(light))


@pytest.mark.parametrize("checkout, words", [(False, "a checkout of the repository"), (True, "'.[suite]'")])
def test_a_command_says_in_a_sentence_that_it_needs_the_repository_or_the_extra(light, tmp_path, checkout, words):
    site = tmp_path / "site"
    shutil.copytree(light, site, symlinks=True)
    if checkout:
        (tmp_path / "site" / "data" / "paper").mkdir(parents=True)
    done = python(*ALONE, "-m", "cdfsg", "status", root=site, cwd=tmp_path)
    assert done.returncode == 1 and done.stdout == ""
    assert done.stderr.startswith("cdfsg: python -m cdfsg ") and done.stderr.count("\n") == 1 and words in done.stderr
