"""How far two averages of ten runs lie apart by chance: what the tolerances rest on.

Ten runs, each with a data order and an initial point of its own and with seeds that no tuning or reported run has, at
three points of the grid.  Writes ``data/records/spread.csv``: mean and standard deviation over the ten.
"""

from itertools import product

import pandas as pd
from joblib import Parallel, delayed

from cdfsg import checksums
from cdfsg.files import RECORDS
from cdfsg.paper.compute import compute
from cdfsg.paper.experiments import Job
from cdfsg.paper.protocols import ELIGIBLE_FEA, FIRST, OURS

SEEDS = tuple((k, k) for k in range(201, 211))
SETTINGS = ((1 / 4, 0.05), (1 / 4, 0.01), (1 / 4, 0.001))
TABLES = (("mediamill", "identity"), ("mnist", "identity"), ("nmnist", "identity"),
          ("mediamill", "huber"), ("mnist", "huber"))  # fmt: skip
CELL = ["dataset", "merit", "batch_size", "p", "solver", "s1", "s2"]
QUANTITIES = ["pcc", "fea", "fea_post", "fval"]


def main() -> None:
    """Run, summarise and print what the tolerances are derived from."""
    jobs = [
        Job(dataset, merit, batch_size, p, solver, "spread", "grid", SEEDS, SETTINGS, FIRST)
        for dataset, merit in TABLES
        for batch_size, p, solver in product((20, 200), (5, 10), OURS)
    ]
    runs = pd.concat(Parallel(n_jobs=2)(delayed(compute)(job) for job in jobs), ignore_index=True)
    cells = runs.groupby(CELL).agg(ended=("status", lambda words: (words == "done").sum()), worst=("fea", "max"))
    kept = cells[(cells["ended"] == len(SEEDS)) & (cells["worst"] <= ELIGIBLE_FEA)].index
    groups = runs.set_index(CELL).loc[kept].groupby(level=CELL)[QUANTITIES]
    mean, deviation = groups.mean(), groups.std()
    table = mean.join(deviation.add_suffix("_std")).reset_index()
    checksums.write(RECORDS / "spread.csv", table.round(6).to_csv(index=False, lineterminator="\n"))
    deviation["fval"] /= mean["fval"].abs()
    print("2 sqrt(2 / 10) times the median deviation; of Fval relative to it")
    print((2 * (2 / len(SEEDS)) ** 0.5 * deviation.median()).round(4).to_string())


if __name__ == "__main__":
    main()
