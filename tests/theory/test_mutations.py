"""A check notices a relation that is made wrong: the table of what each notices, and a part of it made anew."""

import csv

import pytest
import theory_mutations

from cdfsg.theory import statements
from cdfsg.theory.statement import FALSE, Statement, at_most, equal, true
from cdfsg.theory.statements import STATEMENTS

QUICK = ("eq:normgraf", "as:algo (1), shared", "pro:boundy", "remark on v_m", "pr:yktrack", "pr:xkdist", "eq:H")


def table():
    with theory_mutations.TABLE.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("label", QUICK)
def test_a_check_notices_of_a_wrong_relation_what_the_table_says(label):
    assert list(theory_mutations.rows(STATEMENTS[label])) == [row for row in table() if row["statement"] == label]


def test_every_wrong_relation_is_noticed_and_one_of_a_percent_wherever_a_bound_is_tight():
    assert {row["statement"] for row in table()} <= STATEMENTS.keys()
    for row in table():
        tight = row["kind"] == "identity" or float(row["tightest"] or 0) >= 0.995
        assert row["noticed"] == ("negation" if row["kind"] == "condition" else "1%") if tight else row["noticed"]


def test_every_statement_that_is_not_false_has_a_relation_in_the_table():
    missing = {entry.label for entry in statements.EVERY} - {row["statement"] for row in table()}
    verdicts = {label: row["verdict"] for label, row in statements.recorded().items()}
    assert {label for label in missing if verdicts.get(label) != FALSE} == set()


def test_a_relation_whose_change_goes_unnoticed_is_left_empty():
    wide = Statement(lambda: iter([at_most(-9.0, 1.0)]), label="s", place="p", says="S.")
    items = ("x", at_most(0.995, 1.0), equal(1.0, 1.0, 1.0)), true(1 < 2)
    tight = Statement(lambda: iter(items), label="s", place="p", says="S.")
    assert [row["noticed"] for row in theory_mutations.rows(wide)] == [""]
    assert [row["noticed"] for row in theory_mutations.rows(tight)] == ["1%", "1%", "negation"]
