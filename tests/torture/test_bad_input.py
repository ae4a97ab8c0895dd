"""Input that no run can use is refused, case by case, with a text that names the argument and what is expected.

The texts are kept in ``bad_input.toml``, so that a change of one is seen.  After a change that is meant, write them
anew and read the difference::

    .venv/bin/python -m tests.torture.test_bad_input
"""

import contextlib
import io
import json
import re
import tomllib
import warnings
from functools import cache
from pathlib import Path

import pytest

from cdfsg.files import ROOT, write_atomically
from cdfsg.paper.report import notebooks
from tests.torture import refusals_estimator  # noqa: F401  # adds its cases
from tests.torture.refusals import BAD

pytestmark = pytest.mark.case("bad input: refused with the argument and the remedy")

SNAPSHOT = Path(__file__).with_name("bad_input.toml")
REMEDY = re.compile(
    r"expected|must|needs?\b|required|of the form|choose from|known\b|knows |should name|there are: |it has "
    r"|has the settings|is a method for|defined for|at most|set [A-Z_]+ to |use |take |give |make |drop |ask for "
    r"|pass |Call "
)
"""What is expected or to be done, in the words that the texts have for it."""


def told(name):
    """Kind and text of what a case raises, without where the project lies and which notebooks it has."""
    try:
        with contextlib.redirect_stderr(io.StringIO()):
            BAD[name]()
    except (Exception, SystemExit) as error:
        text = f"{type(error).__name__}: {error}"
        return text.replace(str(ROOT), "ROOT").replace(", ".join(notebooks.names()), "NOTEBOOKS")
    return "nothing was raised"


@cache
def recorded():
    return tomllib.loads(SNAPSHOT.read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_refused_with_the_text_on_record(name):
    text = told(name)
    assert text == recorded().get(name), "if the change is meant: python -m tests.torture.test_bad_input"
    assert REMEDY.search(text), "it must say what is expected or to be done"
    case = name.partition(": ")[2]
    assert "=" not in case or not [word for word in case.split("=", 1) if word not in text], "name argument and value"


def test_the_record_has_the_texts_of_all_cases_and_of_no_other():
    assert set(recorded()) == set(BAD) and len(BAD) >= 300


if __name__ == "__main__":
    warnings.simplefilter("error")
    lines = [f"{json.dumps(name)} = {json.dumps(told(name))}\n" for name in BAD]
    write_atomically(SNAPSHOT, "# Written by python -m tests.torture.test_bad_input\n" + "".join(lines))
