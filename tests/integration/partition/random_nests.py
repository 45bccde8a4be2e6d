#!/usr/bin/env python3
"""Random loop nests in C give the same bytes when a partitioning compiler splits them as when plain clang -O0 runs them.

  random_nests.py --cc fusion-cc [--plain clang-19] [--count 300] [--seed 1] [--splits 0,0.4,1] [--scratch 0.35] [--keep DIR]
  random_nests.py --cc clang-19 --self-check [--count 2000]    the nests themselves: no undefined behaviour, -O2 agrees with -O0

Every function takes sizes and pointers into one large buffer, where arrays overlap exactly, partly or not at all. All indices are
bounded when they are generated, so that every access stays in the buffer. Exits 1 when a function's result differs, and when the
compiler partitioned no loop at all.
"""

import dataclasses
import functools
import itertools
import random
import re
import sys

import partition_runs

PER_FILE = 50
SETS = 12  # argument sets of each function
LIMIT = 4000  # no index is further from its pointer than this, in elements
SLOT = 2 * LIMIT + 192  # elements between two places that never touch
SLOTS = 6  # places of each type's region: the outermost two are margins
LARGEST = 40  # the largest size of a function of up to two loops
LARGEST_DEEP = 12  # the largest size where three loops are nested
BYTES = {"double": 8, "float": 4, "int": 4, "short": 2, "unsigned char": 1, "const int": 4}
FLOATS = ("double", "float")
SIGNED = ("int", "long")
# The buffer has a region for each type; bytes may also be read in the other regions. Indirect indices lie in one that nobody writes.
REGIONS = ("double", "float", "int", "short", "unsigned char", "const int")


def region_starts():
    sizes = [SLOT * SLOTS * BYTES[name] for name in REGIONS]
    return dict(zip(REGIONS, [0] + list(itertools.accumulate(sizes)))), sum(sizes)


@dataclasses.dataclass
class Size:
    """A parameter that is a size."""
    name: str
    type: str
    least: int
    most: int


@dataclasses.dataclass
class Array:
    """A pointer parameter; width names the size in its declared row length, or is empty for a flat one."""
    name: str
    type: str
    width: str = ""


@dataclasses.dataclass
class Variable:
    """A loop's counter, at least `least` and at most `most`; below holds the sizes that it is less than, in every iteration."""
    name: str
    type: str
    least: int
    most: int
    below: tuple = ()
    bound: object = None


@dataclasses.dataclass
class Expression:
    """An index: its text, the interval of its values, and whether C computes it without a sign."""
    text: str
    least: int
    most: int
    unsigned: bool = False

    def fits(self):
        small = -LIMIT <= self.least and self.most <= LIMIT
        return small and not (self.unsigned and self.least < 0)


