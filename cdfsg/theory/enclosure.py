"""Bounds of polynomials, given by their coefficients, by exact interval arithmetic: rational, without rounding."""

from collections.abc import Sequence
from fractions import Fraction


def enclosure(p: Sequence[Fraction], low: Fraction, high: Fraction, pieces: int = 500) -> tuple[Fraction, Fraction]:
    """Bounds of p on [low, high]: its values at the centres of the pieces, and half a piece times a bound of |p'|."""
    half, reach = (high - low) / (2 * pieces), max(abs(low), abs(high))
    steepest = sum(k * abs(a) * reach ** (k - 1) for k, a in enumerate(p) if k)
    values = [sum(a * x**k for k, a in enumerate(p)) for x in (low + (2 * j + 1) * half for j in range(pieces))]
    return min(values) - steepest * half, max(values) + steepest * half


def least(p: Sequence[Fraction], reach: Fraction) -> Fraction:
    """A lower bound of p on the whole line; ValueError unless its leading term dominates beyond `reach`."""
    *rest, top = (a * reach**k for k, a in enumerate(p))
    if len(p) % 2 == 0 or top < sum(map(abs, rest)):
        raise ValueError(f"the leading term does not dominate beyond {float(reach):.4g}; take more")
    return min(enclosure(p, -reach, reach, 2000)[0], Fraction(0))
