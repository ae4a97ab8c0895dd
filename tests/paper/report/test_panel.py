import asyncio
import base64
from unittest import mock

import matplotlib.pyplot as plt
import pytest

from cdfsg.datasets import DownloadError
from cdfsg.paper.report import explore
from cdfsg.paper.report.explore import Panel
from cdfsg.solvers import SOLVERS

PNG = b"\x89PNG"


@pytest.fixture
def runs(monkeypatch):
    """The arguments of every run that a panel asks for."""
    asked, real = [], explore.trace

    def trace(**arguments):
        asked.append(arguments)
        return real(points=3, **arguments)

    monkeypatch.setattr(explore, "trace", trace)
    return asked


def test_moving_a_slider_draws_once_with_its_value_into_the_figure_that_is_there(runs, monkeypatch):
    panel = Panel()
    monkeypatch.setattr(explore, "panels", mock.Mock(side_effect=AssertionError("a new figure")))
    before, words = bytes(panel.picture.value), panel.words.value
    assert before.startswith(PNG) and "PCC 0.9" in words and len(runs) == 1
    panel.controls["beta"].value = 2.0
    assert len(runs) == 2 and runs[-1] == {**runs[0], "beta": 2.0}
    after = bytes(panel.picture.value)
    assert after.startswith(PNG) and after != before and panel.words.value != words
    assert not plt.get_fignums()


def test_every_control_reaches_the_run(runs):
    panel = Panel(("digits", "synthetic"))
    changes = {"merit": "huber", "beta": 0.5, "mu": 0.2, "start": 0.5, "batch_size": 10, "p": 3, "shared": True,
               "solver": "CDFSG-Ada", "dataset": "synthetic"}  # fmt: skip
    assert set(changes) == set(panel.controls)
    for name, value in changes.items():
        panel.controls[name].value = value
        assert runs[-1][name] == value
    panel.settings["CDFSG-Ada"]["s2"].value = 0.01
    assert runs[-1] == {**changes, "settings": {"s1": 0.5, "s2": 0.01}}


def test_the_sliders_of_settings_are_those_of_the_chosen_solver(runs):
    panel = Panel()
    for name in SOLVERS:
        panel.controls["solver"].value = name
        assert tuple(slider.description for slider in panel._of_solver.children) == SOLVERS[name].settings
        assert runs[-1]["settings"] == explore.defaults(name)
        assert panel.controls["shared"].disabled == (SOLVERS[name].samples_per_step == 1)
        assert panel.controls["mu"].disabled  # the identity merit has none
        assert ("another constraint" in panel.words.value) == (not SOLVERS[name].joint_constraint)


def test_what_a_solver_refuses_and_data_that_cannot_be_had_are_a_sentence_in_place_of_the_picture(runs, monkeypatch):
    panel = Panel()
    panel.controls["solver"].value = "RSG+"
    panel.controls["p"].value = 3
    assert "p must divide the batch size" in panel.words.value and panel.picture.layout.visibility == "hidden"
    panel.controls["p"].value = 4
    assert "PCC" in panel.words.value and panel.picture.layout.visibility == "visible"
    panel.controls["merit"].value = "huber"
    assert "RSG+ is a method for the identity merit" in panel.words.value
    for kind, dataset in ((DownloadError, "mnist"), (OSError, "digits")):
        monkeypatch.setattr(explore, "trace", mock.Mock(side_effect=kind("no <network>")))
        panel.words.value = ""
        panel.controls["dataset"].value = dataset
        assert "no &lt;network&gt;" in panel.words.value


def test_moves_that_come_together_in_a_kernel_are_one_run_and_a_reset_is_another(runs):
    async def move():
        for value in (0.2, 0.3, 0.4):
            panel.controls["beta"].value = value
        panel.settings["CDFSG"]["s2"].value = 0.01
        assert len(runs) == 1
        await asyncio.sleep(0.5)
        assert len(runs) == 2 and runs[-1]["beta"] == 0.4 and runs[-1]["settings"]["s2"] == 0.01
        panel.reset.click()
        await asyncio.sleep(0.5)

    panel = Panel()
    asyncio.run(move())
    assert len(runs) == 3 and runs[-1] == runs[0]


def test_a_run_is_kept_beside_others_until_it_is_forgotten(runs, monkeypatch):
    drawn, draw = [], explore.draw
    monkeypatch.setattr(explore, "draw", lambda traces, **more: drawn.append(list(traces)) or draw(traces, **more))
    panel = Panel()
    panel.keep.click()
    panel.controls["beta"].value = 2.0
    assert [words.rpartition(", ")[2] for words in drawn[-1]] == ["beta = 0.1", "beta = 2"]
    panel.keep.click()
    assert [words.rpartition(", ")[2] for words in drawn[-1]] == ["beta = 2"]
    panel.keep.click()
    panel.reset.click()
    assert [words.rpartition(", ")[2] for words in drawn[-1]] == ["beta = 0.1"]


def test_the_run_is_given_as_code_which_a_change_hides(runs):
    panel = Panel()
    panel.export.click()
    assert panel.code.layout.display == "flex" and "job = Job(dataset='digits'" in panel.code.value
    panel.controls["start"].value = 2.0
    assert panel.code.layout.display == "none"
    panel.export.click()
    assert "set it to 1" in panel.code.value


def test_without_a_kernel_the_picture_stands_for_the_panel(runs):
    panel = Panel()
    shown = panel._repr_mimebundle_()
    assert base64.b64decode(shown["image/png"]) == bytes(panel.picture.value)
    assert "it needs a kernel" in shown["text/plain"]
    assert shown["application/vnd.jupyter.widget-view+json"]["model_id"] == panel.box.model_id
