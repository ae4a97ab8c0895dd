"""The environments for others, Docker, dev container and Binder, install what the lock names and nothing else."""

import json
import os
import re
import tomllib

import pytest
from packaging.specifiers import SpecifierSet

from cdfsg.files import ROOT

BINDER = ROOT / "binder"
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


def test_docker_installs_the_lock_with_its_hashes_and_then_the_package_alone():
    assert installs("\n".join(commands("Dockerfile"))) == [LOCKED, OURS]


def test_the_makefile_installs_the_same():
    text = text_of("Makefile").partition(".venv/ready:")[2].replace(" --disable-pip-version-check", "")
    assert installs(text) == [LOCKED, OURS]


def test_the_dev_container_is_the_docker_image_with_the_package_from_the_mounted_folder():
    container = json.loads(text_of(".devcontainer", "devcontainer.json"))
    build = {key: (ROOT / ".devcontainer" / value).resolve() for key, value in container["build"].items()}
    assert build == {"dockerfile": ROOT / "Dockerfile", "context": ROOT}
    assert installs(container["postCreateCommand"]) == [OURS]
    assert f"USER {container['remoteUser']}" in commands("Dockerfile")


def test_binder_installs_the_lock_with_its_hashes_and_then_the_package_alone():
    assert commands("binder", "requirements.txt") == ["--require-hashes", "-r ../requirements.lock"]
    assert (BINDER / ".." / "requirements.lock").samefile(ROOT / "requirements.lock")
    assert installs("\n".join(commands("binder", "postBuild"))) == [OURS]
    assert os.access(BINDER / "postBuild", os.X_OK)
    # Any other file here could bring packages of its own, or take precedence over these.
    assert {path.name for path in BINDER.iterdir()} == {"requirements.txt", "runtime.txt", "postBuild"}


@pytest.mark.parametrize("file, pattern", [("Dockerfile", r"^FROM python:(3\.\d+)-slim$"),
                                           ("binder/runtime.txt", r"^python-(3\.\d+)$")])  # fmt: skip
def test_every_environment_has_a_python_that_the_package_allows_and_all_the_same(file, pattern):
    (version,) = re.findall(pattern, text_of(file), re.MULTILINE)
    with open(ROOT / "pyproject.toml", "rb") as stream:
        allowed = tomllib.load(stream)["project"]["requires-python"]
    assert version in SpecifierSet(allowed)
    assert f"python-{version}\n" == text_of("binder/runtime.txt")


def test_nobody_is_root_in_the_container_and_it_begins_with_the_help():
    lines = commands("Dockerfile")
    users = [line.split()[1] for line in lines if line.startswith("USER ")]
    assert users and users[-1] not in ("root", "0")
    assert lines[-1] == 'CMD ["make", "help"]' and re.search(r"^help:", text_of("Makefile"), re.MULTILINE)


def test_what_docker_leaves_out_is_nothing_that_git_keeps():
    left_out = {line.strip("/").removeprefix("**/") for line in commands(".dockerignore")}
    ignored = {line.strip("/") for line in commands(".gitignore")}
    assert left_out - ignored == {".git"}
