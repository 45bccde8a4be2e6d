"""Statistics of samples and of tables."""
import math


def median_interval_rank(count):
    """How many samples at each end lie outside the 95 % interval of the median: order statistics, as in
    worker/measure/statistics.cc."""
    tail, rank = 0.0, 0
    for k in range(1, count // 2 + 1):
        tail += math.exp(math.lgamma(count + 1) - math.lgamma(k) - math.lgamma(count - k + 2) - count * math.log(2))
        if 2 * tail > 0.05:
            break
        rank = k - 1
    return rank


def statistics(samples):
    """{"median", "low", "high", "samples"} of at least one number."""
    ordered = sorted(samples)
    count = len(ordered)
    rank = median_interval_rank(count)
    return {"median": (ordered[(count - 1) // 2] + ordered[count // 2]) / 2, "low": ordered[rank],
            "high": ordered[count - 1 - rank], "samples": count}


def geometric_mean(values):
    """Of positive numbers; None of none."""
    values = list(values)
    return math.exp(sum(math.log(value) for value in values) / len(values)) if values else None
