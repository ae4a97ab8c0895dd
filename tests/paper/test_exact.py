import pandas as pd
import pytest

from cdfsg import checksums, metrics
from cdfsg.datasets import load
from cdfsg.paper import exact


def test_the_exact_solution_is_feasible_and_captures_all_correlations():
    table = exact.solve("digits", (2, 4)).set_index("p")
    values = metrics.generalised_eigenvalues(load("digits").covariance, load("digits").sizes)
    for p in (2, 4):
        assert table.loc[p, "fval"] == pytest.approx(-values[:p].sum()) and table.loc[p, "pcc"] == pytest.approx(1)
        assert table.loc[p, "fea"] < 1e-10
    assert (table["seconds"] == table["seconds_covariance"] + table["seconds_eigen"]).all()


def test_a_data_set_is_solved_once_for_its_data_and_code_and_the_others_stay(tmp_path, monkeypatch):
    path = tmp_path / "exact.csv"
    checksums.write(path, exact.solve("digits", (2,)).assign(dataset="other").to_csv(index=False))
    exact.update(path, "digits", (2, 4))
    first = path.read_text()
    assert list(pd.read_csv(path)["dataset"]) == ["digits", "digits", "other"]
    exact.update(path, "digits", (2, 4))
    assert path.read_text() == first  # its wall times would differ
    monkeypatch.setattr(exact, "NUMERICS", "x")
    exact.update(path, "digits", (2, 4))
    mine = pd.read_csv(path).set_index("dataset").loc["digits"]
    assert len(mine) == 2 and mine["of"].str.endswith("numerics x").all()


def test_a_damaged_file_of_exact_solutions_is_told_and_made_anew(tmp_path, capsys):
    path = tmp_path / "exact.csv"
    exact.update(path, "digits", (2,))
    path.write_text(path.read_text().replace("digits", "digitz"))
    exact.update(path, "digits", (2,))
    assert list(checksums.read_csv(path)["dataset"]) == ["digits"]
    assert f"{path} is not what" in capsys.readouterr().err
