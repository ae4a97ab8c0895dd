from dataclasses import fields, replace

import pandas as pd
import pytest

from cdfsg.files import read_sealed, write_sealed
from cdfsg.paper import compute, records
from cdfsg.paper.experiments import Job
from cdfsg.paper.protocols import Protocol
from tests.paper.fakes import JOB, fake

CHANGED = {
    "dataset": "mnist", "merit": "huber", "batch_size": 50, "p": 4, "solver": "CDFSG-Ada", "role": "reported",
    "variant": "fixed", "seeds": ((None, 101),), "settings": ((0.5, 0.1),), "protocol": Protocol(beta=0.2),
    "trace_points": 3,
}  # fmt: skip
CHANGED_PROTOCOL = {
    "start": "views", "minibatches": "shared", "share": 0.5, "tracking": "s1", "centred": False,
    "scales": (("digits", 2.0),), "pairs": "unordered", "constants": (("eta1", 0.5),), "beta": 0.2, "mu": 0.1,
    "rule": "quality", "norm": "fea_spectral", "pcc": "pcc_paired",
}  # fmt: skip


def test_records_come_back_from_their_files_exactly_as_they_were(tmp_path):
    runs = fake(JOB, pcc=1 / 3, fea=2.9735703503204296e-15, fval=float("nan"), seconds=0.1 + 0.2)
    other = fake(replace(JOB, solver="RSG+", settings=((0.1, 0.01),), seeds=((None, 1),)), pcc=0.1, fea=float("nan"))
    records.write(runs, tmp_path / "a.csv")
    records.write(other, tmp_path / "b.csv")
    found = records.read([tmp_path / "a.csv", tmp_path / "b.csv"])
    pd.testing.assert_frame_equal(found, pd.concat([runs, other], ignore_index=True), check_exact=True)


@pytest.mark.parametrize("key", ["0123456789012345", "12345678901234e5", "00000000000000ab"])
def test_a_key_stays_text_even_where_its_digits_look_like_a_number(tmp_path, key):
    records.write(fake(JOB, key=key), tmp_path / "a.csv")
    assert set(records.read([tmp_path / "a.csv"])["key"]) == {key}


def test_reading_no_files_gives_a_table_without_rows_that_has_every_column():
    assert tuple(records.read([]).columns) == records.COLUMNS


def test_records_with_other_columns_are_not_written_and_the_difference_is_named(tmp_path):
    for frame in (fake(JOB).drop(columns="fea"), fake(JOB).assign(fea_new=1.0)):
        with pytest.raises(ValueError, match=r"differing: \['fea(_new)?'\]"):
            records.write(frame, tmp_path / "a.csv")
    with pytest.raises(ValueError, match="in order"):
        records.write(fake(JOB)[list(records.COLUMNS)[::-1]], tmp_path / "a.csv")
    assert list(tmp_path.iterdir()) == []


DAMAGES = {
    "empty": lambda data: b"",
    "header cut": lambda data: data[:40],
    "other column": lambda data: data.replace(b",fea,", b",Fea,", 1),
    "longer row": lambda data: data + b"one,too,many" + b"," * 40 + b"\n",
    "no text": lambda data: b"\x80\x81\xff" + data,
    "key cut": lambda data: data[: data.rindex(b",")],
    "row cut": lambda data: data[: data.rindex(b",0.0,")],
    "last row gone": lambda data: b"\n".join(data.split(b"\n")[:-2]) + b"\n",
    "no rows": lambda data: data.split(b"\n")[0] + b"\n",
    "odd status": lambda data: data.replace(b",done,", b",perhaps,"),
    "text for a number": lambda data: data.replace(b",0.9,", b",many,"),
    "row twice": lambda data: data + data.splitlines(keepends=True)[-1],
    "row in place of another": lambda data: b"".join([*(lines := data.splitlines(keepends=True))[:-1], lines[-2]]),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_record_that_is_written_wrongly_is_refused_with_the_way_out(tmp_path, damage):
    path = tmp_path / "3399eef7ff119b4c.csv"
    records.write(fake(JOB), path)
    write_sealed(path, DAMAGES[damage](read_sealed(path)))
    with pytest.raises(ValueError, match=r"(?s)3399eef7ff119b4c\.csv .*delete it and run again"):
        records.read([path])


def test_the_key_is_of_every_field_of_a_job_and_of_its_code_and_data(monkeypatch):
    assert set(CHANGED) == {field.name for field in fields(Job)}
    assert set(CHANGED_PROTOCOL) == {field.name for field in fields(Protocol)}
    changed = [replace(JOB, **{name: value}) for name, value in CHANGED.items() if name != "protocol"]
    changed += [replace(JOB, protocol=Protocol(**{name: value})) for name, value in CHANGED_PROTOCOL.items()]
    keys = []
    for origin in (("code", "data"), ("code", "other data"), ("other code", "data")):
        monkeypatch.setattr(compute, "origin", lambda job, origin=origin: origin)
        keys += map(compute.key_of, [JOB, *changed])
        assert compute.key_of(Job(**vars(JOB))) == compute.key_of(JOB)
    assert len(set(keys)) == len(keys) and all(len(key) == 16 and int(key, 16) >= 0 for key in keys)


def test_a_record_may_lack_the_settings_of_a_later_solver_but_no_metric(tmp_path):
    frame = fake(JOB)
    path = tmp_path / "record.csv"
    write_sealed(path, frame.drop(columns=["eta_q", "eta_t"]).to_csv(index=False))  # which are empty for this solver
    pd.testing.assert_frame_equal(records.read([path]), frame, check_dtype=False)
    write_sealed(path, frame.drop(columns=["pcc"]).to_csv(index=False))
    with pytest.raises(ValueError, match=r"does not have the columns of a record of this version \(differing: pcc\)"):
        records.read([path])
    write_sealed(path, frame.assign(gain=1.0).to_csv(index=False))
    with pytest.raises(ValueError, match=r"a record of this version \(differing: gain\)"):
        records.read([path])
