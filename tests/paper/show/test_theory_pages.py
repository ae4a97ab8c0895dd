import pytest

from cdfsg.paper.show import theory_pages
from cdfsg.theory import statements

ENTRY = statements.Erratum("Section 3, eq:x_1", "4 a", "2 a", "wrong formula", "hessian_of_h", "hessian_last_term")


def test_the_table_counts_the_verdicts_and_marks_each_by_a_sign_too():
    rows = [
        statements.Recorded("a", "here", "x < y", "holds"),
        statements.Recorded("b", "there", "z", "false"),
    ]
    text = theory_pages.statement_table(rows)
    assert "2 statements: 1 holds, 0 holds after a correction, 1 false." in text
    assert "✓ holds" in text and "✗ false" in text and "x &lt; y" in text


def test_an_erratum_is_shown_with_the_numbers_that_refute_it():
    (heading, *_) = theory_pages.errata_list([ENTRY]).splitlines()
    assert heading == r"### Section 3, eq:x\_1"
    assert "h along D 1.875, printed 1.312, corrected 1.875" in theory_pages.errata_list([ENTRY])


def test_a_notebook_shows_the_code_of_a_counterexample_beside_its_result():
    text = theory_pages.shown(ENTRY)
    assert "    def hessian_last_term() -> Counterexample:" in text and "corrected 1.875" in text
    assert all(len(line) <= theory_pages.WIDTH for line in text.splitlines() if not line.startswith("    "))


def test_a_counterexample_of_another_module_is_found_by_its_full_name():
    entry = statements.Erratum("", "", "", "typo", "hessian_of_h", "counterexamples.surrogate_minimiser")
    assert theory_pages.counterexample_of(entry)().refutes
    lost = statements.Erratum("", "", "", "typo", "hessian_of_h", "nothing")
    with pytest.raises(AttributeError, match="nothing"):
        theory_pages.counterexample_of(lost)
