"""PolyBench's kernels with OpenMP's directives for a GPU, as somebody would write them by hand: one data region around each kernel,
loops collapsed so that neighbouring threads have neighbouring columns, loops distributed or interchanged where that gives more threads,
temporary arrays that stay on the device.

BODIES holds the bodies of the 25 kernels that have a loop with independent iterations; their parameters are those of
tests/integration/partition/polybench_kernels.py in the spelling vla. Each element has the operations of the plain kernel in its order,
but in durbin, where threads add up a sum together.
"""

LOOP = "#pragma omp target teams distribute parallel for"

BODIES = {}


def body(name, text):
    """Adds a body; PARALLEL stands for the directive that all parallel loops have."""
    BODIES[name] = text.strip("\n").replace("PARALLEL", LOOP)


body("2mm", """
#pragma omp target data map(to: A[0:ni], B[0:nk], C[0:nj]) map(tofrom: D[0:ni]) map(from: tmp[0:ni])
  {
    PARALLEL collapse(2)
    for (int i = 0; i < ni; i++)
      for (int j = 0; j < nj; j++) {
        double sum = 0.0;
        for (int k = 0; k < nk; k++) sum += alpha * A[i][k] * B[k][j];
        tmp[i][j] = sum;
      }
    PARALLEL collapse(2)
    for (int i = 0; i < ni; i++)
      for (int j = 0; j < nl; j++) {
        double sum = D[i][j] * beta;
        for (int k = 0; k < nj; k++) sum += tmp[i][k] * C[k][j];
        D[i][j] = sum;
      }
  }
""")

body("3mm", """
#pragma omp target data map(to: A[0:ni], B[0:nk], C[0:nj], D[0:nm]) map(from: E[0:ni], F[0:nj], G[0:ni])
  {
    PARALLEL collapse(2)
    for (int i = 0; i < ni; i++)
      for (int j = 0; j < nj; j++) {
        double sum = 0.0;
        for (int k = 0; k < nk; k++) sum += A[i][k] * B[k][j];
        E[i][j] = sum;
      }
    PARALLEL collapse(2)
    for (int i = 0; i < nj; i++)
      for (int j = 0; j < nl; j++) {
        double sum = 0.0;
        for (int k = 0; k < nm; k++) sum += C[i][k] * D[k][j];
        F[i][j] = sum;
      }
    PARALLEL collapse(2)
    for (int i = 0; i < ni; i++)
      for (int j = 0; j < nl; j++) {
        double sum = 0.0;
        for (int k = 0; k < nj; k++) sum += E[i][k] * F[k][j];
        G[i][j] = sum;
      }
  }
""")

body("adi", """
  double dx = 1.0 / n;
  double dy = 1.0 / n;
  double dt = 1.0 / tsteps;
  double mul1 = 2.0 * dt / (dx * dx);
  double mul2 = 1.0 * dt / (dy * dy);
  double a = -mul1 / 2.0;
  double b = 1.0 + mul1;
  double c = a;
  double d = -mul2 / 2.0;
  double e = 1.0 + mul2;
  double f = d;
#pragma omp target data map(tofrom: u[0:n], v[0:n], p[0:n], q[0:n])
  for (int t = 1; t <= tsteps; t++) {
    PARALLEL
    for (int i = 1; i < n - 1; i++) {
      v[0][i] = 1.0;
      p[i][0] = 0.0;
      q[i][0] = v[0][i];
      for (int j = 1; j < n - 1; j++) {
        p[i][j] = -c / (a * p[i][j - 1] + b);
        q[i][j] = (-d * u[j][i - 1] + (1.0 + 2.0 * d) * u[j][i] - f * u[j][i + 1] - a * q[i][j - 1]) / (a * p[i][j - 1] + b);
      }
      v[n - 1][i] = 1.0;
      for (int j = n - 2; j >= 1; j--) v[j][i] = p[i][j] * v[j + 1][i] + q[i][j];
    }
    PARALLEL
    for (int i = 1; i < n - 1; i++) {
      u[i][0] = 1.0;
      p[i][0] = 0.0;
      q[i][0] = u[i][0];
      for (int j = 1; j < n - 1; j++) {
        p[i][j] = -f / (d * p[i][j - 1] + e);
        q[i][j] = (-a * v[i - 1][j] + (1.0 + 2.0 * a) * v[i][j] - c * v[i + 1][j] - d * q[i][j - 1]) / (d * p[i][j - 1] + e);
      }
      u[i][n - 1] = 1.0;
      for (int j = n - 2; j >= 1; j--) u[i][j] = p[i][j] * u[i][j + 1] + q[i][j];
    }
  }
""")

