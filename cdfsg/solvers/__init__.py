"""Solvers: one file each, one engine (`cdfsg.solvers.lanes`)."""

from typing import Any

from cdfsg.solvers.cdfsg import CDFSG, CDFSGAda
from cdfsg.solvers.landing import Landing
from cdfsg.solvers.lanes import Solver
from cdfsg.solvers.rsg_plus import RSGPlus

SOLVERS: dict[str, type[Solver[Any]]] = {
    "CDFSG": CDFSG,
    "CDFSG-Ada": CDFSGAda,
    "Landing": Landing,
    "RSG+": RSGPlus,
}
"""Solvers by the name that the tables print."""

__all__ = ["SOLVERS", "Solver"]
