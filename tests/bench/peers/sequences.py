"""The sequences that are compared: their data, sizes and fewest bytes. No computation: that is in examples/*.fuse
(and one line of mapped products here), torch_sequences.py, jax_sequences.py and cublas_sequences.cc, all with inputs, scalars and outputs in the order given here.

A shape is a list of letters and numbers: "m n" a matrix, "e 3 3" a list of 3 x 3 matrices, "" a scalar.
"""
import dataclasses
import math
import pathlib
import re

# Who is compared, in the order of tables. "ours" is what is measured against the others.
PEERS = {"ours": "ours", "cublas": "cuBLAS", "eager": "torch eager", "compile": "torch.compile",
         "compile_graphs": "torch.compile, CUDA graphs", "compile_products": "torch.compile, sums of products", "jax": "JAX"}
SETS = ("large", "small", "fit")
# A set by itself, in no table: matrices of few and very long rows, and of rows that fill no warp. Timed as the large ones.
SHAPES = {"4x16777216": ("sgemv", "bicgk", "gemver", "softmax", "layer_norm"), "16x4194304": ("sgemv", "softmax", "layer_norm"),
          "4194304x8": ("sgemv", "softmax", "layer_norm")}
TYPES = ("f32", "f64")
ENTRY_BYTES = {"f32": 4, "f64": 8}
# Entries of vectors, rows and columns of square matrices, length of mapped lists.
SIZES = {"large": {"vector": 1 << 26, "matrix": 1 << 14, "elements": 1 << 22},
         "small": {"vector": 1 << 20, "matrix": 1 << 11, "elements": 31744}}
FIT_SIDES = (2048, 3072)
# Largest acceptable relative error (2-norm of the difference over that of the reference; and largest difference over the
# larger of the entry and the root mean square). Rounding in sums of 2^26 numbers stays well below; tf32 products or a wrong
# index do not.
BOUNDS = {"f32": (2e-5, 1e-3), "f64": (1e-12, 1e-9)}


@dataclasses.dataclass(frozen=True)
class Sequence:
    name: str                     # of examples/<name>.fuse, and of the function in each peer, unless said below
    title: str
    kind: str                     # key of SIZES
    inputs: dict                  # name -> shape
    outputs: dict
    scalars: dict = dataclasses.field(default_factory=dict)  # name -> value, see scalar_values
    scaled: tuple = ()            # scalars that grow with the side
    size_names: tuple = ("n",)    # of the .fuse file
    positive: bool = False        # inputs from (0.25, 1.25) instead of (-1, 1)
    cublas: dict = None           # temporaries of the cuBLAS sequence, name -> shape; None: not expressible
    reread: tuple = ()            # matrices that must be read again after a global barrier when they exceed the caches
    fit: bool = False             # in the set "fit" too
    products: bool = False        # mapped products: also tried in torch as sums of products
    text: str = ""                # the graph, where it is no example
    own_function: str = ""        # the function in the peers, where that has another name
    entries: int = 16             # of one element of a list: longer elements, shorter lists

    def fuse(self, examples):
        """The graph's text; `examples`: the folder of the examples."""
        return self.text or (pathlib.Path(examples) / f"{self.name}.fuse").read_text(encoding="utf-8")

    @property
    def function(self):
        return self.own_function or self.name

    def side(self, set_name):
        """Length of vectors, rows of square matrices or length of lists."""
        return SIZES[set_name][self.kind] * (16 if self.kind == "elements" else 1) // (
            self.entries if self.kind == "elements" else 1)

    def letters(self, side):
        """Values of the letters in shapes; `side`: one number for all, {letter: number}, or "ROWSxCOLUMNS"."""
        if isinstance(side, str):
            return dict(zip("mn", map(int, side.split("x"))))
        return side if isinstance(side, dict) else {letter: side for letter in "nme"}

    def shape(self, text, side):
        letters = self.letters(side)
        return tuple(letters[part] if part in letters else int(part) for part in text.split())

    def scalar_values(self, side):
        return {name: value * self.letters(side)["n"] if name in self.scaled else value for name, value in self.scalars.items()}

    def floor_bytes(self, side, data_type, large):
        """Each input read once, each output written once; matrices in `reread` once more if they are large."""
        shapes = list(self.inputs.values()) + list(self.outputs.values())
        both = {**self.inputs, **self.outputs}
        if large:
            shapes += [both[name] for name in self.reread]
        return ENTRY_BYTES[data_type] * sum(math.prod(self.shape(text, side)) for text in shapes)

    def size_options(self, side):
        return {name: self.letters(side)[name[0]] for name in self.size_names}


def _matrix(name, title, inputs, outputs, **more):
    return Sequence(name, title, "matrix", inputs, outputs, **{"size_names": ("m", "n"), **more})


def _mapped_product(n):
    element = f"e {n} {n}"
    return Sequence(f"mapped_product_{n}", f"A*B, {n} x {n}", "elements", {"A": element, "B": element}, {"C": element},
                    size_names=("elements",), products=True, own_function="mapped_product", entries=n * n,
                    text=f"MATRIX{n}x{n} A, B, C;\ninput A, B;\nC = mmul(A, B);\nreturn C;\n")