body("atax", """
#pragma omp target data map(to: A[0:m], x[0:n]) map(from: y[0:n], tmp[0:m])
  {
    PARALLEL
    for (int i = 0; i < m; i++) {
      double sum = 0.0;
      for (int j = 0; j < n; j++) sum += A[i][j] * x[j];
      tmp[i] = sum;
    }
    PARALLEL
    for (int j = 0; j < n; j++) {
      double sum = 0.0;
      for (int i = 0; i < m; i++) sum += A[i][j] * tmp[i];
      y[j] = sum;
    }
  }
""")

body("bicg", """
#pragma omp target data map(to: A[0:n], p[0:m], r[0:n]) map(from: s[0:m], q[0:n])
  {
    PARALLEL
    for (int j = 0; j < m; j++) {
      double sum = 0.0;
      for (int i = 0; i < n; i++) sum += r[i] * A[i][j];
      s[j] = sum;
    }
    PARALLEL
    for (int i = 0; i < n; i++) {
      double sum = 0.0;
      for (int j = 0; j < m; j++) sum += A[i][j] * p[j];
      q[i] = sum;
    }
  }
""")

MEAN = """
    PARALLEL
    for (int j = 0; j < m; j++) {
      double sum = 0.0;
      for (int i = 0; i < n; i++) sum += data[i][j];
      mean[j] = sum / float_n;
    }
"""

body("correlation", """
  double eps = 0.1;
#pragma omp target data map(tofrom: data[0:n]) map(from: corr[0:m], mean[0:m], stddev[0:m])
  {""" + MEAN + """
    PARALLEL
    for (int j = 0; j < m; j++) {
      double sum = 0.0;
      for (int i = 0; i < n; i++) sum += (data[i][j] - mean[j]) * (data[i][j] - mean[j]);
      sum /= float_n;
      sum = sqrt(sum);
      stddev[j] = sum <= eps ? 1.0 : sum;
    }
    PARALLEL collapse(2)
    for (int i = 0; i < n; i++)
      for (int j = 0; j < m; j++) {
        data[i][j] -= mean[j];
        data[i][j] /= sqrt(float_n) * stddev[j];
      }
    PARALLEL collapse(2)
    for (int i = 0; i < m; i++)
      for (int j = 0; j < m; j++) {
        if (j == i) corr[i][i] = 1.0;
        if (j <= i) continue;
        double sum = 0.0;
        for (int k = 0; k < n; k++) sum += data[k][i] * data[k][j];
        corr[i][j] = sum;
        corr[j][i] = sum;
      }
  }
""")

body("covariance", """
#pragma omp target data map(tofrom: data[0:n]) map(from: cov[0:m], mean[0:m])
  {""" + MEAN + """
    PARALLEL collapse(2)
    for (int i = 0; i < n; i++)
      for (int j = 0; j < m; j++) data[i][j] -= mean[j];
    PARALLEL collapse(2)
    for (int i = 0; i < m; i++)
      for (int j = 0; j < m; j++) {
        if (j < i) continue;
        double sum = 0.0;
        for (int k = 0; k < n; k++) sum += data[k][i] * data[k][j];
        sum /= float_n - 1.0;
        cov[i][j] = sum;
        cov[j][i] = sum;
      }
  }
""")

