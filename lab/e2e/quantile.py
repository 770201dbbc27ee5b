"""A quantile of a list of times."""

from collections.abc import Sequence


def find_quantile(values: Sequence[float], share: float) -> float:
    """Return the smallest value that at least `share` of all values do not exceed; NaN where there is none."""
    if not values:
        return float("nan")
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]
