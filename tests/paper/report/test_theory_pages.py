from cdfsg.paper.report import theory_pages
from cdfsg.theory import counterexamples
from cdfsg.theory.statement import Erratum
from cdfsg.theory.statements import Recorded

ENTRY = Erratum("Section 3, eq:x_1", "4 a", "2 a", "wrong formula", counterexamples.hessian_last_term)


def test_the_table_counts_the_verdicts_and_marks_each_by_a_sign_too():
    rows = [Recorded("a", "here", "x < y", "holds", "M > 0"), Recorded("b", "there", "z", "false")]
    text = theory_pages.statement_table(rows)
    assert "2 statements: 1 holds, 0 holds after a correction, 1 false." in text
    assert "✓ holds" in text and "✗ false" in text and "x &lt; y" in text and "M &gt; 0" in text


def test_an_erratum_is_shown_with_the_numbers_that_refute_it():
    text = theory_pages.errata_list([ENTRY, Erratum("Section 4", "a", "b", "typo")])
    assert text.splitlines()[0] == r"### Section 3, eq:x\_1" and text.count("counterexample") == 1
    assert "h along D 1.875, printed 1.312, corrected 1.875" in text


def test_the_notebook_shows_the_code_of_a_counterexample_beside_its_result():
    text = theory_pages.shown(ENTRY)
    assert "    def hessian_last_term() -> Found:" in text and "corrected 1.875" in text
    assert all(len(line) <= 100 for line in text.splitlines() if not line.startswith("    "))