body("deriche", """
  float k = (1.0f - expf(-alpha)) * (1.0f - expf(-alpha)) / (1.0f + 2.0f * alpha * expf(-alpha) - expf(2.0f * alpha));
  float a1 = k;
  float a5 = k;
  float a2 = k * expf(-alpha) * (alpha - 1.0f);
  float a6 = a2;
  float a3 = k * expf(-alpha) * (alpha + 1.0f);
  float a7 = a3;
  float a4 = -k * expf(-2.0f * alpha);
  float a8 = a4;
  float b1 = exp2f(-alpha);
  float b2 = -expf(-2.0f * alpha);
  float c1 = 1.0f;
  float c2 = 1.0f;
#pragma omp target data map(to: imgIn[0:w]) map(from: imgOut[0:w], y1[0:w], y2[0:w])
  {
    PARALLEL
    for (int i = 0; i < w; i++) {
      float ym1 = 0.0f, ym2 = 0.0f, xm1 = 0.0f;
      for (int j = 0; j < h; j++) {
        y1[i][j] = a1 * imgIn[i][j] + a2 * xm1 + b1 * ym1 + b2 * ym2;
        xm1 = imgIn[i][j];
        ym2 = ym1;
        ym1 = y1[i][j];
      }
    }
    PARALLEL
    for (int i = 0; i < w; i++) {
      float yp1 = 0.0f, yp2 = 0.0f, xp1 = 0.0f, xp2 = 0.0f;
      for (int j = h - 1; j >= 0; j--) {
        y2[i][j] = a3 * xp1 + a4 * xp2 + b1 * yp1 + b2 * yp2;
        xp2 = xp1;
        xp1 = imgIn[i][j];
        yp2 = yp1;
        yp1 = y2[i][j];
      }
    }
    PARALLEL collapse(2)
    for (int i = 0; i < w; i++)
      for (int j = 0; j < h; j++) imgOut[i][j] = c1 * (y1[i][j] + y2[i][j]);
    PARALLEL
    for (int j = 0; j < h; j++) {
      float tm1 = 0.0f, ym1 = 0.0f, ym2 = 0.0f;
      for (int i = 0; i < w; i++) {
        y1[i][j] = a5 * imgOut[i][j] + a6 * tm1 + b1 * ym1 + b2 * ym2;
        tm1 = imgOut[i][j];
        ym2 = ym1;
        ym1 = y1[i][j];
      }
    }
    PARALLEL
    for (int j = 0; j < h; j++) {
      float tp1 = 0.0f, tp2 = 0.0f, yp1 = 0.0f, yp2 = 0.0f;
      for (int i = w - 1; i >= 0; i--) {
        y2[i][j] = a7 * tp1 + a8 * tp2 + b1 * yp1 + b2 * yp2;
        tp2 = tp1;
        tp1 = imgOut[i][j];
        yp2 = yp1;
        yp1 = y2[i][j];
      }
    }
    PARALLEL collapse(2)
    for (int i = 0; i < w; i++)
      for (int j = 0; j < h; j++) imgOut[i][j] = c2 * (y1[i][j] + y2[i][j]);
  }
""")

body("doitgen", """
  double (*all)[nq][np] = malloc(sizeof(double[nr][nq][np]));
  if (all == NULL) exit(2);
#pragma omp target data map(tofrom: A[0:nr]) map(to: C4[0:np]) map(alloc: all[0:nr]) map(from: sum[0:np])
  {
    PARALLEL collapse(3)
    for (int r = 0; r < nr; r++)
      for (int q = 0; q < nq; q++)
        for (int p = 0; p < np; p++) {
          double one = 0.0;
          for (int s = 0; s < np; s++) one += A[r][q][s] * C4[s][p];
          all[r][q][p] = one;
        }
    PARALLEL collapse(3)
    for (int r = 0; r < nr; r++)
      for (int q = 0; q < nq; q++)
        for (int p = 0; p < np; p++) {
          A[r][q][p] = all[r][q][p];
          if (r == nr - 1 && q == nq - 1) sum[p] = all[r][q][p];
        }
  }
  free(all);
""")

body("durbin", """
  y[0] = -r[0];
  double beta = 1.0;
  double alpha = -r[0];
#pragma omp target data map(to: r[0:n]) map(tofrom: y[0:n], z[0:n])
  for (int k = 1; k < n; k++) {
    beta = (1.0 - alpha * alpha) * beta;
    double sum = 0.0;
    PARALLEL reduction(+: sum) map(tofrom: sum)
    for (int i = 0; i < k; i++) sum += r[k - i - 1] * y[i];
    alpha = -(r[k] + sum) / beta;
    PARALLEL
    for (int i = 0; i < k; i++) z[i] = y[i] + alpha * y[k - i - 1];
    PARALLEL
    for (int i = 0; i <= k; i++) y[i] = i < k ? z[i] : alpha;
  }
""")

body("fdtd-2d", """
#pragma omp target data map(tofrom: ex[0:nx], ey[0:nx], hz[0:nx]) map(to: fict[0:tmax])
  for (int t = 0; t < tmax; t++) {
    PARALLEL collapse(2)
    for (int i = 0; i < nx; i++)
      for (int j = 0; j < ny; j++) {
        if (i == 0)
          ey[i][j] = fict[t];
        else
          ey[i][j] = ey[i][j] - 0.5 * (hz[i][j] - hz[i - 1][j]);
      }
    PARALLEL collapse(2)
    for (int i = 0; i < nx; i++)
      for (int j = 1; j < ny; j++) ex[i][j] = ex[i][j] - 0.5 * (hz[i][j] - hz[i][j - 1]);
    PARALLEL collapse(2)
    for (int i = 0; i < nx - 1; i++)
      for (int j = 0; j < ny - 1; j++) hz[i][j] = hz[i][j] - 0.7 * (ex[i][j + 1] - ex[i][j] + ey[i + 1][j] - ey[i][j]);
  }
""")

