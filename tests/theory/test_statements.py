"""The statements: verdicts as recorded, files as generated, words once, and what a check concludes."""

import re

import numpy as np
import pytest

from cdfsg import checksums
from cdfsg.files import PAPER
from cdfsg.theory import counterexamples, statement, statements
from cdfsg.theory.statement import CORRECTED, FALSE, HOLDS, Check, Counterexample, Statement, at_most, equal, true

EVERY = statements.EVERY


@pytest.fixture(scope="module")
def checks():
    return list(statements.check_all())


def test_every_statement_has_the_verdict_that_is_recorded(checks):
    assert statements.differences(checks, statements.recorded()) == []
    assert len(checks) == len(EVERY) == len(statements.STATEMENTS) == 65
    assert [sum(check.verdict == word for check in checks) for word in (HOLDS, CORRECTED, FALSE)] == [34, 22, 9]


def test_the_committed_files_are_those_that_the_code_generates(checks):
    committed = [re.sub(r",\d+$", "", line) for line in checksums.read(PAPER / statements.NAME).decode().splitlines()]
    assert committed == [re.sub(r",\d+$", "", line) for line in statements.as_csv(checks).splitlines()]
    # A search or two may end without a point on one processor and with one on another.
    assert all(check.failed <= 0.01 * check.searches for check in checks)
    assert checksums.read(PAPER / statements.ERRATA).decode() == statements.as_toml()


def test_each_statement_is_tested_enough_and_shows_a_counterexample_unless_it_holds(checks):
    few = {check.statement for check in checks if check.instances < 1000}
    # An instance of these is a whole run of up to 12,800 steps.
    assert few == {"theorem on Algorithm 1", "theorem on Algorithm 1, rate", "theorem on Algorithm 2, rate"}
    assert {check.statement for check in checks if bool(check.witness) != (check.verdict != HOLDS)} == set()
    # Margins are rounding errors or better where a statement holds.
    assert {c.statement: c.margin for c in checks if c.verdict != FALSE and c.margin < -1e-7} == {}


def test_errata_are_of_corrected_or_false_statements_and_each_of_these_has_one(checks):
    verdicts = {check.statement: check.verdict for check in checks}
    assert all(verdicts[entry.label] != HOLDS for entry in EVERY if entry.printed)
    lacking = [entry.label for entry in EVERY if not entry.printed and verdicts[entry.label] != HOLDS]
    # The first needs the corrected def:ocso and nothing else; the second the paper does not claim.
    assert lacking == ["th:sopr_b1", "as:algo (1), shared"]


def test_every_counterexample_refutes_what_a_statement_prints():
    found = {entry for entry in vars(counterexamples).values() if isinstance(entry, Counterexample)}
    assert {entry.setting for entry in found if not entry.refutes} == set()
    assert {entry.counterexample for entry in EVERY} - {None} <= found
    named = {erratum.counterexample for erratum in statements.errata()}
    # No errata: the paper does not claim the first, and the second refutes a sentence that was ours.
    assert found - named == {counterexamples.shared_minibatch, counterexamples.columns_off_the_eigenvectors}


def test_every_statement_says_where_it_stands_and_what_it_assumes():
    for entry in EVERY:
        assert entry.place.startswith(("Section", "Assumption")) and entry.assumes and entry.says.endswith(".")
        assert bool(entry.printed) == bool(entry.severity) and (entry.corrected or not entry.printed)
        assert entry.known_by in statement.KNOWN_BY and (entry.known_by != "proof" or entry.margins.__doc__)
    errata = statements.errata()
    assert len({erratum.place for erratum in errata}) == len(errata) == 54
    assert {erratum.severity for erratum in errata} == set(statement.SEVERITIES)


