#!/usr/bin/env python3
"""Graphs as people have them, on the inputs that the server chooses by itself, are measured and ranked: none is refused because of its data.

  tests/integration/ranked_graphs.py BIN_DIR [--all] [--target cuda]

Each is submitted to an embedded server with an empty store. Short form: each graph once, f32 and f64 in turn, small. --all: each in both types, with
1, 7, 64, 31,744 and 1,000,003 rows or elements, and with 7 and 64 columns where there are columns. Prints a line for each; exits 1 when one is not ranked.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

# {t} is the type of entries, {n} the number of columns. Rows are m, elements are `elements`.
GRAPHS = {
    "kalman update": ("elements", """
MATRIX4x4 P, KH, KHP, Q;  MATRIX2x4 H, HP;  MATRIX2x2 R, HPH, S, Si;  MATRIX4x2 PH, K;
VECTOR4 x, Kr, y;  VECTOR2 z, Hx, r;
input P = spd, R = spd, H, x, z;
HP = mmul(H, P);  HPH = mmult(HP, H);  S = madd(HPH, R);  Si = minv(S);
PH = mmult(P, H);  K = mmul(PH, Si);
Hx = mvmul(H, x);  r = vesub(z, Hx);  Kr = mvmul(K, r);  y = veadd(x, Kr);
KH = mmul(K, H);  KHP = mmul(KH, P);  Q = msub(P, KHP);
return y, Q;
"""),
    "least squares": ("elements", """
MATRIX4x3 A;  MATRIX3x3 N, Ni;  VECTOR4 b;  VECTOR3 c, x;
input A, b;
N = mtmul(A, A);  Ni = minv(N);  c = mtvmul(A, b);  x = mvmul(Ni, c);
return x;
"""),
    "poisson gradient": ("m", """
size m = 7, n = {n};
{t} matrix[m,n] X;  {t} vector[m] y, eta, mu, r;  {t} vector[n] b, g;
input X, b, y;
eta = gemv(1.0, X, b);  mu = exp(eta);  r = vsub(mu, y);  g = gemtv(1.0, X, r);
return g;
"""),
    "weighted variance": ("m", """
size m = 7, n = {n};
{t} matrix[m,n] X, W, D, Q, V;  {t} vector[m] w;  {t} vector[n] s, mean, v, var;  {t} scalar total;
input X, w = probabilities;
W = rowmul(X, w);  s = colsum(W);  total = sum(w);  mean = div(s, total);
D = colsub(X, mean);  Q = square(D);  V = rowmul(Q, w);  v = colsum(V);  var = div(v, total);
return var;
"""),
    "masked softmax": ("m", """
size m = 7, n = {n};
{t} matrix[m,n] X, M, L, Z, D, E, Y;  {t} vector[m] largest, total;
input X, M = one_hot;
L = log(M);  Z = add(X, L);
largest = rowmax(Z);  D = rowsub(Z, largest);  E = exp(D);  total = rowsum(E);  Y = rowdiv(E, total);
return Y;
"""),
    "entropy": ("m", """
size m = 7, n = {n};
{t} matrix[m,n] P, L, T;  {t} vector[m] h;
input P = probabilities;
L = log(P);  T = mul(P, L);  h = rowsum(T);
return h;
"""),
}
ROWS = (1, 7, 64, 31744, 1000003)
COLUMNS = (7, 64)


def text_of(body, data_type, columns):
    """The graph in a type; small elements have the type in front of their declarations."""
    text = body.replace("{t}", data_type).replace("{n}", str(columns))
    return "\n".join(f"{data_type} {line}".replace(";  MATRIX", f";  {data_type} MATRIX").replace(";  VECTOR", f";  {data_type} VECTOR")
                     if line.startswith(("MATRIX", "VECTOR")) else line for line in text.split("\n"))


def submit(client, arguments, home, text, size, rows):
    """None when it is ranked; else what was said."""
    source = pathlib.Path(home, "graph.fuse")
    source.write_text(text)
    environment = dict(os.environ, HOME=home, XDG_DATA_HOME=home, XDG_CONFIG_HOME=home)
    done = subprocess.run([client, "submit", str(source), "--target", arguments.target, "--candidates", "2", "--size", f"{size}={rows}",
                           "--json"], env=environment, capture_output=True, text=True, timeout=900)
    try:
        job = json.loads(done.stdout)
    except json.JSONDecodeError:
        return f"exit {done.returncode}: {done.stderr.strip()[-600:]}"
    ranked = [candidate for candidate in job.get("candidates", []) if candidate["outcome"] == "OK"]
    if done.returncode == 0 and job["state"] == "SUCCEEDED" and ranked:
        return None
    return f"exit {done.returncode}: {json.dumps(job.get('error', job.get('candidates')))[:600]} {done.stderr.strip()[-300:]}"


def main():
    """Exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin", help="folder of the programs")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--target", default="host", choices=["host", "cuda"])
    parser.add_argument("--only", default="", help="graphs whose name has this in it")
    arguments = parser.parse_args()
    everything = arguments.all or os.environ.get("FUSION_LONG_TESTS") == "1"
    failed = count = 0
    for number, (name, (size, body)) in enumerate(GRAPHS.items()):
        if arguments.only not in name:
            continue
        types = ("f32", "f64") if everything else (("f32", "f64")[number % 2],)
        has_columns = "{n}" in body
        for data_type in types:
            for rows in ROWS if everything else (1 if name == "weighted variance" else 7,):
                for columns in (COLUMNS if everything and has_columns else COLUMNS[:1]):
                    with tempfile.TemporaryDirectory() as home:
                        said = submit(os.path.join(arguments.bin, "fusion-client"), arguments, home,
                                      text_of(body, data_type, columns), size, rows)
                    count += 1
                    failed += said is not None
                    what = f"{name}, {data_type}, {size}={rows}" + (f", {columns} columns" if has_columns else "")
                    print(f"{'ranked' if said is None else 'NOT RANKED'}  {what}" + (f"\n  {said}" if said else ""), flush=True)
    print(f"{count - failed} of {count} ranked")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
