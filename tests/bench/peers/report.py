"""Tables of results: Markdown, for the terminal and for BENCHMARKS.md.

A document is what peers_bench.py writes: {"schema": "fusion.peers/1", "device", "versions", "rows", ...}; a row has
"results", by peer: {"seconds": {"median", ...}} when it was timed, or "wrong", "missing" or "error", each a text.
"""
import sequences
from summary import geometric_mean

SCHEMA = "fusion.peers/1"
SET_TITLES = {"large": "large (vectors 2^26, matrices 16384 square, lists of 2^22; products: 2^26 entries), one call, cache flushed",
              "small": "small (vectors 2^20, matrices 2048 square, lists of 31,744; products: 507,904 entries), 20 calls in one CUDA graph",
              "fit": "matrices that fit on chip, 20 calls in one CUDA graph"}


def seconds(row, peer):
    """Median, or None if it was not timed (or was wrong)."""
    found = row["results"].get(peer, {}).get("seconds")
    return found["median"] if found else None


def best_peer(row):
    """(peer, seconds) of the fastest that is not ours, or None."""
    times = [(seconds(row, peer), peer) for peer in sequences.PEERS if peer != "ours" and seconds(row, peer)]
    return min(times)[::-1] if times else None


def ratio(row):
    """Time of the best peer over ours: above 1, ours is faster. None without both."""
    best = best_peer(row)
    return best[1] / seconds(row, "ours") if best and seconds(row, "ours") else None


def cell(row, peer, over_floor):
    result = row["results"].get(peer)
    if result is None or "missing" in result:
        return ""
    if "seconds" not in result:
        return "wrong" if "wrong" in result else "failed"
    median = result["seconds"]["median"]
    text = f"{median / row['floor_seconds']:.2f}" if over_floor else microseconds(median)
    return text + ("*" if "in a row" in result.get("protocol", "") else "")


def microseconds(value):
    value *= 1e6
    return f"{value:.2f}" if value < 10 else f"{value:.1f}" if value < 1000 else f"{value:.0f}"


def title(row):
    name = sequences.BY_NAME[row["sequence"]].title
    if row["set"] in ("fit", "shapes"):
        name += f" {row['side']}"
    return name + (f" ({', '.join(row['reread'])} read again)" if row.get("reread") else "")


def groups(rows):
    """(set, type, rows) in a fixed order, without empty ones."""
    order = {name: place for place, name in enumerate(sequences.BY_NAME)}
    for set_name in sequences.SETS:
        for data_type in sequences.TYPES:
            found = [row for row in rows if row["set"] == set_name and row["type"] == data_type]
            if found:
                yield set_name, data_type, sorted(found, key=lambda row: (order[row["sequence"]], row["side"]))


def table(rows, set_name):
    """Markdown table of the rows of one set and type, with geometric means below."""
    over_floor = set_name == "large"
    peers = [peer for peer in sequences.PEERS
             if any("missing" not in row["results"].get(peer, {"missing": ""}) for row in rows)]
    lines = [f"| sequence | floor us | {' | '.join(sequences.PEERS[peer] for peer in peers)} | best peer | "
             "best peer / ours |",
             "| --- | ---: |" + " ---: |" * len(peers) + " --- | ---: |"]
    for row in rows:
        if row.get("error"):
            lines.append(f"| {title(row)} | {microseconds(row['floor_seconds']) if row.get('floor_seconds') else ''} | "
                         + "| " * len(peers) + f"{row['error'].splitlines()[-1][:80].replace('|', '/')} | |")
            continue
        best, factor = best_peer(row), ratio(row)
        cells = " | ".join(cell(row, peer, over_floor) for peer in peers)
        lines.append(f"| {title(row)} | {microseconds(row['floor_seconds'])} | {cells} | "
                     f"{sequences.PEERS[best[0]] if best else ''} | {f'{factor:.2f}' if factor else ''} |")
    ratios = [ratio(row) for row in rows if not row.get("error") and ratio(row)]
    if ratios:
        lines += ["", f"Geometric mean of best peer / ours over {len(ratios)} rows: {geometric_mean(ratios):.2f}"
                  f" (smallest {min(ratios):.2f}, largest {max(ratios):.2f}). *: 20 calls in a row, uncaptured."]
    return "\n".join(lines) + "\n"


def problems(rows):
    """A line for everything that was not timed and is not simply absent."""
    lines = []
    for row in rows:
        name = f"{title(row)}, {row['set']}, {row['type']}"
        if row.get("error"):
            lines.append(f"- {name}: {row['error'].strip().splitlines()[-1][:300]}")
        for peer, result in row["results"].items():
            for kind in ("wrong", "error"):
                if kind in result:
                    text = result[kind].strip().splitlines()[-1][:300]
                    lines.append(f"- {name}, {sequences.PEERS[peer]}: {kind}: {text}")
    return lines


def missing(rows):
    """{reason: peers} of the peers that no row has."""
    reasons = {}
    for peer in sequences.PEERS:
        texts = [row["results"].get(peer, {}).get("missing") for row in rows if not row.get("error")]
        if texts and all(texts):
            reasons.setdefault(texts[0], []).append(sequences.PEERS[peer])
    return reasons


def markdown(rows):
    """All tables of some rows, and what went wrong."""
    parts = []
    for set_name, data_type, found in groups(rows):
        unit = "time over floor" if set_name == "large" else "us per call"
        parts.append(f"### {data_type}, {SET_TITLES[set_name]}: {unit}\n\n{table(found, set_name)}")
    everything = [ratio(row) for row in rows if not row.get("error") and ratio(row)]
    if everything:
        parts.append(f"Geometric mean of best peer / ours over all {len(everything)} rows: "
                     f"{geometric_mean(everything):.2f}.\n")
    for reason, peers in missing(rows).items():
        parts.append(f"Missing: {', '.join(peers)}: {reason}.\n")
    found = problems(rows)
    if found:
        parts.append("Not timed:\n\n" + "\n".join(found) + "\n")
    return "\n".join(parts)
