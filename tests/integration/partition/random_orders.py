#!/usr/bin/env python3
"""Random nests whose outermost loop is not parallel give the same bytes as with plain clang -O0 when the compiler runs them in
another order.

  random_orders.py --cc fusion-cc [--plain clang-19] [--count 200] [--seed 1] [--splits 0,0.4,1] [--keep DIR]
  random_orders.py --cc clang-19 --self-check        the nests themselves

A nest has up to three loops, with statements at each depth, as factorisations of matrices have. Bounds are those of triangles and
rectangles, subscripts are counters that are shifted sometimes, and sums are in memory or in variables. All values stay below 1 in
magnitude. Fails when a function's result differs, and when fewer than a tenth of the nests were reordered, or ran so.
"""

import re
import sys

import random_nests
from random_nests import Array, Size

MOST = 12  # the largest size
# Nests of j and k: the bounds of both, what is read in the loop of k, and what after it.
NESTS = {"lower": ((0, "i"), (0, "j"), ("ik", "kj"), "jj"), "rows": ((0, "i"), (0, "j"), ("ik", "jk"), "jj"),
         "upper": (("i", "n"), (0, "i"), ("ik", "kj"), ""), "right": (("i + 1", "n"), (0, "i"), ("ik", "kj"), "ii"),
         "columns": (("i + 1", "n"), (0, "i"), ("ki", "kj"), "ii"), "all": ((0, "n"), (0, "i"), ("kj", "kj"), "ij")}
# What a loop of i consists of: a "flat" loop of k sums up an element of the diagonal, a "single" statement changes one.
FACTORISATIONS = ((3, ("lower", "upper")), (2, ("lower", "single", "upper")), (1, ("lower", "right")), (3, ("rows",)),
                  (3, ("rows", "flat")), (3, ("rows", "flat", "single")), (1, ("rows", "upper")), (1, ("columns", "single")),
                  (1, ("rows", "rows")), (1, ("all", "flat")), (1, ("lower", "flat", "upper")))