class Function:
    """One random function: its text and what its parameters may be."""

    def __init__(self, chance, name, scratch_share):
        self.chance = chance
        self.name = name
        self.depth = chance.choice((1, 1, 2, 2, 2, 3))
        self.most = LARGEST_DEEP if self.depth == 3 else LARGEST
        self.counters = itertools.count()
        self.sizes = [self.new_size(k) for k in range(chance.randint(1, self.depth if self.depth < 3 else 3))]
        self.restrict = chance.random() < 0.1
        self.arrays = [self.new_array(k) for k in range(chance.randint(1, 4))]
        self.indirect = chance.random() < 0.25
        self.tame = self.likely(0.4)  # mostly parallel: writes to each iteration's own element, no variables that are carried
        self.written = set()
        self.scratch = None  # an array that a nest writes anew in each iteration, or nearly so
        self.results = None  # where such a nest stores what it reads of that
        if len(self.arrays) > 1 and not self.arrays[0].width and self.likely(scratch_share):
            self.scratch = self.arrays[0]
        self.lines = []
        self.write_body()

    def pick(self, *weighted):
        """One of (weight, value) pairs."""
        return self.chance.choices([value for _, value in weighted], [weight for weight, _ in weighted])[0]

    def likely(self, share):
        return self.chance.random() < share

    # Parameters.

    def new_size(self, k):
        kind = self.pick((6, "int"), (2, "unsigned"), (2, "size_t"), (2, "long"))
        return Size("nmk"[k], kind, -3 if kind in SIGNED else 0, self.most)

    def new_array(self, k):
        kind = self.pick((5, "double"), (2, "float"), (3, "int"), (1, "short"), (1, "unsigned char"))
        width = self.chance.choice(self.sizes).name if self.depth == 2 and self.likely(0.3) else ""
        return Array("abcd"[k], kind, width)

    def size_named(self, name):
        return next(size for size in self.sizes if size.name == name)

    def parameters(self):
        mark = "restrict " if self.restrict else ""
        words = [f"{size.type} {size.name}" for size in self.sizes]
        for array in self.arrays:
            words.append(f"{array.type} (*{mark}{array.name})[{self.row(array)}]" if array.width else f"{array.type} *{mark}{array.name}")
        if self.indirect:
            words.append(f"const int *{mark}ix")
        return ", ".join(words)

    @staticmethod
    def row(array):
        """How long a row is."""
        return f"{array.width} + 4"

    def declaration(self, prefix=""):
        return f"double {prefix or 'NAME('}{self.name}{'' if prefix else ')'}({self.parameters()})"

    def text(self):
        return "\n".join([self.declaration() + " {"] + self.lines + ["}"]) + "\n"

    # Statements around the loops.

    def emit(self, level, line):
        self.lines.append("  " * level + line)

    def write_body(self):
        self.emit(1, "double s = 0.0, x = 0.25;")
        self.emit(1, "unsigned u = 7u, v = 3u;")
        for _ in range(self.pick((3, 1), (1, 2))):
            if self.likely(0.12):
                name = f"t{next(self.counters)}"
                self.emit(1, f"for (int {name} = 0; {name} < 3; ++{name}) {{")
                self.loop(2, self.depth, [])
                self.emit(1, "}")
            elif self.scratch and self.likely(0.8):
                self.scratch_nest(1)
            else:
                self.loop(1, self.depth, [])
        self.emit(1, "return s + 0.5 * x + (double)u + 4294967296.0 * (double)v;")

    # Loops.

    def loop(self, level, depth, outer):
        """A nest of `depth` loops inside the counters `outer`."""
        head, counter, foot = self.head(outer)
        pointers = self.bumped_pointers(level, depth, outer)
        if foot:
            self.emit(level, head[0])
            self.emit(level, head[1])
        else:
            self.emit(level, head)
        inner = outer + [counter]
        if depth > 1:
            if self.likely(0.4):
                self.statement(level + 1, inner, [])
            self.loop(level + 1, depth - 1, inner)
            if self.likely(0.3):
                self.statement(level + 1, inner, [])
            if self.likely(0.1):
                self.loop(level + 1, depth - 1, inner)
        else:
            for _ in range(self.pick((3, 1), (3, 2), (1, 3))):
                self.statement(level + 1, inner, pointers)
            for pointer, step in pointers:
                self.emit(level + 1, f"{pointer.name} += {step};")
        if foot:
            self.emit(level + 1, foot)
        self.emit(level, "}")
        if foot:
            self.emit(level, f"u += (unsigned){counter.name};")

    # Nests with an array that each iteration writes before it reads it. Many have a fault: a read that comes too early or goes too
    # far, a write that not every iteration makes, or of other elements.

    def scratch_nest(self, level):
        head, counter, foot = self.head([])
        for line in head if foot else [head]:
            self.emit(level, line)
        size = self.chance.choice(self.sizes)
        self.results = self.without_scratch(lambda: self.chance.choice(self.arrays))
        for k in range(self.pick((4, 2), (3, 3), (1, 4))):
            self.scratch_phase(level + 1, counter, size, k == 0)
        if self.likely(0.05 if self.tame else 0.3):
            self.scratch_statement(level + 1, [counter], size, False)
        if foot:
            self.emit(level + 1, foot)
        self.emit(level, "}")
        if foot:
            self.emit(level, f"u += (unsigned){counter.name};")

    def scratch_phase(self, level, outer, size, is_first):
        """A loop, or two, that write or read the array; or one element alone."""
        faults = 0.1 if self.tame else 1
        if self.likely(0.12 * faults):
            self.scratch_statement(level, [outer], size, is_first)
            return
        opened, counters = 0, [outer]
        guard = self.likely(0.06 * faults)
        if guard:
            self.emit(level, f"if ({self.guard([outer], [])}) {{")
            opened, level = 1, level + 1
        for _ in range(self.pick((5, 1), (2, 2))):
            if self.likely(1 - 0.25 * faults):
                name = f"i{next(self.counters)}"
                head = f"for ({size.type} {name} = 0; {name} < {size.name}; ++{name}) {{"
                counters.append(Variable(name, size.type, 0, size.most - 1, (size.name,), size))
            else:
                head, counter, foot = self.head(counters)
                if foot:  # a loop whose counter is used after it
                    name = f"i{next(self.counters)}"
                    head, counter = f"for (int {name} = 0; {name} < 3; ++{name}) {{", Variable(name, "int", 0, 2)
                counters.append(counter)
            self.emit(level, head)
            opened, level = opened + 1, level + 1
            if self.likely(0.1 * faults):
                self.scratch_statement(level, counters[:], size, is_first)
        self.scratch_statement(level, counters, size, is_first)
        if self.likely(0.3):
            self.scratch_statement(level, counters, size, False)
        for _ in range(opened):
            level -= 1
            self.emit(level, "}")

    def scratch_index(self, counters):
        """Mostly the innermost counter: an element of the array."""
        inner = counters[1:] or counters
        for _ in range(20):
            form = self.pick((80 if self.tame else 12, "counter"), (2, "shifted"), (1, "number"), (1, "reversed"), (1, "outer"), (2, "rows"), (0.5, "any"))
            found = self.of(inner[-1]) if len(counters) > 1 else Expression(str(self.chance.randint(0, 2)), 0, 2)
            if form == "shifted":
                found = self.shifted(found)
            elif form == "number":
                found = Expression(str(self.chance.randint(0, 2)), 0, 2)
            elif form == "reversed" and inner[-1].below:
                size = self.size_named(inner[-1].below[0])
                found = Expression(f"{size.name} - 1 - {inner[-1].name}", 0, size.most - 1, found.unsigned or size.type not in SIGNED)
            elif form == "outer":
                found = self.of(counters[0])
            elif form == "rows" and len(inner) > 1:
                found = self.rows(*inner[-2:])
            elif form == "any":
                found = self.unusual(counters)
            if found.fits():
                return found
        return Expression("1", 1, 1)

    def without_scratch(self, make):
        """What make() returns where the array is not among the others."""
        arrays = self.arrays
        self.arrays = [array for array in arrays if array is not self.scratch]
        made = make()
        self.arrays = arrays
        return made

    def scratch_value(self, counters):
        """What is written to the array: mostly of other arrays, but for the nest's results."""
        is_real = self.scratch.type in FLOATS
        others = [array for array in self.arrays if array not in (self.scratch, self.results)]
        if not others or self.likely(0.3):
            counter = self.chance.choice(counters).name
            return f"0.25 * (double){counter} + 0.375" if is_real else f"(unsigned){counter} * 5u + 11u"
        arrays = self.arrays
        if self.likely(0.9):
            self.arrays = others
        value = (self.real if is_real else self.whole)(counters, [])
        self.arrays = arrays
        return value

    def scratch_result(self, counters, size):
        """The element of the results that belongs to the iteration, mostly: of a row, or one alone."""
        target = self.results
        if target.width or self.likely(0.02 if self.tame else 0.1):
            return self.without_scratch(lambda: self.element(target, [counters[0], counters[-1]] if len(counters) > 1 else counters, True))
        first, last = self.of(counters[0]), self.of(counters[-1])
        if len(counters) == 1:
            return f"{target.name}[{first.text}]"
        unsigned = any(counter.type in ("unsigned", "size_t") for counter in (counters[0], counters[-1], size))
        if size.name in counters[-1].below and not (unsigned and size.least < 0):
            return f"{target.name}[{first.text} * {size.name} + {last.text}]"
        return f"{target.name}[{first.text} * {self.most} + {last.text}]"

    def scratch_statement(self, level, counters, size, is_first):
        array = self.scratch
        element = f"{array.name}[{self.scratch_index(counters).text}]"
        is_real = array.type in FLOATS
        form = self.pick((6 if is_first else 2, "write"), (0.5 if is_first else 2, "change"), (0.5 if is_first else 5, "read"))
        if form == "read":
            target = self.results
            place = self.scratch_result(counters, size)
            self.written.add(target.name)
            more = f" + {self.chance.choice(counters).name}" if self.likely(0.3) else ""
            if target.type in FLOATS:
                self.emit(level, f"{place} = ({target.type})(0.5 * (double){element}{more});")
            elif is_real:
                self.emit(level, f"{place} = ({target.type})({element} > 0.25);")
            else:
                self.emit(level, f"{place} = ({target.type})((unsigned){element} * 3u{more});")
            return
        self.written.add(array.name)
        value = self.scratch_value(counters)
        if form == "change":
            value = f"0.5 * {element} + {value}" if is_real else f"(unsigned){element} + {value}"
        statement = f"{element} = {value if is_real else f'({array.type})({value})'};"
        self.emit(level, f"if ({self.guard(counters, [])}) {statement}" if self.likely(0.02 if self.tame else 0.08) else statement)

    def bumped_pointers(self, level, depth, outer):
        """Pointers that move in each iteration of the innermost loop; they start again before it."""
        flat = [array for array in self.arrays if not array.width]
        if depth > 1 or not flat or not self.likely(0.2):
            return []
        array = self.chance.choice(flat)
        name = f"p{next(self.counters)}"
        start = self.index(outer) if outer and self.likely(0.6) else Expression(str(self.chance.randint(-2, 2)), -2, 2)
        if not -LIMIT + 200 <= start.least or not start.most <= LIMIT - 200:
            start = Expression("0", 0, 0)
        step = self.pick((6, 1), (2, 2), (1, 3), (1, -1))
        self.emit(level, f"{array.type} *{name} = {array.name} + ({start.text});")
        return [(Array(name, array.type), step)]

    def head(self, outer):
        """The first line of a loop, its counter and, for a while loop, the line at the end of its body."""
        name = f"i{next(self.counters)}"
        if outer and self.likely(0.3):
            found = self.triangular(name, outer[-1])
            if found:
                return found
        size = self.chance.choice(self.sizes)
        kind = self.counter_type(size)
        bound, most = size.name, size.most
        below = (size.name,)
        if self.likely(0.15):
            most = self.chance.randint(1, self.most)
            bound, below, kind = str(most), (), self.chance.choice(("int", "unsigned", "size_t", "long"))
            size = None
        return self.plain_head(name, kind, bound, most, below, size)

    def counter_type(self, size):
        """A type that compares with the size without a surprise: unsigned counters need unsigned sizes."""
        if self.likely(0.7):
            return size.type
        return self.chance.choice(("int", "long") if size.type in SIGNED else ("int", "unsigned", "size_t", "long"))

    def plain_head(self, name, kind, bound, most, below, size):
        form = self.pick((10, "up"), (2, "step"), (1, "at most"), (2, "down"), (1, "not equal"), (1, "while"))
        first = self.pick((4, 0), (2, 1), (1, 2))
        if form == "down" and (kind in SIGNED and (size is None or size.type in SIGNED)):
            counter = Variable(name, kind, first, most - 1, below)
            return f"for ({kind} {name} = {bound} - 1; {name} >= {first}; --{name}) {{", counter, ""
        if form == "down":
            return f"for ({kind} {name} = {bound}; {name}-- > 0;) {{", Variable(name, kind, 0, most - 1, below), ""
        if form == "at most":
            return f"for ({kind} {name} = {first}; {name} <= {bound}; ++{name}) {{", Variable(name, kind, first, most), ""
        if form == "not equal" and (size is None or size.type not in SIGNED):
            return f"for ({kind} {name} = 0; {name} != {bound}; ++{name}) {{", Variable(name, kind, 0, most - 1, below), ""
        counter = Variable(name, kind, first, max(first, most - 1), below, size)
        if form == "while":
            return (f"{kind} {name} = {first};", f"while ({name} < {bound}) {{"), counter, f"++{name};"
        step = self.chance.choice(("2", "3")) if form == "step" else "1"
        return f"for ({kind} {name} = {first}; {name} < {bound}; {name} += {step}) {{", counter, ""

    def triangular(self, name, outer):
        """A loop whose bounds depend on the counter around it."""
        form = self.chance.choice(("from", "behind", "up to", "below", "rest"))
        kind = outer.type
        if form == "up to":
            return f"for ({kind} {name} = 0; {name} <= {outer.name}; ++{name}) {{", Variable(name, kind, 0, outer.most, outer.below), ""
        if form == "below":
            return f"for ({kind} {name} = 0; {name} < {outer.name}; ++{name}) {{", Variable(name, kind, 0, outer.most, outer.below), ""
        size = self.size_named(outer.below[0]) if outer.below else None
        if size is None or (kind not in SIGNED and size.type in SIGNED):
            return None
        if form == "rest":
            if size.type in ("unsigned", "size_t") and kind != size.type:
                return None
            return (f"for ({kind} {name} = 0; {name} < {size.name} - {outer.name}; ++{name}) {{",
                    Variable(name, kind, 0, size.most, (size.name,)), "")
        start = outer.name if form == "from" else f"{outer.name} + 1"
        return (f"for ({kind} {name} = {start}; {name} < {size.name}; ++{name}) {{",
                Variable(name, kind, outer.least, size.most, (size.name,)), "")

    # Indices.

    @staticmethod
    def of(counter):
        return Expression(counter.name, counter.least, counter.most, counter.type in ("unsigned", "size_t"))

    def shifted(self, expression):
        """The expression with a small constant added; one without a sign stays at 0 or above."""
        if self.likely(0.45):
            return expression
        least = max(-2, -expression.least) if expression.unsigned else -2
        shift = self.chance.randint(least, 2) if least <= 2 else 2
        if shift == 0:
            return expression
        text = f"{expression.text} {'-' if shift < 0 else '+'} {abs(shift)}"
        return Expression(text, expression.least + shift, expression.most + shift, expression.unsigned)

    def rows(self, first, second):
        """first * width + second, where a row is as long as some size or constant."""
        if self.likely(0.75):
            size = self.size_named(second.below[0]) if second.below and self.likely(0.8) else self.chance.choice(self.sizes)
            width = Expression(size.name, size.least, size.most, size.type in ("unsigned", "size_t"))
        else:
            number = self.chance.choice((self.most, self.most, 3, 7))
            width = Expression(str(number), number, number)
        a, c = self.of(first), self.of(second)
        unsigned = a.unsigned or width.unsigned or c.unsigned
        cast = self.pick((6, ""), (2, "(long)"), (1, "(size_t)"), (1, "(unsigned)"))
        unsigned = unsigned or "size_t" in cast or "unsigned" in cast
        if unsigned and width.least < 0:
            cast, unsigned, width = "", True, Expression(str(self.most), self.most, self.most)
        corners = [p * q for p in (a.least, a.most) for q in (width.least, width.most)]
        return Expression(f"{cast}{a.text} * {width.text} + {c.text}", min(corners) + c.least, max(corners) + c.most, unsigned)

    def canonical(self, counters):
        """The element that belongs to the iteration of the innermost loops: what a parallel loop writes."""
        if len(counters) == 1:
            return self.of(counters[0])
        if len(counters) == 2 or self.likely(0.3):
            return self.rows(*counters[-2:])
        first, second, third = counters[-3:]
        unsigned = any(self.of(counter).unsigned for counter in (first, second, third))
        most = (first.most * self.most + second.most) * self.most + third.most
        return Expression(f"({first.name} * {self.most} + {second.name}) * {self.most} + {third.name}", 0, most, unsigned)

    def unusual(self, counters):
        """Reversed, strided, folded, shared, indirect elements and sums of counters."""
        counter = self.chance.choice(counters)
        base = self.of(counter)
        form = self.chance.choice(("reversed", "double", "odd", "half", "third", "mask", "one", "sum", "moved", "indirect"))
        if form == "reversed" and counter.below:
            size = self.size_named(counter.below[0])
            unsigned = base.unsigned or size.type not in SIGNED
            return Expression(f"{size.name} - 1 - {counter.name}", 0, size.most - 1, unsigned)
        if form in ("double", "odd"):
            return Expression(f"2 * {counter.name}" + (" + 1" if form == "odd" else ""), 0, 2 * base.most + 1, base.unsigned)
        if form in ("half", "third", "mask"):
            most = {"half": base.most // 2, "third": 2, "mask": 7}[form]
            operation = {"half": "/ 2", "third": "% 3", "mask": "& 7"}[form]
            return Expression(f"({counter.name} {operation})", 0, most, base.unsigned)
        if form == "sum" and len(counters) > 1:
            other = self.chance.choice(counters)
            return Expression(f"{counter.name} + {other.name}", 0, counter.most + other.most, True)
        if form == "moved":
            size = self.chance.choice(self.sizes)
            if size.type in SIGNED and base.unsigned:
                return base
            return Expression(f"{counter.name} + {size.name}", size.least, base.most + size.most, size.type not in SIGNED or base.unsigned)
        if form == "indirect":
            return self.loaded_index(counter, base)
        return Expression(str(self.chance.randint(0, 3)), 0, 3)

    def loaded_index(self, counter, base):
        if self.indirect:
            return Expression(f"ix[{counter.name}]", 0, LARGEST)
        numbers = [array for array in self.arrays if array.type == "int" and not array.width]
        return Expression(f"({self.chance.choice(numbers).name}[{counter.name}] & 15)", 0, 15) if numbers else base

    def index(self, counters, plain=False):
        """An index into a flat array from the counters around it."""
        if not counters:
            return Expression(str(self.chance.randint(0, 3)), 0, 3)
        for _ in range(20):
            if plain or self.likely(0.55):
                found = self.canonical(counters)
            elif self.likely(0.5):
                found = self.unusual(counters)
            elif len(counters) > 1 and self.likely(0.6):
                found = self.rows(*self.chance.sample(counters, 2))
            else:
                found = self.of(self.chance.choice(counters))
            if not (plain and self.likely(0.7)):
                found = self.shifted(found)
            if found.fits():
                return found
        return Expression("1", 1, 1)

    def element(self, array, counters, plain=False):
        """The text of an access to the array."""
        if not array.width:
            return f"{array.name}[{self.index(counters, plain).text}]"
        inside = [counter for counter in counters if array.width in counter.below]
        if inside:
            column = self.chance.choice(inside[-1:] if plain else inside)
            text = f"{column.name} + {self.chance.randint(0, 4)}"
        else:
            column, text = None, "0"
        others = [counter for counter in counters if counter is not column] or counters
        row = self.of(others[0] if plain else self.chance.choice(others))
        if not plain:
            row = self.shifted(row)
        return f"{array.name}[{row.text}][{text}]"

    # Values and statements.

    def load(self, counters, pointers):
        """The text and the type of a random read."""
        choices = self.arrays + [pointer for pointer, _ in pointers]
        array = self.chance.choice(choices)
        if any(array is pointer for pointer, _ in pointers):
            return f"*{array.name}", array.type
        return self.element(array, counters, self.likely(0.7 if self.tame else 0.3)), array.type

    def real(self, counters, pointers):
        """A floating-point value whose size is at most a little more than that of its operands."""
        text, _ = self.load(counters, pointers)
        form = self.chance.choice(("one", "two", "counter", "scalar", "choice", "product"))
        if form == "two":
            return f"0.5 * {text} + 0.25 * {self.load(counters, pointers)[0]}"
        if form == "counter":
            return f"0.5 * {text} + 0.125 * (double){self.chance.choice(counters).name}"
        if form == "scalar":
            return f"0.5 * {text} - 0.25 * x"
        if form == "choice":
            return f"({text} > 0.25 ? 0.5 * {self.load(counters, pointers)[0]} : 0.75 - 0.5 * {text})"
        if form == "product":
            other = self.load(counters, pointers)[0]
            return f"({text} < 4.0 && {text} > -4.0 && {other} < 4.0 && {other} > -4.0 ? 0.25 * {text} * {other} : 0.5)"
        return f"0.5 * {text} + 0.375"

    def whole(self, counters, pointers):
        """An unsigned value that wraps around."""
        text, kind = self.load(counters, pointers)
        first = f"({text} > 0.25)" if kind in FLOATS else f"(unsigned){text} * 3u"
        form = self.chance.choice(("one", "two", "counter", "scalar"))
        if form == "two":
            other, kind = self.load(counters, pointers)
            return first + (f" + ({other} < 0.5)" if kind in FLOATS else f" + (unsigned){other}")
        if form == "counter":
            return f"{first} + (unsigned){self.chance.choice(counters).name} * 5u"
        return f"{first} + v" if form == "scalar" else f"{first} + 11u"

    def assignment(self, counters, pointers):
        """A statement that writes an element of an array."""
        moved = [pointer for pointer, _ in pointers]
        array = self.chance.choice(moved) if moved and self.likely(0.5) else self.chance.choice(self.arrays)
        origin = array
        target = f"*{array.name}" if array in moved else self.element(array, counters, self.likely(0.97 if self.tame else 0.75))
        if array in moved:
            origin = next(other for other in self.arrays if re.search(rf"\*{array.name} = {other.name} ", "\n".join(self.lines)))
        self.written.add(origin.name)
        if array.type in FLOATS:
            value = self.real(counters, pointers)
            return f"{target} = 0.5 * {target} + {value};" if self.likely(0.25) else f"{target} = {value};"
        value = self.whole(counters, pointers)
        return f"{target} = ({array.type})((unsigned){target} + {value});" if self.likely(0.25) else f"{target} = ({array.type})({value});"

    def guard(self, counters, pointers):
        counter = self.chance.choice(counters)
        form = self.chance.choice(("value", "value", "first", "even", "order"))
        if form == "value":
            text, kind = self.load(counters, pointers)
            return f"{text} > {'0.125' if kind in FLOATS else '20'}"
        if form == "first":
            return f"{counter.name} > 0"
        if form == "even":
            return f"{counter.name} % 2 == 0"
        return f"{counters[0].name} < {counters[-1].name}" if len(counters) > 1 else f"{counter.name} != 4"

    def scalar(self, level, counters, pointers):
        """A statement that changes a variable of the function: private, carried or a sum."""
        form = self.pick((2, "sum"), (2, "whole sum"), (1, "largest"), (2, "last"), (1, "carried"), (4, "private"), (1, "inner while"))
        if form == "sum":
            self.emit(level, f"s += {self.real(counters, pointers)};")
        elif form == "whole sum":
            self.emit(level, f"u += {self.whole(counters, pointers)};")
        elif form == "largest":
            self.emit(level, f"if ({self.whole(counters, pointers)} > u) u = {self.whole(counters, pointers)};")
        elif form == "last":
            self.emit(level, f"v = {self.whole(counters, pointers)};")
        elif form == "carried":
            self.emit(level, f"x = 0.5 * x + 0.25 * {self.load(counters, pointers)[0]};")
        elif form == "private":
            self.private(level, counters, pointers)
        else:
            self.inner_while(level, counters, pointers)

    def private(self, level, counters, pointers):
        """A block with a variable of its own, or one that is assigned in each iteration before it is used."""
        floats = [array for array in self.arrays if array.type in FLOATS]
        if not floats:
            self.emit(level, self.assignment(counters, pointers))
            return
        name = f"y{next(self.counters)}" if self.likely(0.95 if self.tame else 0.7) else "x"
        self.emit(level, f"{'' if name == 'x' else 'double '}{name} = {self.real(counters, pointers)};")
        array = self.chance.choice(floats)
        self.written.add(array.name)
        self.emit(level, f"{self.element(array, counters, self.likely(0.8))} = 0.5 * {name} + 0.125;")

    def inner_while(self, level, counters, pointers):
        """A loop whose count is known only when it has run."""
        floats = [array for array in self.arrays if array.type in FLOATS]
        if not floats:
            self.emit(level, self.assignment(counters, pointers))
            return
        value, count = f"w{next(self.counters)}", f"q{next(self.counters)}"
        array = self.chance.choice(floats)
        self.written.add(array.name)
        self.emit(level, f"double {value} = {self.load(counters, pointers)[0]};")
        self.emit(level, f"int {count} = 0;")
        self.emit(level, f"while ({count} < 9 && {value} > 0.01) {{ {value} *= 0.5; ++{count}; }}")
        self.emit(level, f"{self.element(array, counters, True)} = {value} + 0.125 * {count};")

    def statement(self, level, counters, pointers):
        wild = 0 if self.tame else 1
        form = self.pick((9, "write"), (3, "guard"), (4 * wild, "scalar"), (0.4 * wild, "break"), (2, "private"))
        if form == "write":
            self.emit(level, self.assignment(counters, pointers))
        elif form == "scalar":
            self.scalar(level, counters, pointers)
        elif form == "private":
            self.private(level, counters, pointers)
        elif form == "break":
            self.emit(level, f"if ({self.load(counters, pointers)[0]} > 110) {{ s += 1.0; break; }}")
        else:
            self.emit(level, f"if ({self.guard(counters, pointers)}) {{")
            self.emit(level + 1, self.assignment(counters, pointers))
            if self.likely(0.25):
                self.emit(level, "} else {")
                self.emit(level + 1, self.assignment(counters, pointers))
            self.emit(level, "}")

    # Arguments.

    def arguments(self):
        """One set of arguments: numbers for the sizes, byte offsets into the buffer for the pointers."""
        values = [self.size_value(size) for size in self.sizes]
        far = self.restrict or self.likely(0.75 if self.scratch else 0.2)
        slots = self.chance.sample(range(1, SLOTS - 1), 4)
        together = self.chance.choice((0, 0, 1, 8, 50, 150))
        for k, array in enumerate(self.arrays):
            values.append(self.place(array, slots[k] if far else slots[0], 0 if far else together))
        if self.indirect:
            values.append(region_starts()[0]["const int"] + 4 * (SLOT + self.chance.randint(0, 100)))
        return values

    def size_value(self, size):
        return self.pick((1, size.least), (1, 0), (1, 1), (1, 2), (6, self.chance.randint(max(0, size.least), size.most)), (2, size.most))

    def place(self, array, slot, together):
        """The byte offset of an array; bytes that are only read may lie in the region of another type."""
        kind = array.type
        starts = region_starts()[0]
        middle = SLOT * slot + SLOT // 2 + self.chance.randint(-together, together)
        if kind == "unsigned char" and not self.restrict:
            kinds = ("int", "short") + (() if array.name in self.written else FLOATS)
            other = self.chance.choice(sorted({array.type for array in self.arrays if array.type in kinds}) or [kind])
            if other != kind:
                return starts[other] + BYTES[other] * (SLOT * slot + SLOT // 2) + self.chance.randint(-60, 300)
        return starts[kind] + BYTES[kind] * middle


HEADER = """#include <stddef.h>
#ifdef REFERENCE
#define NAME(x) reference_##x
#else
#define NAME(x) tested_##x
#endif
"""

DRIVER = """
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static _Alignas(64) char start[TOTAL], expected[TOTAL], got[TOTAL];
static const char *at = "";
static int set;

// A crash is a difference: it says where, and the driver's caller goes on behind this function.
static void crashed(int number) {
  char line[200];
  int length = snprintf(line, sizeof line, "CRASHED %s %d signal %d\\n", at, set, number);
  if (write(1, line, (size_t)length) < 0) _exit(3);
  _exit(2);
}

static unsigned state = 1;
static unsigned next(void) { return state = state * 1664525u + 1013904223u; }

static void fill(void) {
  for (int i = 0; i < ELEMENTS; ++i) {
    ((double *)(start + AT_DOUBLE))[i] = ((int)(next() >> 16) % 257 - 128) / 128.0;
    ((float *)(start + AT_FLOAT))[i] = (float)(((int)(next() >> 16) % 257 - 128) / 128.0);
    ((int *)(start + AT_INT))[i] = (int)(next() >> 16) % 100 - 20;
    ((short *)(start + AT_SHORT))[i] = (short)((int)(next() >> 16) % 100 - 20);
    ((unsigned char *)(start + AT_BYTE))[i] = (unsigned char)(next() >> 24);
    ((int *)(start + AT_INDEX))[i] = (int)((next() >> 16) % 41);
  }
}

static void compare(double a, double b) {
  if (memcmp(&a, &b, sizeof a) != 0) printf("DIFFERS %s %d value %a, not %a\\n", at, set, b, a);
  if (memcmp(expected, got, sizeof got) == 0) return;
  long first = 0, count = 0;
  for (long i = TOTAL - 1; i >= 0; --i)
    if (expected[i] != got[i]) first = i, ++count;
  printf("DIFFERS %s %d bytes %ld, first %ld\\n", at, set, count, first);
}
"""

MAIN = """
int main(int count, char **words) {
  int first = count > 1 ? atoi(words[1]) : 0;
  setvbuf(stdout, NULL, _IOLBF, 0);
  signal(SIGSEGV, crashed);
  signal(SIGBUS, crashed);
  signal(SIGFPE, crashed);
  signal(SIGABRT, crashed);
  signal(SIGILL, crashed);
  signal(SIGTRAP, crashed);
  signal(SIGALRM, crashed);
  fill();
  for (int f = first; f < (int)(sizeof call / sizeof *call); ++f) {
    at = names[f];
    alarm(20);
    for (set = 0; set < SETS; ++set) {
      memcpy(expected, start, sizeof start);
      memcpy(got, start, sizeof start);
      double a = call[f](expected, set, 0), b = call[f](got, set, 1);
      compare(a, b);
    }
    printf("DONE %s\\n", at);
  }
  return 0;
}
"""


def driver_call(function, sets):
    """C text that calls one function, tested or not, with one of its argument sets."""
    rows = ",\n".join("  {" + ", ".join(map(str, row)) + "}" for row in sets)
    words = [f"({size.type})w[{k}]" for k, size in enumerate(function.sizes)]
    words += [f"(void *)(m + w[{k}])" for k in range(len(words), len(sets[0]))]
    call = ", ".join(words)
    return (f"{function.declaration('reference_')};\n{function.declaration('tested_')};\n"
            f"static const long sets_{function.name}[SETS][{len(sets[0])}] = {{\n{rows}}};\n"
            f"static double call_{function.name}(char *m, int set, int tested) {{\n  const long *w = sets_{function.name}[set];\n"
            f"  return tested ? tested_{function.name}({call}) : reference_{function.name}({call});\n}}\n")


def driver_text(functions, sets):
    starts, total = region_starts()
    places = zip(("DOUBLE", "FLOAT", "INT", "SHORT", "BYTE", "INDEX"), REGIONS)
    text = "#include <stddef.h>\n" + f"#define TOTAL {total}\n#define SETS {SETS}\n#define ELEMENTS {SLOT * SLOTS}\n"
    text += "".join(f"#define AT_{name} {starts[region]}\n" for name, region in places) + DRIVER
    text += "".join(driver_call(function, sets[function.name]) for function in functions)
    text += "static double (*const call[])(char *, int, int) = {" + ", ".join(f"call_{f.name}" for f in functions) + "};\n"
    text += "static const char *const names[] = {" + ", ".join(f'"{f.name}"' for f in functions) + "};\n"
    return text + MAIN


def generate(arguments, first, count):
    """Functions first .. first + count - 1 of a seed, and their argument sets."""
    functions, sets = [], {}
    for k in range(first, first + count):
        function = arguments.kind(random.Random(f"{arguments.seed} {k}"), f"f{k}")
        functions.append(function)
        sets[function.name] = [function.arguments() for _ in range(SETS)]
    return functions, sets


def sanitizers(arguments):
    """Options that end the reference at undefined behaviour; with --plain gcc, at addresses outside the buffer too.

    They need no run time of clang-19, which Debian has in another package."""
    if arguments.self_check != "sanitized":
        return []
    if "clang" in arguments.plain:
        return ["-fsanitize=undefined", "-fsanitize-trap=undefined"]
    return ["-fsanitize=undefined,address", "-fno-sanitize-recover=undefined"]


def compile_tested(arguments, source, target, functions):
    """Compiles functions with the compiler that is tested: (whether it succeeded, its remarks)."""
    source.write_text(HEADER + "\n" + "\n".join(function.text() for function in functions), encoding="utf-8")
    return partition_runs.try_compiler([arguments.compiler, "-O2", "-ffp-contract=off", "-Rpass=fusion", "-c", source, "-o", target])


def refused_functions(arguments, folder, functions):
    """Names of the functions that the tested compiler fails on, one by one; their text is printed."""
    names = set()
    for function in functions:
        good, text = compile_tested(arguments, folder / "one.c", folder / "one.o", [function])
        if not good:
            errors = "\n".join(line for line in text.splitlines() if "remark:" not in line)
            print(f"\n{function.name} of seed {arguments.seed}: the compiler fails: {errors[:300]}\n{function.text()}")
            names.add(function.name)
    return names


def compile_all(arguments, folder, number, functions):
    """Compiles one file for the test: (functions that the compiler takes, its remarks)."""
    source, target = folder / f"nests{number}.c", folder / f"nests{number}_tested.o"
    good, remarks = compile_tested(arguments, source, target, functions)
    if not good:
        names = refused_functions(arguments, folder, functions)
        functions = [function for function in functions if function.name not in names]
        good, remarks = compile_tested(arguments, source, target, functions)
    if not good:
        sys.exit(f"the compiler fails on {source} as a whole: {remarks[:1000]}")
    return functions, remarks


def build(arguments, folder, number, functions, sets):
    """Compiles what compile_all() left once more with the plain compiler, and links the program that compares the two."""
    reference, tested, main = (folder / f"nests{number}_{part}.o" for part in ("reference", "tested", "driver"))
    driver, program, checks = folder / f"nests{number}_driver.c", folder / f"nests{number}", sanitizers(arguments)
    driver.write_text(driver_text(functions, sets), encoding="utf-8")
    source = folder / f"nests{number}.c"
    partition_runs.call_compiler([arguments.plain, "-O0", "-ffp-contract=off", "-w", "-DREFERENCE", *checks, "-c", source, "-o", reference])
    partition_runs.call_compiler([arguments.plain, "-O1", "-w", "-c", driver, "-o", main])
    partition_runs.call_compiler([arguments.plain if checks else arguments.compiler, *checks, main, reference, tested, "-o", program])
    return program


def run_all(program, functions, split, report):
    """The differences of one program at one split: (function's name, set, what). Goes on behind a function that crashed."""
    found, first = [], 0
    while first < len(functions):
        status, out = partition_runs.run_program([program, first], split, report)
        lines = [line.split(" ", 3) for line in out.splitlines() if line.startswith(("DIFFERS", "CRASHED"))]
        found += [(words[1], int(words[2]), words[0].lower() + " " + words[3]) for words in lines]
        done = sum(line.startswith("DONE") for line in out.splitlines())
        if status == 0:
            break
        if not lines or not lines[-1][0] == "CRASHED":
            found.append((functions[min(first + done, len(functions) - 1)].name, 0, f"ended with status {status}"))
        first += done + 1
    return found


def print_difference(arguments, function, sets, split, found):
    names = [size.name for size in function.sizes] + [array.name for array in function.arrays] + ["ix"]
    print(f"\n{function.name} of seed {arguments.seed}, split {split}: {len(found)} differences")
    for _, number, what in found[:3]:
        words = ", ".join(f"{name}={value}" for name, value in zip(names, sets[function.name][number]))
        print(f"  set {number}: {what}; {words}")
    print(function.text())


def test_file(arguments, folder, number, count):
    """One file of functions: (its remarks, calls compared, names of functions that differ)."""
    functions, sets = generate(arguments, number * PER_FILE, count)
    kept, remarks = compile_all(arguments, folder, number, functions)
    calls, different = 0, {function.name for function in functions if function not in kept}
    program = build(arguments, folder, number, kept, sets)
    for split in partition_runs.splits_of(arguments):
        found = run_all(program, kept, split, folder / f"nests{number}.report")
        calls += len(kept) * SETS
        for function in kept:
            mine = [entry for entry in found if entry[0] == function.name]
            if mine and function.name not in different:
                print_difference(arguments, function, sets, split, mine)
                different.add(function.name)
    return remarks, calls, different


def test_files(arguments, folder):
    """All functions: (the remarks, calls compared, names of functions that differ)."""
    remarks, calls, different = "", 0, set()
    for number, first in enumerate(range(0, arguments.count, PER_FILE)):
        more = test_file(arguments, folder, number, min(PER_FILE, arguments.count - first))
        remarks, calls, different = remarks + more[0], calls + more[1], different | more[2]
        sys.stdout.flush()
    return remarks, calls, different


def test(arguments, folder):
    remarks, calls, different = test_files(arguments, folder)
    loops = re.findall(": loop partitioned: .*", remarks)
    private = sum("private to each iteration" in loop for loop in loops)
    print(f"random_nests.py: {arguments.count} functions of seed {arguments.seed}, {len(loops)} loops partitioned, {private} of them with private "
          f"arrays, {calls} calls compared, {len(different)} functions differ")
    if not loops and not arguments.self_check:
        print("random_nests.py: the compiler partitioned nothing")
        return 1
    return 1 if different else 0


def parse(description, kind, count, add_options=lambda parser: None):
    """The command line of a test with functions of one kind."""
    parser = partition_runs.options(description)
    add_options(parser)
    parser.set_defaults(kind=kind)
    parser.add_argument("--count", type=int, default=count)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--self-check", choices=("plain", "sanitized"), nargs="?", const="plain",
                        help="the compiler need not partition: this looks at the generated nests themselves, or also at their behaviour")
    return parser.parse_args()


def main():
    arguments = parse(__doc__, Function, 300, lambda parser: parser.add_argument(
        "--scratch", type=float, default=0.35, help="the share of functions whose nests write an array anew in each iteration"))
    arguments.kind = functools.partial(Function, scratch_share=arguments.scratch)
    return partition_runs.in_folder(arguments.keep, lambda folder: test(arguments, folder))


if __name__ == "__main__":
    sys.exit(main())