M33, M44, M55 = "e 3 3", "e 4 4", "e 5 5"
SEQUENCES = [
    Sequence("axpydot", "AXPYDOT", "vector", {"w": "n", "v": "n", "u": "n"}, {"z": "n", "r": ""}, {"a": 1.25}, positive=True,
             cublas={}),
    Sequence("vadd", "VADD", "vector", {"w": "n", "y": "n", "z": "n"}, {"x": "n"}, cublas={}),
    Sequence("waxpby", "WAXPBY", "vector", {"x": "n", "y": "n"}, {"w": "n"}, {"a": 1.25, "b": 0.75}, cublas={}),
    Sequence("sscal", "SSCAL", "vector", {"x": "n"}, {"y": "n"}, {"a": 1.25}, cublas={}),
    _matrix("atax", "ATAX", {"A": "m n", "x": "n"}, {"y": "n"}, cublas={"t": "m"}),
    _matrix("bicgk", "BiCGK", {"A": "m n", "p": "n", "r": "m"}, {"q": "m", "s": "n"}, cublas={}),
    _matrix("sgemv", "SGEMV", {"A": "m n", "x": "n", "y": "m"}, {"z": "m"}, scalars={"a": 1.25, "b": 0.75}, cublas={}),
    _matrix("sgemvt", "SGEMVT", {"A": "m n", "y": "m", "z": "n"}, {"x": "n", "w": "m"}, scalars={"a": 1.25, "b": 0.75},
            cublas={}, reread=("A",), fit=True),
    _matrix("gemver", "GEMVER",
            {"A": "m n", "u1": "m", "v1": "n", "u2": "m", "v2": "n", "y": "m", "z": "n"}, {"B": "m n", "x": "n", "w": "m"},
            scalars={"alpha": 1.25, "beta": 0.75}, cublas={}, reread=("B",), fit=True),
    _matrix("gesummv", "GESUMMV", {"A": "m n", "B": "m n", "x": "n"}, {"y": "m"}, scalars={"a": 1.25, "b": 0.75}, cublas={}),
    _matrix("madd", "MADD", {"A": "m n", "B": "m n"}, {"C": "m n"}, cublas={}),
    Sequence("function1", "Function I", "elements", {"A": M33, "B": M33, "c": "e 3", "D": M55, "E": M55}, {"F": M55},
             size_names=("elements",), products=True),
    Sequence("function2", "Function II", "elements", {"A": M55, "B": M55, "C": M55, "D": M55}, {"F": M55},
             size_names=("elements",), products=True, cublas={}),
    Sequence("joint_poses", "joint poses", "elements", {"P": M44, "L": M44, "x": "e 4"}, {"G": M44, "y": "e 4"},
             size_names=("elements",), products=True),
    _matrix("softmax", "softmax", {"X": "m n"}, {"Y": "m n"}),
    _matrix("layer_norm", "layer norm", {"X": "m n", "gain": "n", "bias": "n"}, {"Y": "m n"}),
    _matrix("rms_norm", "RMS norm", {"X": "m n", "R": "m n", "gain": "n"}, {"H": "m n", "Y": "m n"}),
    _matrix("cg_step", "CG step", {"A": "n n", "x": "n", "r": "n", "p": "n"}, {"x1": "n", "r1": "n", "p1": "n", "rr1": ""},
            scalars={"rr": 0.625}, scaled=("rr",), size_names=("n",), positive=True, fit=True),
    Sequence("adam_step", "Adam step", "vector", {"p": "n", "g": "n", "m": "n", "v": "n"}, {"p1": "n", "m1": "n", "v1": "n"},
             {"rate": 1e-3, "c1": 2.5, "c2": 20.0}, positive=True),
    Sequence("black_scholes", "Black-Scholes", "vector", {"S": "n", "K": "n", "T": "n"}, {"call": "n", "put": "n"},
             positive=True),
    Sequence("st_venant_kirchhoff", "St. Venant", "elements", {"F": M33}, {"P": M33}, {"lambda": 1.5, "mu": 0.75},
             size_names=("elements",), products=True),
    *(_mapped_product(n) for n in (4, 7, 8, 16, 32)),
]
BY_NAME = {sequence.name: sequence for sequence in SEQUENCES}


@dataclasses.dataclass(frozen=True)
class Case:
    sequence: str
    set: str
    type: str
    side: int | str   # length of vectors, rows of square matrices or length of lists; of the set "shapes" a key of SHAPES

    @property
    def large(self):
        """More data than the caches hold: timed with flushed ones, and matrices that are needed again are read again."""
        return self.set in ("large", "shapes")

    @property
    def key(self):
        return f"{self.sequence}-{self.set}-{self.type}-{self.side}"


def cases(sets, types, only=None):
    """All cases, in the order of the arguments; `only`: names of sequences."""
    chosen = [s for s in SEQUENCES if not only or s.name in only]
    found = []
    for set_name in sets:
        for data_type in types:
            if set_name == "shapes":
                found += [Case(s.name, set_name, data_type, shape) for shape, names in SHAPES.items() for s in chosen
                          if s.name in names]
                continue
            for s in chosen:
                if set_name != "fit":
                    found.append(Case(s.name, set_name, data_type, s.side(set_name)))
                elif s.fit:
                    found += [Case(s.name, set_name, data_type, side) for side in FIT_SIDES]
    return found


TYPE_WORD = re.compile(r"(^|;)(\s*)((?:matrix|vector)\s*\[|scalar\b|MATRIX\d|VECTOR\d|SCALAR\b)", re.M)


def fuse_text(text, data_type):
    """The .fuse text with all types f32 (as written) or f64. Comments go, so that no word in them is taken for a type."""
    if data_type == "f32":
        return text
    return TYPE_WORD.sub(r"\1\2f64 \3", re.sub(r"//[^\n]*", "", text))