NUMBERED = {
    "Assumption 1.1": "as:blanket (1), identity", "Definition 2.1": "def:ocso", "Definition 2.2": "def:occd",
    "Definition 2.3": "eq:epfos", "Definition 2.4": "approximate stationarity",
    "Lemma 3.1": "Le_formulation_gradient_f", "Lemma 3.2": "Le_inner_nablah_XQ", "Lemma 3.3": "le:normg",
    "Assumption 3.4": "as:s", "Lemma 3.5": "Le_formulation_hessian_h", "Lemma 3.6": "le:normj",
    "Proposition 3.7": "pro:sigma_up", "Proposition 3.8": "Prop_first_order_equivalence_feasible",
    "Theorem 3.9": "The_first_order_equivalence_feasible", "Proposition 3.10": "pro:saddle",
    "Proposition 3.11": "quadratic proposition", "Theorem 3.12": "thm:refir", "Lemma 3.13": "le:sop_slep, eq:nn",
    "Theorem 3.14": "th:sopr_b1", "Proposition 3.15": "eq:feabound", "Theorem 3.16": "th:star_bx",
    "Corollary 3.17": "corollary of th:star_bx", "Assumption 4.1 (1)": "as:algo (1)", "4.1 (2)": "as:algo (2)",
    "4.1 (3)": "as:algo (3)", "4.1 (4)": "as:algo (4)", "4.1 (5) and Remark 4.2": "as:algo (5)",
    "Remark 4.3": "remark on v_m", "Proposition 4.4": "pro:boundy", "Proposition 4.5": "pr:yktrack",
    "Theorem 4.6": "theorem on Algorithm 1", "Assumption 4.7": "as:algoadam (1)", "Remark 4.8": "remark on as:algoadam",
    "Proposition 4.9": "pr:xkdist", "Proposition 4.10": "pro:bvbound", "Theorem 4.11": "theorem on Algorithm 2",
}  # fmt: skip


def test_every_numbered_statement_assumption_and_remark_of_the_paper_has_a_check():
    assert set(NUMBERED.values()) <= set(statements.STATEMENTS) and len(set(NUMBERED.values())) == len(NUMBERED)


# --- what a check concludes


def concluded(*items, **words):
    return Statement(margins=lambda: iter(items), label="s", place="p", says="It is so.", **words)()


def refuting(refutes=True):
    return Counterexample("x = 1", lambda: (refutes, {"printed": 1.23456, "right": 2.0}))


HALF = at_most(1.0, 2.0)


@pytest.mark.parametrize("items", [
    (HALF, at_most(2.0, 1.999)), (), (HALF, at_most(float("nan"), 1.0)), (at_most(np.array([0.0, 2.0]), 1.0),),
    (HALF, ("x = 1", HALF, equal(1.0, 1.1, 1.0))), (true(1 > 2),),
])  # fmt: skip
def test_a_statement_that_falls_short_once_or_has_no_instance_is_false(items):
    assert concluded(*items).verdict == FALSE


def test_a_statement_that_holds_while_its_printed_form_is_refuted_holds_after_a_correction():
    check = concluded(HALF, corrected="thus", counterexample=refuting())
    assert (check.verdict, check.witness) == (CORRECTED, "x = 1: printed 1.235, right 2")
    assert check.tested == "It is so. Corrected: thus."
    check = concluded(HALF, corrected="thus", counterexample=refuting(False))
    assert (check.verdict, check.witness, check.tested) == (HOLDS, "", "It is so.")


def test_margins_within_the_rounding_of_a_statement_hold_and_notes_are_told():
    check = concluded(equal(1.0, 1.0 + 1e-8, 1.0), "Even more", rounding=1e-7)
    assert check.verdict == HOLDS and check.tested == "It is so. Even more."
    assert " ".join(str(check).split()) == "holds -1.0e-08 1 equality s: It is so. Even more."


def test_an_instance_counts_once_and_an_array_once_per_entry():
    check = concluded(("x = 1", HALF, at_most(3.0, 4.0)), at_most(np.array([0.5, 0.4]), 1.0))
    assert (check.instances, check.margin) == (3, 0.25)


def test_the_loosest_of_the_bounds_is_shown_with_the_instance_where_it_is_tightest_and_how_searches_went():
    items = ("x = 1", HALF, at_most(9.0, 10.0)), ("x = 2", at_most(3.0, 4.0), HALF), ("x = 3", HALF, HALF)
    check = concluded(*items, searches=lambda: statement.Searches(9, 3))
    assert (check.tightest, check.instance, check.searches, check.failed) == ("0.75", "x = 2", 9, 3)
    assert str(check).endswith("It is so. Tightest: x = 2. Searches: 9, 3 failed.")
    assert concluded(equal(1.0, 1.0, 1.0)).tightest == "equality" and concluded(true(1 < 2)).tightest == ""