body("gemm", """
#pragma omp target data map(tofrom: C[0:ni]) map(to: A[0:ni], B[0:nk])
  {
    PARALLEL collapse(2)
    for (int i = 0; i < ni; i++)
      for (int j = 0; j < nj; j++) {
        double sum = C[i][j] * beta;
        for (int k = 0; k < nk; k++) sum += alpha * A[i][k] * B[k][j];
        C[i][j] = sum;
      }
  }
""")

body("gemver", """
#pragma omp target data map(tofrom: A[0:n], x[0:n], w[0:n]) map(to: u1[0:n], v1[0:n], u2[0:n], v2[0:n], y[0:n], z[0:n])
  {
    PARALLEL collapse(2)
    for (int i = 0; i < n; i++)
      for (int j = 0; j < n; j++) A[i][j] = A[i][j] + u1[i] * v1[j] + u2[i] * v2[j];
    PARALLEL
    for (int i = 0; i < n; i++) {
      double sum = x[i];
      for (int j = 0; j < n; j++) sum = sum + beta * A[j][i] * y[j];
      x[i] = sum + z[i];
    }
    PARALLEL
    for (int i = 0; i < n; i++) {
      double sum = w[i];
      for (int j = 0; j < n; j++) sum = sum + alpha * A[i][j] * x[j];
      w[i] = sum;
    }
  }
""")

body("gesummv", """
#pragma omp target data map(to: A[0:n], B[0:n], x[0:n]) map(from: tmp[0:n], y[0:n])
  {
    PARALLEL
    for (int i = 0; i < n; i++) {
      double first = 0.0, second = 0.0;
      for (int j = 0; j < n; j++) {
        first = A[i][j] * x[j] + first;
        second = B[i][j] * x[j] + second;
      }
      tmp[i] = first;
      y[i] = alpha * first + beta * second;
    }
  }
""")

body("gramschmidt", """
  double *norms = malloc(sizeof(double[n]));
  if (norms == NULL) exit(2);
#pragma omp target data map(tofrom: A[0:m], R[0:n]) map(from: Q[0:m]) map(alloc: norms[0:n])
  {
    PARALLEL
    for (int j = 0; j < n; j++) {
      double norm = 0.0;
      for (int i = 0; i < m; i++) norm += A[i][j] * A[i][j];
      norms[j] = norm;
    }
    for (int k = 0; k < n; k++) {
      PARALLEL
      for (int i = 0; i < m; i++) {
        const double norm = sqrt(norms[k]);
        Q[i][k] = A[i][k] / norm;
        if (i == 0) R[k][k] = norm;
      }
      PARALLEL
      for (int j = k + 1; j < n; j++) {
        double sum = 0.0;
        for (int i = 0; i < m; i++) sum += Q[i][k] * A[i][j];
        R[k][j] = sum;
        double norm = 0.0;
        for (int i = 0; i < m; i++) {
          const double rest = A[i][j] - Q[i][k] * sum;
          A[i][j] = rest;
          norm += rest * rest;
        }
        norms[j] = norm;
      }
    }
  }
  free(norms);
""")


def heat(target, source):
    return f"""
    PARALLEL collapse(3)
    for (int i = 1; i < n - 1; i++)
      for (int j = 1; j < n - 1; j++)
        for (int k = 1; k < n - 1; k++)
          {target}[i][j][k] = 0.125 * ({source}[i + 1][j][k] - 2.0 * {source}[i][j][k] + {source}[i - 1][j][k])
                     + 0.125 * ({source}[i][j + 1][k] - 2.0 * {source}[i][j][k] + {source}[i][j - 1][k])
                     + 0.125 * ({source}[i][j][k + 1] - 2.0 * {source}[i][j][k] + {source}[i][j][k - 1])
                     + {source}[i][j][k];"""


body("heat-3d", """
#pragma omp target data map(tofrom: A[0:n], B[0:n])
  for (int t = 1; t <= tsteps; t++) {""" + heat("B", "A") + heat("A", "B") + """
  }
""")

body("jacobi-1d", """
#pragma omp target data map(tofrom: A[0:n], B[0:n])
  for (int t = 0; t < tsteps; t++) {
    PARALLEL
    for (int i = 1; i < n - 1; i++) B[i] = 0.33333 * (A[i - 1] + A[i] + A[i + 1]);
    PARALLEL
    for (int i = 1; i < n - 1; i++) A[i] = 0.33333 * (B[i - 1] + B[i] + B[i + 1]);
  }
""")

