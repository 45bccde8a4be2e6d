#!/usr/bin/env python3
"""What the compiler makes of loops for a GPU: which have a thread for each column, where elements stay in registers, how many loads
stand before the first store. The text of the kernels is looked at, as nothing here runs them.

  kernels_test.py --cc PATH_OF_fusion-cc
"""

import re

import partition_runs as runs

SOURCE = """
// Each loop adds to an element while other rows of the same array are read.
void triangle(int n, double a[n][n], int i) {
  for (int j = i; j < n; j++)
    for (int k = 0; k < i; k++) a[i][j] -= a[i][k] * a[k][j];
}
void updates(int n, int m, double a[n][m], const double *q) {
  for (int j = 0; j < m; j++) {
    double sum = 0;
    for (int i = 0; i < n; i++) sum += q[i] * a[i][j];
    for (int i = 0; i < n; i++) a[i][j] -= q[i] * sum;
  }
}
void recurrence(int n, int m, double a[n][m], const double *q) {
  for (int j = 0; j < m; j++)
    for (int i = 1; i < n; i++) a[i][j] = a[i - 1][j] * q[i];
}
void local_array(int n, double *a, const double *b) {
  for (int j = 0; j < n; j++) {
    double t[32];
    t[0] = b[j];
    for (int i = 1; i < 32; i++) t[i] = t[i - 1] * 0.5 + b[j + i];
    a[j] = t[j & 31];
  }
}
void store_beside_columns(int n, int m, double c[n][n], const double a[m][n]) {
  for (int i = 0; i < n - 1; i++) {
    c[i][i] = 1;
    for (int j = i + 1; j < n; j++) {
      c[i][j] = 0;
      for (int k = 0; k < m; k++) c[i][j] += a[k][i] * a[k][j];
      c[j][i] = c[i][j];
    }
  }
}
void change_beside_columns(int n, double *x, double c[n][n]) {
  for (int i = 0; i < n; i++) {
    x[i] += 1;
    for (int j = 0; j < n; j++) c[i][j] = 2 * c[i][j];
  }
}
void store_into_a_column(int n, double c[n][n], const double *x) {
  for (int i = 0; i < n; i++) {
    c[i][2] = x[i];
    for (int j = 0; j < n; j++) c[i][j] = 2 * c[i][j];
  }
}
"""


def kernels(compiler, folder):
    """{name: text of the kernel} of the source."""
    source = folder / "kernels.c"
    source.write_text(SOURCE, encoding="utf-8")
    runs.call_compiler([compiler, "-O3", "-fno-math-errno", "-c", source, "-o", folder / "kernels.o"])
    code = (folder / "kernels.o").read_bytes()
    ptx = code[code.index(b".version"):].split(b"\0")[0].decode()
    return {re.match(r"\w+", text)[0].split("_fusion_")[0]: text for text in ptx.split(".visible .entry ")[1:]}


def loads_before_store(text):
    """The most loads in a row that no store, and no branch, comes between, before a store."""
    most = count = 0
    for kind in re.findall(r"\b(ld\.(?:global|local)|st\.(?:global|local)|bra|\$L__\w+:)", text):
        if kind.startswith("st."):
            most = max(most, count)
        count = count + 1 if kind.startswith("ld.") else 0
    return most


def check(arguments, folder):
    """Returns what is wrong, one text each."""
    texts = kernels(arguments.compiler, folder)
    columns = {name: "_param_4" in text for name, text in texts.items()}
    wrong = []
    expected = {"triangle": False, "updates": False, "recurrence": False, "local_array": False, "store_beside_columns": True, "change_beside_columns": False,
                "store_into_a_column": False}
    if columns != expected:
        wrong.append(f"these have a thread for each column: {columns}")
    if len(re.findall("st.global", texts["triangle"])) != 1:
        wrong.append("an element that a loop adds to goes through memory")
    if loads_before_store(texts["updates"]) < 16:
        wrong.append("iterations that do not depend on each other wait for memory one by one")
    if loads_before_store(texts["recurrence"]) > 2 or loads_before_store(texts["local_array"]) > 2:
        wrong.append("loads stand before a store that may change what they read")
    return wrong


runs.main(__doc__, check)
