"""Solvers: one file each, one engine (`cdfsg.solvers.engine`)."""

from cdfsg.solvers.cdfsg import CDFSG, CDFSGAda
from cdfsg.solvers.engine import Solver
from cdfsg.solvers.landing import Landing
from cdfsg.solvers.rsg_plus import RSGPlus

SOLVERS: dict[str, type[Solver]] = {
    "CDFSG": CDFSG,
    "CDFSG-Ada": CDFSGAda,
    "Landing": Landing,
    "RSG+": RSGPlus,
}
"""Solvers by the name that the tables print."""

__all__ = ["SOLVERS", "Solver"]