body("jacobi-2d", """
#pragma omp target data map(tofrom: A[0:n], B[0:n])
  for (int t = 0; t < tsteps; t++) {
    PARALLEL collapse(2)
    for (int i = 1; i < n - 1; i++)
      for (int j = 1; j < n - 1; j++) B[i][j] = 0.2 * (A[i][j] + A[i][j - 1] + A[i][1 + j] + A[1 + i][j] + A[i - 1][j]);
    PARALLEL collapse(2)
    for (int i = 1; i < n - 1; i++)
      for (int j = 1; j < n - 1; j++) A[i][j] = 0.2 * (B[i][j] + B[i][j - 1] + B[i][1 + j] + B[1 + i][j] + B[i - 1][j]);
  }
""")

# The matrix is updated by one row and column at a time, which has a square of independent iterations instead of a part of a row.
FACTORED = """
  for (int k = 0; k < n - 1; k++) {
    PARALLEL
    for (int i = k + 1; i < n; i++) A[i][k] /= A[k][k];
    PARALLEL collapse(2)
    for (int i = k + 1; i < n; i++)
      for (int j = k + 1; j < n; j++) A[i][j] -= A[i][k] * A[k][j];
  }
"""

body("lu", """
#pragma omp target data map(tofrom: A[0:n])""" + FACTORED)

body("ludcmp", """
  double w;
#pragma omp target data map(tofrom: A[0:n])""" + FACTORED + """
  for (int i = 0; i < n; i++) {
    w = b[i];
    for (int j = 0; j < i; j++) w -= A[i][j] * y[j];
    y[i] = w;
  }
  for (int i = n - 1; i >= 0; i--) {
    w = y[i];
    for (int j = i + 1; j < n; j++) w -= A[i][j] * x[j];
    x[i] = w / A[i][i];
  }
""")

body("mvt", """
#pragma omp target data map(tofrom: x1[0:n], x2[0:n]) map(to: y1[0:n], y2[0:n], A[0:n])
  {
    PARALLEL
    for (int i = 0; i < n; i++) {
      double sum = x1[i];
      for (int j = 0; j < n; j++) sum = sum + A[i][j] * y1[j];
      x1[i] = sum;
    }
    PARALLEL
    for (int i = 0; i < n; i++) {
      double sum = x2[i];
      for (int j = 0; j < n; j++) sum = sum + A[j][i] * y2[j];
      x2[i] = sum;
    }
  }
""")

body("symm", """
#pragma omp target data map(tofrom: C[0:m]) map(to: A[0:m], B[0:m])
  {
    PARALLEL collapse(2)
    for (int i = 0; i < m; i++)
      for (int j = 0; j < n; j++) {
        double temp2 = 0.0;
        for (int k = 0; k < i; k++) temp2 += B[k][j] * A[i][k];
        double sum = beta * C[i][j] + alpha * B[i][j] * A[i][i] + alpha * temp2;
        for (int k = i + 1; k < m; k++) sum += alpha * B[k][j] * A[k][i];
        C[i][j] = sum;
      }
  }
""")

body("syr2k", """
#pragma omp target data map(tofrom: C[0:n]) map(to: A[0:n], B[0:n])
  {
    PARALLEL collapse(2)
    for (int i = 0; i < n; i++)
      for (int j = 0; j < n; j++) {
        if (j > i) continue;
        double sum = C[i][j] * beta;
        for (int k = 0; k < m; k++) sum += A[j][k] * alpha * B[i][k] + B[j][k] * alpha * A[i][k];
        C[i][j] = sum;
      }
  }
""")

body("syrk", """
#pragma omp target data map(tofrom: C[0:n]) map(to: A[0:n])
  {
    PARALLEL collapse(2)
    for (int i = 0; i < n; i++)
      for (int j = 0; j < n; j++) {
        if (j > i) continue;
        double sum = C[i][j] * beta;
        for (int k = 0; k < m; k++) sum += alpha * A[i][k] * A[j][k];
        C[i][j] = sum;
      }
  }
""")

body("trmm", """
  double (*rows)[n] = malloc(sizeof(double[m][n]));
  if (rows == NULL) exit(2);
#pragma omp target data map(to: A[0:m]) map(tofrom: B[0:m]) map(alloc: rows[0:m])
  {
    PARALLEL collapse(2)
    for (int i = 0; i < m; i++)
      for (int j = 0; j < n; j++) {
        double sum = B[i][j];
        for (int k = i + 1; k < m; k++) sum += A[k][i] * B[k][j];
        rows[i][j] = alpha * sum;
      }
    PARALLEL collapse(2)
    for (int i = 0; i < m; i++)
      for (int j = 0; j < n; j++) B[i][j] = rows[i][j];
  }
  free(rows);
""")
