import pytest

from cdfsg.theory.check import CORRECTED, FALSE, HOLDS, Counterexample, Tally, at_most, concluded, error


def tally(*margins):
    counted = Tally()
    for margin in margins:
        counted.add(margin)
    return counted


def test_a_statement_that_falls_short_once_is_false_whatever_the_others():
    assert concluded("s", "t", tally(1.0, -1e-3, 2.0)).verdict == FALSE


def test_a_statement_that_holds_while_its_printed_form_is_refuted_holds_after_a_correction():
    against = Counterexample("x = 1", {"printed": 1.23456, "right": 2.0}, refutes=True)
    check = concluded("s", "t", tally(0.5), against)
    assert check.verdict == CORRECTED and check.witness == "x = 1: printed 1.235, right 2"


def test_a_counterexample_that_refutes_nothing_leaves_no_witness():
    check = concluded("s", "t", tally(0.5), Counterexample("x = 1", {"printed": 1.0}, refutes=False))
    assert check.verdict == HOLDS and check.witness == ""


def test_a_statement_without_instances_does_not_hold():
    assert concluded("s", "t", Tally()).verdict == FALSE


def test_an_instance_that_gives_nan_is_no_evidence_for_a_statement():
    assert concluded("s", "t", tally(1.0, float("nan"))).verdict == FALSE


def test_an_instance_with_several_margins_counts_once_by_its_least():
    counted = Tally()
    counted.add(0.3, 0.1, 0.2)
    assert (counted.instances, counted.margin) == (1, 0.1)


@pytest.mark.parametrize("a, b, margin", [(1.0, 2.0, 0.5), (2.0, 1.0, -0.5), (-2.0, -1.0, 0.5), (0.0, 0.0, 0.0)])
def test_the_margin_of_an_inequality_is_relative_and_negative_where_it_fails(a, b, margin):
    assert at_most(a, b) == margin


def test_the_margin_of_an_identity_is_minus_its_relative_error():
    assert error(-2.0, 4.0) == error(2.0, 4.0) == -0.5
