#!/usr/bin/env python3
"""Time over floor of every sequence and peer as SVG, a panel for each set and type. No library is needed.

    tests/bench/peers/plot.py RESULTS.json PLOT.svg
"""
import html
import json
import math
import pathlib
import sys

import report
import sequences

LEFT, RIGHT, TOP, ROW, AXIS, GAP = 190, 40, 64, 22, 34, 26
WIDTH = 960
COLORS = {"ours": "#c22f1f", "cublas": "#3d7a2a", "eager": "#8f8f8f", "compile": "#2b62b0", "compile_graphs": "#7fb2e5",
          "compile_products": "#6d4fa3", "jax": "#e0a021"}
TICKS = (0.25, 0.5, 1, 2, 5, 10, 20, 50, 100, 200)


def place(value, low, high):
    """x of a value on the logarithmic axis."""
    share = (math.log(value) - math.log(low)) / (math.log(high) - math.log(low))
    return LEFT + share * (WIDTH - LEFT - RIGHT)


def text(x, y, content, anchor="start", size=12, weight="normal"):
    return (f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}" font-weight="{weight}">'
            f"{html.escape(content)}</text>")


def marker(peer, x, y, tip):
    """Ours is a diamond on top of the others' dots."""
    kind, place_of = (("path", f'd="M{x:.1f} {y - 7:.1f} l7 7 l-7 7 l-7 -7 z"') if peer == "ours"
                      else ("circle", f'cx="{x:.1f}" cy="{y:.1f}" r="4.5"'))
    return f'<{kind} {place_of} fill="{COLORS[peer]}" fill-opacity="0.85"><title>{html.escape(tip)}</title></{kind}>'


def panel(rows, heading, top, low, high):
    """The SVG of one group of rows, and its height."""
    bottom = top + GAP + ROW * len(rows)
    parts = [text(LEFT, top + 14, heading, weight="bold")]
    for tick in TICKS:
        if low <= tick <= high:
            x = place(tick, low, high)
            parts.append(f'<line x1="{x:.1f}" y1="{top + GAP}" x2="{x:.1f}" y2="{bottom}" '
                         f'stroke="{"#444" if tick == 1 else "#ddd"}"/>')
            parts.append(text(x, bottom + 14, f"{tick:g}", "middle", 11))
    for number, row in enumerate(rows):
        y = top + GAP + ROW * (number + 0.5)
        parts.append(text(LEFT - 10, y + 4, report.title(row), "end"))
        for peer in reversed(sequences.PEERS):
            seconds = report.seconds(row, peer)
            if seconds:
                over = seconds / row["floor_seconds"]
                tip = f"{report.title(row)}, {sequences.PEERS[peer]}: {over:.2f} ({report.microseconds(seconds)} us)"
                parts.append(marker(peer, place(over, low, high), y, tip))
    return parts, GAP + ROW * len(rows) + AXIS


def draw(rows, caption):
    """An SVG document of the rows that were timed."""
    timed = [row for row in rows
             if not row.get("error") and any(report.seconds(row, peer) for peer in sequences.PEERS)]
    overs = [report.seconds(row, peer) / row["floor_seconds"] for row in timed for peer in sequences.PEERS
             if report.seconds(row, peer)]
    low, high = 0.9 * min(overs + [1]), 1.1 * max(overs + [2])
    body, top = [], TOP
    for set_name, data_type, found in report.groups(timed):
        parts, height = panel(found, f"{data_type}, {report.SET_TITLES[set_name]}", top, low, high)
        body += parts
        top += height
    legend, x = [], 16
    for peer, name in sequences.PEERS.items():
        if any(report.seconds(row, peer) for row in timed):
            legend += [marker(peer, x, 44, name), text(x + 11, 48, name)]
            x += 30 + 6.6 * len(name)
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{top + 8}" font-family="sans-serif" '
            'fill="#222">\n'
            f'<rect width="{WIDTH}" height="{top + 8}" fill="#fff"/>\n'
            + "\n".join([text(16, 22, f"Time over floor, {caption}", size=14, weight="bold"), *legend, *body]) + "\n</svg>\n")


def main():
    document = json.loads(pathlib.Path(sys.argv[1]).read_text())
    pathlib.Path(sys.argv[2]).write_text(draw(document["rows"], document["device"]["name"]))


if __name__ == "__main__":
    main()
