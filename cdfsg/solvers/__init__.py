"""Solvers: one file each, one engine (`cdfsg.solvers.lanes`)."""

from cdfsg.solvers.cdfsg import CDFSG, CDFSGAda
from cdfsg.solvers.landing import Landing
from cdfsg.solvers.lanes import Solver
from cdfsg.solvers.rsg_plus import RSGPlus

SOLVERS: dict[str, type[CDFSG] | type[CDFSGAda] | type[Landing] | type[RSGPlus]] = {
    solver.name: solver for solver in (CDFSG, CDFSGAda, Landing, RSGPlus)
}

__all__ = ["SOLVERS", "Solver"]