class Order(random_nests.Function):
    """One random function with a nest."""

    def __init__(self, chance, name):  # pylint: disable=super-init-not-called
        self.chance = chance
        self.name = name
        self.sizes = [Size("n", "int", -3, MOST), Size("r", "int", 1, MOST + 4)]
        self.restrict = self.likely(0.2)
        self.indirect = False
        self.arrays = [self.new_matrix(k) for k in range(self.pick((5, 1), (3, 2), (1, 3)))]
        self.rows = {array.name: self.pick((6, "r"), (1, "16"), (1, "n")) for array in self.arrays}
        self.wild = self.likely(0.25)  # bounds and subscripts are any; otherwise mostly those of factorisations
        self.written = {array.name for array in self.arrays}
        self.scratch = None
        self.reads, self.turn = None, False
        self.lines = []
        self.write_body()

    def new_matrix(self, k):
        return Array("abc"[k], self.pick((4, "double"), (1, "float")), "r" if self.likely(0.5) else "")

    @staticmethod
    def row(array):
        return array.width

    def arguments(self):
        """Rows mostly hold what is used of them."""
        values = super().arguments()
        values[1] = max(1, values[0] + self.pick((6, 2), (1, 1), (1, 0), (1, -3)))
        return values

    def write_body(self):
        for _ in range(self.pick((5, 1), (1, 2))):
            self.outermost()
        self.emit(1, "return 0;")

    def outermost(self):
        first = self.pick((4, 0), (1, 1))
        self.emit(1, self.pick((12, f"for (int i = {first}; i < n; i++) {{"), (1, "for (int i = n - 1; i >= 0; i--) {")))
        parts = list(self.pick(*FACTORISATIONS))
        if self.likely(0.1):
            self.chance.shuffle(parts)
        for part in parts:
            if part in NESTS:
                self.deep(*NESTS[part])
            elif part == "flat":
                self.emit(2, self.head("k", ["i"], (0, "i")))
                self.sum_or_statement(3, ["i", "k"], self.element("i", "i"), 0)
                self.emit(2, "}")
            else:
                self.emit(2, self.update(["i"], self.element("i", "i")))
        self.emit(1, "}")

    def deep(self, of_j, of_k, reads, behind):
        """Loops of j and k, with statements around the latter."""
        self.emit(2, self.head("j", ["i"], of_j))
        place = self.element("i", "j")
        before, after = self.likely(0.06), behind and self.likely(0.7)
        self.reads = None if self.wild or self.likely(0.07) else (reads, behind)
        if before:
            self.emit(3, self.update(["i", "j"], place))
        if self.likely(0.3):
            kind = next(array.type for array in self.arrays if array.name == place[0])
            self.emit(3, f"{kind} w = {place};")
            self.emit(3, self.head("k", ["i", "j"], of_k))
            # Sometimes the loop reads the element, too, which keeps its value until after the loop.
            self.emit(4, f"w = 0.5 * w + {self.pick((5, self.product(['i', 'j', 'k'])), (1, f'0.125 * {place}'))};")
            self.emit(3, "}")
            self.emit(3, f"{place} = w / (1.5 + {self.square(['i', 'j'])});" if self.likely(0.5) else f"{place} = w;")
        else:
            self.emit(3, self.head("k", ["i", "j"], of_k))
            self.sum_or_statement(4, ["i", "j", "k"], place, 0.1)
            self.emit(3, "}")
        if after:
            self.emit(3, self.update(["i", "j"], place))
        self.emit(2, "}")
        self.reads = None

    def sum_or_statement(self, level, counters, place, twice):
        guard = self.pick((20, ""), (1, f"if ({counters[-1]} > {counters[0]} - 3) "), (1, f"if ({counters[-1]} != {counters[0]}) "),
                          (0.5, f"if ({self.square(counters)} < 0.2) "))
        self.emit(level, guard + self.update(counters, place))
        if self.likely(twice):
            self.emit(level, self.update(counters, self.element(*self.chance.sample(counters, 2))))

    def head(self, counter, outer, usual):
        """A loop of a triangle or a rectangle."""
        if not self.wild and self.likely(0.95):
            return f"for (int {counter} = {usual[0]}; {counter} < {usual[1]}; {counter}++) {{"
        around = self.chance.choice(outer)
        bounds = self.pick((5, (0, around)), (2, (around, "n")), (2, (f"{around} + 1", "n")), (2, (0, "n")), (1, (1, around)),
                           (1, (0, f"{around} + 1")), (1, (1, f"{around} - 1")))
        return f"for (int {counter} = {bounds[0]}; {counter} < {bounds[1]}; {counter}++) {{"

    def index(self, counter):
        return counter + self.pick((40, ""), (1, " + 1"), (0.3, " - 1"))

    def element(self, row, column):
        array = self.arrays[0] if self.likely(0.7) else self.chance.choice(self.arrays)
        x, y = (self.index(row), self.index(column)) if not self.wild or self.likely(0.8) else (self.index(column), self.index(row))
        return f"{array.name}[{x}][{y}]" if array.width else f"{array.name}[({x}) * {self.rows[array.name]} + {y}]"

    def read(self, counters):
        """An element that a statement reads."""
        if self.reads:
            self.turn = not self.turn
            return self.element(*self.reads[0][self.turn] if len(counters) == 3 else self.reads[1] or "ij")
        if len(counters) == 3 and not self.wild:
            return self.element(*self.pick((4, "ik"), (4, "kj"), (2, "jk"), (0.5, "kk"), (0.3, "ki")))
        if len(counters) == 2 and not self.wild:
            usual = (4, counters) if counters[1] == "k" else (4, counters[1] * 2)
            return self.element(*self.pick(usual, (1, counters), (1, counters[0] * 2)))
        return self.element(self.chance.choice(counters), self.chance.choice(counters))

    def product(self, counters):
        return self.pick((5, f"0.25 * {self.read(counters)} * {self.read(counters)}"), (1, f"0.25 * {self.read(counters)}"),
                         (1, f"0.01 * {counters[-1]} * {self.read(counters)}"))

    def square(self, counters):
        element = self.read(counters)
        return f"{element} * {element}"

    def update(self, counters, place):
        if self.wild and self.likely(0.4):
            place = self.element(self.chance.choice(counters), self.chance.choice(counters))
        return self.pick((6, f"{place} = 0.5 * {place} + {self.product(counters)};"), (1, f"{place} = {self.product(counters)};"),
                         (2, f"{place} = {place} / (1.5 + {self.square(counters)});"))


def test(arguments, folder):
    remarks, calls, different = random_nests.test_files(arguments, folder)
    reordered = remarks.count(": loop reordered: ")
    ran = sum(len(re.findall(r": reordered [1-9]", path.read_text(encoding="utf-8"))) for path in folder.glob("*.report"))
    print(f"random_orders.py: {arguments.count} functions of seed {arguments.seed}, {reordered} nests reordered, {ran} times in a run, "
          f"{calls} calls compared, {len(different)} functions differ")
    if not arguments.self_check and (10 * reordered < arguments.count or ran < reordered):
        print("random_orders.py: too few nests were reordered")
        return 1
    return 1 if different else 0


def main():
    arguments = random_nests.parse(__doc__, Order, 200)
    return random_nests.partition_runs.in_folder(arguments.keep, lambda folder: test(arguments, folder))


if __name__ == "__main__":
    sys.exit(main())
