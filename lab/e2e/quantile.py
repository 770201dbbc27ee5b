"""A quantile of a list of times."""

from collections.abc import Sequence


def find_quantile(values: Sequence[float], share: float) -> float:
    """Return the smallest value that more than `share` of all values do not exceed, else the largest one.

    Of 100 values, the 50th percentile is the 51st value and the 99th is the largest; NaN if there are none.
    """
    if not values:
        return float("nan")
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]
