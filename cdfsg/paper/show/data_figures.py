"""Figures of the data sets: what a sample looks like, and the spectra that decide how hard a problem is."""

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from cdfsg.datasets import mnist
from cdfsg.linalg import Array
from cdfsg.metrics import SPECTRUM_RTOL
from cdfsg.paper.measure.data_table import SHOWN
from cdfsg.paper.show.figures import STYLE, finish, panels

COLOURS = {"mediamill": "#009E73", "mnist": "#0072B2", "nmnist": "#D55E00"}
DASHES = ("-", "--", ":")
RARE = 2
"""A pixel is rare if it is not zero in at most so many images."""


def labels_of(datasets: pd.DataFrame) -> dict[str, str]:
    """Names of the data sets for people, which say where one is not the original."""
    kinds = zip(datasets["dataset"], datasets["provenance"], strict=True)
    return {str(name): str(name) if kind == "original" else f"{name} ({kind})" for name, kind in kinds}


def spectra(table: pd.DataFrame, labels: dict[str, str], title: str) -> Figure:
    """Covariance spectrum of every view, and the generalised eigenvalues over the most that they can be."""
    with plt.rc_context(STYLE):
        figure, axes = panels(1, 2, width=10, height=3.9)
        for (dataset, view), line in table.groupby(["dataset", "view"], sort=False):
            colour = COLOURS[str(dataset)]
            dashes = DASHES[max(int(view) - 1, 0)]
            axes[0, int(view == 0)].plot(line["index"], line["value"], color=colour, ls=dashes, lw=1.5)
        axes[0, 0].axhline(SPECTRUM_RTOL, color="black", lw=0.8, ls=(0, (1, 3)))
        axes[0, 0].set(yscale="log", ylabel="eigenvalue / largest", title="covariance of each view")
        axes[0, 1].set(ylabel="eigenvalue / (m - 1)", title="generalised eigenvalues", ylim=(0, 1.03))
        for axis in axes[0]:
            axis.set(xscale="log", xlabel="index")
            axis.grid(alpha=0.25)
        handles = [Line2D([], [], color=COLOURS[name], label=label) for name, label in labels.items()]
        handles += [
            Line2D([], [], color="black", ls=ls, lw=1, label=f"view {k}") for k, ls in enumerate(DASHES, start=1)
        ]
        return finish(figure, title, handles)


def samples(rows: pd.DataFrame, labels: dict[str, str], title: str) -> Figure:
    """MNIST's halves, n-MNIST's three views of the same digits, and rows of Mediamill's features and labels."""
    with plt.rc_context(STYLE):
        figure: Figure = plt.figure(figsize=(9, 8.2))
        heights = (1, 1, 1, 1, 0.25, 2.6)
        grid = figure.add_gridspec(6, 2 * SHOWN, left=0.15, height_ratios=heights, hspace=0.08, wspace=0.15)
        for half in (1, 2):
            for sample, row in enumerate(_values(rows, "mnist", half)):
                _image(figure, grid[0, 2 * sample + half - 1], row.reshape(28, 14))
        for view in (1, 2, 3):
            for sample, row in enumerate(_values(rows, "nmnist", view)):
                _image(figure, grid[view, 2 * sample : 2 * sample + 2], row.reshape(28, 28))
        words = [f"{labels['mnist']},\ntwo halves"] + [f"{labels['nmnist']},\nview {view}" for view in (1, 2, 3)]
        for place, text in enumerate(words):
            axis = figure.add_subplot(grid[place, :], frameon=False)
            axis.set(xticks=[], yticks=[])
            axis.set_ylabel(text, rotation=0, ha="right", va="center")
        halves = {"features": slice(0, SHOWN), "labels": slice(SHOWN, None)}
        for view, (name, columns) in enumerate(halves.items(), start=1):
            axis = figure.add_subplot(grid[5, columns])
            axis.imshow(_values(rows, "mediamill", view), cmap="gray_r", aspect="auto", interpolation="none")
            axis.set(xlabel=f"{labels['mediamill']}: {name}", yticks=[])
        figure.suptitle(title, fontsize=10, y=0.94)
        return figure


def lone_image(sample: int) -> pd.DataFrame:
    """Pixels of one image of MNIST that are not zero, and in how many images they are so.

    Returns
    -------
    DataFrame
        Columns ``row, column, value, images``.
    """
    images = mnist.load_images()
    row, column = np.nonzero(images[sample])
    lit = np.count_nonzero(images, axis=0)
    return pd.DataFrame(
        {"row": row, "column": column, "value": images[sample][row, column], "images": lit[row, column]}
    )


def lone(pixels: pd.DataFrame, title: str) -> Figure:
    """One image of MNIST, cut between its halves; the pixels that hardly any other image has are framed."""
    picture = np.zeros((28, 28))
    picture[pixels["row"], pixels["column"]] = pixels["value"]
    own = pixels[pixels["images"] <= RARE]
    with plt.rc_context(STYLE):
        figure, axes = panels(1, 1, width=3.6, height=3.9)
        axis = axes[0, 0]
        axis.imshow(picture, cmap="gray_r", vmin=0, vmax=255, interpolation="none")
        axis.axvline(13.5, color="#0072B2", lw=1)
        words = f"not zero in at most {RARE} images"
        axis.plot(own["column"], own["row"], "s", mfc="none", mec="#D55E00", ms=7, label=words)
        axis.set(xticks=[], yticks=[])
        return finish(figure, title, axis.get_legend_handles_labels()[0])


def _values(rows: pd.DataFrame, dataset: str, view: int) -> Array:
    chosen = rows[(rows["dataset"] == dataset) & (rows["view"] == view)].sort_values("sample")
    return np.array([np.array(text.split(), dtype=float) for text in chosen["values"]])


def _image(figure: Figure, place: Any, pixels: Array) -> None:
    axis = figure.add_subplot(place)
    axis.imshow(pixels, cmap="gray_r", vmin=0, vmax=255, interpolation="none")
    axis.set(xticks=[], yticks=[])