@pytest.mark.parametrize("a, b, margin", [(1.0, 2.0, 0.5), (2.0, 1.0, -0.5), (-2.0, -1.0, 0.5), (0.0, 0.0, 0.0)])
def test_the_margin_of_an_inequality_is_relative_and_negative_where_it_fails(a, b, margin):
    assert at_most(a, b).margins == margin


def test_the_margin_of_an_identity_is_minus_its_relative_error():
    assert equal(-1.0, 1.0, 4.0).margins == equal(np.array([1.0, 2.0]), np.array([1.0, 0.0]), 4.0).margins == -0.5
    lanes = equal(np.array([[3.0, 4.0], [0.0, 1.0]]), 0.0, np.array([10.0, 1.0]))
    assert lanes.margins.tolist() == [-0.5, -1.0]


def test_a_claim_beside_a_statement_that_fails_is_named_and_does_not_count_for_the_verdict():
    with pytest.raises(ArithmeticError, match="s: expected that pigs fly, but the least margin of 1 cases is -1"):
        concluded(HALF, true(1 > 2, claim="pigs fly"))
    assert concluded(at_most(2.0, 1.0), true(1 < 2, claim="pigs walk")).verdict == FALSE


# --- the record


def recorded(**verdicts):
    return {name: {"verdict": verdict} for name, verdict in verdicts.items()}


def test_a_verdict_that_changed_and_what_is_missing_on_either_side_is_said_in_words():
    found = statements.differences([Check("a", FALSE, 1, 0.0), Check("b", HOLDS, 1, 0.0)], recorded(a=HOLDS, c=HOLDS))
    assert found == [
        "a: holds on record, false found",
        "b: nothing on record, holds found",
        "c: holds on record, nothing found",
    ]


def test_the_report_fails_where_a_verdict_differs_from_the_record_and_can_write_it(tmp_path, monkeypatch, capsys):
    entry = Statement(margins=lambda: iter([HALF]), label="a", place="p", says="S.")
    monkeypatch.setattr(statements, "EVERY", (entry,))
    monkeypatch.setitem(statements.STATEMENTS, "a", entry)
    monkeypatch.setattr(statements, "recorded", lambda: recorded(a=FALSE))
    with pytest.raises(ValueError, match="a: false on record, holds found"):
        statements.report(1)
    monkeypatch.setattr(statements, "PAPER", tmp_path)
    monkeypatch.setattr(statements, "recorded", lambda: recorded(a=HOLDS))
    statements.report(1, write=True)
    assert "1 statements, all as recorded" in capsys.readouterr().out
    monkeypatch.undo()
    assert statements.recorded(tmp_path / statements.NAME)["a"]["verdict"] == HOLDS


def test_the_command_tests_the_statements_with_its_options(monkeypatch):
    from cdfsg import __main__ as cli

    calls = []
    monkeypatch.setattr(statements, "report", lambda *options: calls.append(options))
    assert cli.main(["theory", "--jobs", "1", "--write"]) == 0
    assert cli.main(["theory", "--jobs", "2", "--only", "W", "pro:saddle"]) == 0
    assert calls == [(1, True, ()), (2, False, ["W", "pro:saddle"])]


def test_some_statements_are_tested_by_their_labels_and_an_unknown_label_is_refused_with_near_ones(capsys):
    statements.report(1, only=["W", "eq:H"])
    assert [line[:8] for line in capsys.readouterr().out.splitlines()[1:3]] == ["  1/  2 ", "  2/  2 "]
    with pytest.raises(ValueError, match="there is no statement 'pro:sadle'; near it are: pro:saddle; "):
        statements.report(1, only=["W", "pro:sadle"])
    with pytest.raises(ValueError, match="near it are: le:sop_slep, eq:nn; "):
        statements.report(1, only=["eq:nn"])
    with pytest.raises(ValueError, match="--write needs every statement; leave out --only"):
        statements.report(1, write=True, only=["W"])
