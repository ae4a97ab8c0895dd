import inspect

import pytest

from cdfsg import __main__ as cli
from cdfsg import checksums
from cdfsg.theory import algorithm_counterexamples, counterexamples, statements
from cdfsg.theory.check import CORRECTED, FALSE, HOLDS, Check


@pytest.fixture(scope="module")
def checks():
    return [check() for module in statements.MODULES for check in module]


def test_every_statement_has_the_verdict_that_is_recorded(checks):
    assert statements.differences(checks, statements.recorded()) == []
    assert len(checks) >= 22


def test_every_statement_but_the_rates_is_tested_on_a_thousand_instances(checks):
    few = {check.statement for check in checks if check.instances < 1000}
    # An instance of a rate is a whole run of up to 12,800 steps; its slope has an interval instead.
    assert few == {"theorem on Algorithm 1, rate", "theorem on Algorithm 2, rate"}


def test_whatever_is_corrected_or_false_shows_a_counterexample_and_what_holds_shows_none(checks):
    for check in checks:
        assert bool(check.witness) == (check.verdict != HOLDS), check.statement


def test_margins_are_rounding_errors_or_better_where_a_statement_holds(checks):
    assert {c.statement: c.margin for c in checks if c.verdict != FALSE and c.margin < -1e-7} == {}


def test_every_counterexample_refutes_and_belongs_to_an_erratum():
    functions = dict(
        inspect.getmembers(counterexamples, lambda f: getattr(f, "__module__", "") == counterexamples.__name__)
    )
    assert {name for name, function in functions.items() if not function().refutes} == set()
    named = {erratum.counterexample for erratum in statements.errata()}
    assert set(functions) <= named
    others = dict(
        inspect.getmembers(
            algorithm_counterexamples, lambda f: getattr(f, "__module__", "") == algorithm_counterexamples.__name__
        )
    )
    # The paper does not claim what a shared minibatch breaks, so it is no erratum.
    assert {f"algorithm_counterexamples.{name}" for name in set(others) - {"shared_minibatch"}} <= named


def test_no_erratum_is_shown_by_a_statement_that_holds_as_printed(checks):
    verdicts = {name: check.verdict for name, check in zip(statements.CHECKS, checks, strict=True)}
    assert all(verdicts[erratum.check] in (CORRECTED, FALSE) for erratum in statements.errata())


def test_each_corrected_or_false_statement_has_an_erratum(checks):
    named = {erratum.check for erratum in statements.errata()}
    lacking = [
        check.statement
        for name, check in zip(statements.CHECKS, checks, strict=True)
        if check.verdict != HOLDS and name not in named
    ]
    # The first needs the corrected def:ocso and nothing else; the second the paper does not claim.
    assert lacking == ["th:sopr_b1", "as:algo (1), shared"]


def report(statement, verdict=HOLDS):
    return Check(statement, "", verdict, 1, 0.0)


def recorded(**verdicts):
    return {name: statements.Recorded(name, "", "", verdict) for name, verdict in verdicts.items()}


def test_a_verdict_that_changed_and_what_is_missing_on_either_side_is_said_in_words():
    found = statements.differences([report("a", FALSE), report("b")], recorded(a=HOLDS, c=HOLDS))
    assert found == [
        "a is recorded as 'holds' but found to be 'false'",
        "b has no row in data/paper/statements.csv; add one",
        "c is recorded but no check reports it",
    ]


def cheap():
    return report("a", FALSE)


def test_the_command_fails_where_a_verdict_differs_from_the_record(monkeypatch, capsys):
    monkeypatch.setattr(statements, "MODULES", ((cheap,),))
    monkeypatch.setattr(statements, "recorded", lambda: recorded(a=FALSE))
    assert cli.main(["theory", "--jobs", "1"]) == 0
    assert "1 statements, all as recorded" in capsys.readouterr().out
    monkeypatch.setattr(statements, "recorded", lambda: recorded(a=HOLDS))
    assert cli.main(["theory", "--jobs", "1"]) == 1
    assert "a is recorded as 'holds' but found to be 'false'" in capsys.readouterr().err


@pytest.mark.parametrize(
    "rows, words",
    [
        ("a,p,s,holds\na,p,s,holds\n", "has the statement 'a' twice"),
        ("a,p,s,perhaps\n", "gives 'a' the verdict 'perhaps'; use one of"),
    ],
)
def test_a_bad_record_is_refused_with_its_statement(tmp_path, rows, words):
    checksums.write(tmp_path / "statements.csv", "statement,place,says,verdict\n" + rows)
    with pytest.raises(ValueError, match=words):
        statements.recorded(tmp_path / "statements.csv")


@pytest.mark.parametrize(
    "change, words",
    [
        ({"severity": "bad"}, "has the severity 'bad'; use one of"),
        ({"check": "nothing"}, "names the unknown check 'nothing'"),
        ({"extra": "1"}, "expected"),
    ],
)
def test_a_bad_erratum_is_refused_with_its_place(tmp_path, change, words):
    entry = {"place": "here", "printed": "a", "should_be": "b", "severity": "typo", "check": "hessian_of_h",
             "counterexample": "hessian_last_term"} | change  # fmt: skip
    checksums.write(tmp_path / "errata.toml", "[[erratum]]\n" + "".join(f'{k} = "{v}"\n' for k, v in entry.items()))
    with pytest.raises(ValueError, match=words):
        statements.errata(tmp_path / "errata.toml")
