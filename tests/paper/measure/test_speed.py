import numpy as np
import pandas as pd
import pytest
from cdfsg.paper.measure.speed import Work, fit, roofline_seconds

from cdfsg.paper.measure import speed

WORK = Work("CDFSG", n=2352, batch_size=100, p=5, lanes=1)


@pytest.fixture
def records():
    return speed.published()


# --- the model -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "solver, flops, stored, working",
    [
        # n = 10, l = 4, p = 3, two lanes: a product is 2 * 4 * 10 * 6 flops; X has 60 entries, a minibatch 40.
        ("CDFSG", 5 * 480, 80, 4 * (2 * 80 + 2 * 60)),
        ("CDFSG-Ada", 5 * 480, 80, 4 * (2 * 80 + 6 * 60)),
        ("Landing", 4 * 480, 40, 4 * (2 * 40 + 2 * 60)),
    ],
)
def test_a_step_counts_the_products_with_the_data_and_the_least_bytes(solver, flops, stored, working):
    work = Work(solver, n=10, batch_size=4, p=3, lanes=2)
    assert (work.flops, work.stored_bytes, work.working_bytes) == (flops, stored, working)
    assert work.intensity == flops / (stored + working)


def test_data_stored_in_wider_types_take_more_bytes_from_memory_and_no_others():
    wide = Work("CDFSG", 10, 4, 3, 2, stored=8)
    assert wide.stored_bytes == 8 * 80 and wide.working_bytes == Work("CDFSG", 10, 4, 3, 2).working_bytes


def test_the_roofline_is_the_longer_of_the_flops_and_the_bytes():
    assert roofline_seconds(WORK, peak=1.0, memory=1e9, cache=1e9) == WORK.flops
    assert roofline_seconds(WORK, peak=1e30, memory=2.0, cache=4.0) == pytest.approx(
        WORK.stored_bytes / 2 + WORK.working_bytes / 4
    )


# --- growth ----------------------------------------------------------------------------------------------


def test_a_power_law_is_found_with_its_exponent_and_an_exact_one_leaves_no_doubt():
    x = np.array([1.0, 3, 10, 30])
    law = fit(x, 2 * x**1.5)
    assert law.exponent == pytest.approx(1.5) and law.scale == pytest.approx(2)
    assert law.half_width == pytest.approx(0, abs=1e-6)
    np.testing.assert_allclose(law.at(x), 2 * x**1.5)


def test_the_interval_of_an_exponent_holds_the_true_one_nineteen_times_in_twenty():
    rng, x = np.random.default_rng(0), np.geomspace(1, 100, 7)
    laws = [fit(x, x * np.exp(0.1 * rng.standard_normal(7))) for _ in range(1000)]
    assert 0.93 < np.mean([abs(law.exponent - 1) <= law.half_width for law in laws]) < 0.97


@pytest.mark.parametrize("x, y", [([1, 2], [1, 2]), ([1, 2, 3], [1, 0, 2]), ([0, 1, 2], [1, 1, 2])])
def test_a_fit_without_an_answer_is_refused(x, y):
    with pytest.raises(ValueError, match="a power law needs three or more points with positive values"):
        fit(x, y)


def test_the_exponent_over_the_upper_part_leaves_out_what_a_step_costs_at_any_size():
    n = np.array([10, 100, 1000, 2000, 4000])
    table = pd.DataFrame(
        {"solver": "CDFSG", "axis": "n", "value": n, "upper": n >= 1000, "peak_bytes": 8 * n,
         "seconds": np.where(n < 1000, 1.0, n / 1000)}
    )  # fmt: skip
    found = speed.exponents(table).set_index(["quantity", "part"])["exponent"]
    assert found["seconds", "upper"] == pytest.approx(1) == found["peak_bytes", "whole"]
    assert found["seconds", "whole"] < 0.5


# --- other methods ---------------------------------------------------------------------------------------


def test_the_time_to_a_level_is_that_of_the_first_point_at_it_and_a_level_not_reached_has_none():
    curves = pd.DataFrame(
        {"method": "m", "setting": "s", "passes": [0, 0.5, 1, 2], "pcc": [0.1, 0.91, 0.89, 0.93],
         "seconds": [0.0, 1.0, 2.0, 4.0]}
    )  # fmt: skip
    (row,) = speed.reached(curves).to_dict("records")
    assert row["seconds_to_0.90"] == 1 and np.isnan(row["seconds_to_0.95"])
    assert (row["pcc_pass"], row["seconds_pass"]) == (0.89, 2)
    assert (row["passes"], row["pcc_end"], row["seconds_end"]) == (2, 0.93, 4)


# --- the records -----------------------------------------------------------------------------------------


def test_the_published_records_are_sound_and_give_every_target_a_number(records):
    speed.check(records)
    found = speed.targets(records)
    assert len(found) == len(speed.TARGETS) and np.isfinite(found["measured"]).all()


def test_a_target_is_met_from_its_own_side(records):
    shares = records | {"roofline": records["roofline"].assign(share=0.5)}
    met = speed.targets(shares).set_index("says")["met"]
    assert met["180 lanes, l >= 100: share of the roofline"]
    lower = records | {"roofline": records["roofline"].assign(share=0.49)}
    assert not speed.targets(lower).set_index("says")["met"]["180 lanes, l >= 100: share of the roofline"]
    line = records["growth"].assign(seconds=records["growth"]["value"] ** 1.11)
    met = speed.targets(records | {"growth": line}).set_index("says")["met"]
    assert not met["growth in n: |exponent of time - 1|"]


@pytest.mark.parametrize(
    "part, column, value, words",
    [
        ("direct", "difference", 0.1, "differ by more than rounding"),
        ("roofline", "stopped", 1, "roofline: a lane diverged"),
        ("growth", "stopped", 1, "growth: a lane diverged"),
        ("growth", "peak_bytes", 10**13, "n-by-n arrays"),
    ],
)
def test_records_that_say_nothing_about_speed_are_refused(records, part, column, value, words):
    with pytest.raises(AssertionError, match=words):
        speed.check(records | {part: records[part].assign(**{column: value})})


def test_the_papers_seconds_stand_beside_ours_of_a_whole_pass(records):
    both = speed.beside_the_paper(records["roofline"])
    row = both[(both["dataset"] == "nmnist") & (both["solver"] == "CDFSG") & (both["batch_size"] == 100)]
    mine = records["roofline"].query("dataset == 'nmnist' and solver == 'CDFSG' and batch_size == 100 and lanes == 1")
    assert list(row["p"]) == [5, 10] and (row["paper"] > 0).all()
    np.testing.assert_allclose(row["ours"], mine["step_seconds"] * 600)


def test_records_that_are_missing_name_the_command_that_makes_them(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"speed-direct.csv is missing; make it with: make bench"):
        speed.published(tmp_path)


def test_records_are_read_as_they_were_written(tmp_path, records):
    for part, table in records.items():
        speed.write(part, table, tmp_path)
    for part, table in speed.published(tmp_path).items():
        pd.testing.assert_frame_equal(table, records[part])
