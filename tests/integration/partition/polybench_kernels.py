"""The 30 kernels of PolyBench/C 4.2, written anew from their definitions, in six spellings of C.

text(spelling, size) is a C file with all of them as `void kernel_NAME(...)`. The spellings say the same, and differ in what a compiler
knows:

  const    sizes are constants, arrays are `double (*restrict A)[1200]`
  default  arrays are `double A[1200][1200]`, bounds are arguments
  vla      `int n, double A[n][n]`
  vlar     the same with restrict
  flat     `double *A`, accessed as `A[i * n + j]` in int
  flatr    the same with restrict

`/*P*/` stands before each loop that has to be found parallel: the outermost ones that need no more than private copies of scalars
and, in doitgen, of one array, for which its loop stays on the host. There are 52, in 25 kernels. The others have none: cholesky (but
its nest runs in another order) and trisolv (the inner loops are sums), nussinov and seidel-2d (wavefronts), floyd-warshall (row and column k would have to be set apart).
The macro PREFIX is put in front of the names of functions, so that one file can be compiled twice and linked.
"""

import dataclasses
import re

SPELLINGS = ("const", "default", "vla", "vlar", "flat", "flatr")
MARK = "/*P*/"
MARKED_LOOPS = 52
MARKED_KERNELS = 25
ON_HOST = ("doitgen",)  # their marked loops have private arrays, and run on the host's threads alone
# Programs that time kernels begin so: numbers from 0 to 1, and seconds.
DRIVER_START = r"""
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static uint64_t state = 1;
static double uniform(void)
{
  state = state * 6364136223846793005u + 1442695040888963407u;
  return (double)(state >> 33) / 2147483648.0;
}

static double now(void)
{
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec + time.tv_nsec * 1e-9;
}

"""


@dataclasses.dataclass
class Kernel:
    """A kernel: names and values of its sizes and scalars, dimensions of its arrays, and its body with accesses such as A[i][j]."""
    name: str
    sizes: dict    # name: (small value for tests, value of PolyBench's LARGE data set)
    scalars: dict  # name: value, or the name of a size
    arrays: dict   # name: names of its dimensions
    body: str
    type: str      # the C type of entries and scalars
    inputs: dict   # name of an array: "dominant" (diagonal), "tiny" or "bases" (0..3), where any random values would not do

    @property
    def function(self):
        words = {"2mm": "two_mm", "3mm": "three_mm"}
        return "kernel_" + words.get(self.name, self.name).replace("-", "_")

    @property
    def marked(self):
        """The number of loops that have to be found."""
        return self.body.count(MARK)

    def values(self, size):
        """The sizes as numbers; size is "small" or "large"."""
        return {name: pair[size == "large"] for name, pair in self.sizes.items()}

    def scalar_values(self, size):
        return [self.values(size).get(value, value) for value in self.scalars.values()]


KERNELS = {}


def kernel(name, sizes, scalars, arrays, body, of="double", inputs=""):
    """Adds a kernel to the table: sizes as "n=29/2000", scalars as "alpha=1.5", arrays as "A[n][n] x[n]", inputs as "A=dominant"."""
    pairs = dict(item.split("=") for item in sizes.split())
    values = dict(item.split("=") for item in scalars.split())
    KERNELS[name] = Kernel(
        name, {size: tuple(int(value) for value in pair.split("/")) for size, pair in pairs.items()},
        {scalar: value if value in pairs else float(value) for scalar, value in values.items()},
        {item.split("[")[0]: re.findall(r"\[(\w+)\]", item) for item in arrays.split()},
        body.strip("\n"), of, dict(item.split("=") for item in inputs.split()))


kernel("2mm", "ni=21/800 nj=23/900 nk=26/1100 nl=19/1200", "alpha=1.5 beta=1.2",
       "tmp[ni][nj] A[ni][nk] B[nk][nj] C[nj][nl] D[ni][nl]", """
  /*P*/for (int i = 0; i < ni; i++)
    for (int j = 0; j < nj; j++) {
      tmp[i][j] = 0.0;
      for (int k = 0; k < nk; k++)
        tmp[i][j] += alpha * A[i][k] * B[k][j];
    }
  /*P*/for (int i = 0; i < ni; i++)
    for (int j = 0; j < nl; j++) {
      D[i][j] *= beta;
      for (int k = 0; k < nj; k++)
        D[i][j] += tmp[i][k] * C[k][j];
    }
""")

kernel("3mm", "ni=21/800 nj=23/900 nk=26/1000 nl=19/1100 nm=17/1200", "",
       "E[ni][nj] A[ni][nk] B[nk][nj] F[nj][nl] C[nj][nm] D[nm][nl] G[ni][nl]", """
  /*P*/for (int i = 0; i < ni; i++)
    for (int j = 0; j < nj; j++) {
      E[i][j] = 0.0;
      for (int k = 0; k < nk; k++)
        E[i][j] += A[i][k] * B[k][j];
    }
  /*P*/for (int i = 0; i < nj; i++)
    for (int j = 0; j < nl; j++) {
      F[i][j] = 0.0;
      for (int k = 0; k < nm; k++)
        F[i][j] += C[i][k] * D[k][j];
    }
  /*P*/for (int i = 0; i < ni; i++)
    for (int j = 0; j < nl; j++) {
      G[i][j] = 0.0;
      for (int k = 0; k < nj; k++)
        G[i][j] += E[i][k] * F[k][j];
    }
""")

kernel("adi", "tsteps=3/500 n=25/1000", "", "u[n][n] v[n][n] p[n][n] q[n][n]", """
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
  for (int t = 1; t <= tsteps; t++) {
    /*P*/for (int i = 1; i < n - 1; i++) {
      v[0][i] = 1.0;
      p[i][0] = 0.0;
      q[i][0] = v[0][i];
      for (int j = 1; j < n - 1; j++) {
        p[i][j] = -c / (a * p[i][j - 1] + b);
        q[i][j] = (-d * u[j][i - 1] + (1.0 + 2.0 * d) * u[j][i] - f * u[j][i + 1] - a * q[i][j - 1]) / (a * p[i][j - 1] + b);
      }
      v[n - 1][i] = 1.0;
      for (int j = n - 2; j >= 1; j--)
        v[j][i] = p[i][j] * v[j + 1][i] + q[i][j];
    }
    /*P*/for (int i = 1; i < n - 1; i++) {
      u[i][0] = 1.0;
      p[i][0] = 0.0;
      q[i][0] = u[i][0];
      for (int j = 1; j < n - 1; j++) {
        p[i][j] = -f / (d * p[i][j - 1] + e);
        q[i][j] = (-a * v[i - 1][j] + (1.0 + 2.0 * a) * v[i][j] - c * v[i + 1][j] - d * q[i][j - 1]) / (d * p[i][j - 1] + e);
      }
      u[i][n - 1] = 1.0;
      for (int j = n - 2; j >= 1; j--)
        u[i][j] = p[i][j] * u[i][j + 1] + q[i][j];
    }
  }
""")

kernel("atax", "m=27/1900 n=31/2100", "", "A[m][n] x[n] y[n] tmp[m]", """
  /*P*/for (int i = 0; i < n; i++)
    y[i] = 0.0;
  for (int i = 0; i < m; i++) {
    tmp[i] = 0.0;
    for (int j = 0; j < n; j++)
      tmp[i] += A[i][j] * x[j];
    /*P*/for (int j = 0; j < n; j++)
      y[j] += A[i][j] * tmp[i];
  }
""")

kernel("bicg", "m=27/1900 n=31/2100", "", "A[n][m] s[m] q[n] p[m] r[n]", """
  /*P*/for (int i = 0; i < m; i++)
    s[i] = 0.0;
  for (int i = 0; i < n; i++) {
    q[i] = 0.0;
    for (int j = 0; j < m; j++) {
      s[j] += r[i] * A[i][j];
      q[i] += A[i][j] * p[j];
    }
  }
""")

kernel("cholesky", "n=29/2000", "", "A[n][n]", """
  for (int i = 0; i < n; i++) {
    for (int j = 0; j < i; j++) {
      for (int k = 0; k < j; k++)
        A[i][j] -= A[i][k] * A[j][k];
      A[i][j] /= A[j][j];
    }
    for (int k = 0; k < i; k++)
      A[i][i] -= A[i][k] * A[i][k];
    A[i][i] = sqrt(A[i][i]);
  }
""", inputs="A=dominant")

kernel("correlation", "m=23/1200 n=31/1400", "float_n=n", "data[n][m] corr[m][m] mean[m] stddev[m]", """
  double eps = 0.1;
  /*P*/for (int j = 0; j < m; j++) {
    mean[j] = 0.0;
    for (int i = 0; i < n; i++)
      mean[j] += data[i][j];
    mean[j] /= float_n;
  }
  /*P*/for (int j = 0; j < m; j++) {
    stddev[j] = 0.0;
    for (int i = 0; i < n; i++)
      stddev[j] += (data[i][j] - mean[j]) * (data[i][j] - mean[j]);
    stddev[j] /= float_n;
    stddev[j] = sqrt(stddev[j]);
    stddev[j] = stddev[j] <= eps ? 1.0 : stddev[j];
  }
  /*P*/for (int i = 0; i < n; i++)
    for (int j = 0; j < m; j++) {
      data[i][j] -= mean[j];
      data[i][j] /= sqrt(float_n) * stddev[j];
    }
  /*P*/for (int i = 0; i < m - 1; i++) {
    corr[i][i] = 1.0;
    for (int j = i + 1; j < m; j++) {
      corr[i][j] = 0.0;
      for (int k = 0; k < n; k++)
        corr[i][j] += data[k][i] * data[k][j];
      corr[j][i] = corr[i][j];
    }
  }
  corr[m - 1][m - 1] = 1.0;
""")

kernel("covariance", "m=23/1200 n=31/1400", "float_n=n", "data[n][m] cov[m][m] mean[m]", """
  /*P*/for (int j = 0; j < m; j++) {
    mean[j] = 0.0;
    for (int i = 0; i < n; i++)
      mean[j] += data[i][j];
    mean[j] /= float_n;
  }
  /*P*/for (int i = 0; i < n; i++)
    for (int j = 0; j < m; j++)
      data[i][j] -= mean[j];
  /*P*/for (int i = 0; i < m; i++)
    for (int j = i; j < m; j++) {
      cov[i][j] = 0.0;
      for (int k = 0; k < n; k++)
        cov[i][j] += data[k][i] * data[k][j];
      cov[i][j] /= float_n - 1.0;
      cov[j][i] = cov[i][j];
    }
""")

kernel("deriche", "w=31/4096 h=26/2160", "alpha=0.25", "imgIn[w][h] imgOut[w][h] y1[w][h] y2[w][h]", """
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
  /*P*/for (int i = 0; i < w; i++) {
    float ym1 = 0.0f;
    float ym2 = 0.0f;
    float xm1 = 0.0f;
    for (int j = 0; j < h; j++) {
      y1[i][j] = a1 * imgIn[i][j] + a2 * xm1 + b1 * ym1 + b2 * ym2;
      xm1 = imgIn[i][j];
      ym2 = ym1;
      ym1 = y1[i][j];
    }
  }
  /*P*/for (int i = 0; i < w; i++) {
    float yp1 = 0.0f;
    float yp2 = 0.0f;
    float xp1 = 0.0f;
    float xp2 = 0.0f;
    for (int j = h - 1; j >= 0; j--) {
      y2[i][j] = a3 * xp1 + a4 * xp2 + b1 * yp1 + b2 * yp2;
      xp2 = xp1;
      xp1 = imgIn[i][j];
      yp2 = yp1;
      yp1 = y2[i][j];
    }
  }
  /*P*/for (int i = 0; i < w; i++)
    for (int j = 0; j < h; j++)
      imgOut[i][j] = c1 * (y1[i][j] + y2[i][j]);
  /*P*/for (int j = 0; j < h; j++) {
    float tm1 = 0.0f;
    float ym1 = 0.0f;
    float ym2 = 0.0f;
    for (int i = 0; i < w; i++) {
      y1[i][j] = a5 * imgOut[i][j] + a6 * tm1 + b1 * ym1 + b2 * ym2;
      tm1 = imgOut[i][j];
      ym2 = ym1;
      ym1 = y1[i][j];
    }
  }
  /*P*/for (int j = 0; j < h; j++) {
    float tp1 = 0.0f;
    float tp2 = 0.0f;
    float yp1 = 0.0f;
    float yp2 = 0.0f;
    for (int i = w - 1; i >= 0; i--) {
      y2[i][j] = a7 * tp1 + a8 * tp2 + b1 * yp1 + b2 * yp2;
      tp2 = tp1;
      tp1 = imgOut[i][j];
      yp2 = yp1;
      yp1 = y2[i][j];
    }
  }
  /*P*/for (int i = 0; i < w; i++)
    for (int j = 0; j < h; j++)
      imgOut[i][j] = c2 * (y1[i][j] + y2[i][j]);
""", of="float")

kernel("doitgen", "nr=7/150 nq=9/140 np=21/160", "", "A[nr][nq][np] C4[np][np] sum[np]", """
  /*P*/for (int r = 0; r < nr; r++)
    for (int q = 0; q < nq; q++) {
      for (int p = 0; p < np; p++) {
        sum[p] = 0.0;
        for (int s = 0; s < np; s++)
          sum[p] += A[r][q][s] * C4[s][p];
      }
      for (int p = 0; p < np; p++)
        A[r][q][p] = sum[p];
    }
""")

kernel("durbin", "n=33/2000", "", "r[n] y[n] z[n]", """
  y[0] = -r[0];
  double beta = 1.0;
  double alpha = -r[0];
  for (int k = 1; k < n; k++) {
    beta = (1.0 - alpha * alpha) * beta;
    double sum = 0.0;
    for (int i = 0; i < k; i++)
      sum += r[k - i - 1] * y[i];
    alpha = -(r[k] + sum) / beta;
    /*P*/for (int i = 0; i < k; i++)
      z[i] = y[i] + alpha * y[k - i - 1];
    /*P*/for (int i = 0; i < k; i++)
      y[i] = z[i];
    y[k] = alpha;
  }
""", inputs="r=tiny")

kernel("fdtd-2d", "tmax=4/500 nx=23/1000 ny=27/1200", "", "ex[nx][ny] ey[nx][ny] hz[nx][ny] fict[tmax]", """
  for (int t = 0; t < tmax; t++) {
    /*P*/for (int j = 0; j < ny; j++)
      ey[0][j] = fict[t];
    /*P*/for (int i = 1; i < nx; i++)
      for (int j = 0; j < ny; j++)
        ey[i][j] = ey[i][j] - 0.5 * (hz[i][j] - hz[i - 1][j]);
    /*P*/for (int i = 0; i < nx; i++)
      for (int j = 1; j < ny; j++)
        ex[i][j] = ex[i][j] - 0.5 * (hz[i][j] - hz[i][j - 1]);
    /*P*/for (int i = 0; i < nx - 1; i++)
      for (int j = 0; j < ny - 1; j++)
        hz[i][j] = hz[i][j] - 0.7 * (ex[i][j + 1] - ex[i][j] + ey[i + 1][j] - ey[i][j]);
  }
""")

kernel("floyd-warshall", "n=21/2800", "", "path[n][n]", """
  for (int k = 0; k < n; k++)
    for (int i = 0; i < n; i++)
      for (int j = 0; j < n; j++)
        path[i][j] = path[i][j] < path[i][k] + path[k][j] ? path[i][j] : path[i][k] + path[k][j];
""", of="int")

kernel("gemm", "ni=23/1000 nj=27/1100 nk=31/1200", "alpha=1.5 beta=1.2", "C[ni][nj] A[ni][nk] B[nk][nj]", """
  /*P*/for (int i = 0; i < ni; i++) {
    for (int j = 0; j < nj; j++)
      C[i][j] *= beta;
    for (int k = 0; k < nk; k++)
      for (int j = 0; j < nj; j++)
        C[i][j] += alpha * A[i][k] * B[k][j];
  }
""")

kernel("gemver", "n=31/2000", "alpha=1.5 beta=1.2", "A[n][n] u1[n] v1[n] u2[n] v2[n] w[n] x[n] y[n] z[n]", """
  /*P*/for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++)
      A[i][j] = A[i][j] + u1[i] * v1[j] + u2[i] * v2[j];
  /*P*/for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++)
      x[i] = x[i] + beta * A[j][i] * y[j];
  /*P*/for (int i = 0; i < n; i++)
    x[i] = x[i] + z[i];
  /*P*/for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++)
      w[i] = w[i] + alpha * A[i][j] * x[j];
""")

kernel("gesummv", "n=33/1300", "alpha=1.5 beta=1.2", "A[n][n] B[n][n] tmp[n] x[n] y[n]", """
  /*P*/for (int i = 0; i < n; i++) {
    tmp[i] = 0.0;
    y[i] = 0.0;
    for (int j = 0; j < n; j++) {
      tmp[i] = A[i][j] * x[j] + tmp[i];
      y[i] = B[i][j] * x[j] + y[i];
    }
    y[i] = alpha * tmp[i] + beta * y[i];
  }
""")

kernel("gramschmidt", "m=29/1000 n=23/1200", "", "A[m][n] R[n][n] Q[m][n]", """
  for (int k = 0; k < n; k++) {
    double nrm = 0.0;
    for (int i = 0; i < m; i++)
      nrm += A[i][k] * A[i][k];
    R[k][k] = sqrt(nrm);
    /*P*/for (int i = 0; i < m; i++)
      Q[i][k] = A[i][k] / R[k][k];
    /*P*/for (int j = k + 1; j < n; j++) {
      R[k][j] = 0.0;
      for (int i = 0; i < m; i++)
        R[k][j] += Q[i][k] * A[i][j];
      for (int i = 0; i < m; i++)
        A[i][j] = A[i][j] - Q[i][k] * R[k][j];
    }
  }
""")

kernel("heat-3d", "tsteps=3/500 n=13/120", "", "A[n][n][n] B[n][n][n]", """
  for (int t = 1; t <= tsteps; t++) {
    /*P*/for (int i = 1; i < n - 1; i++)
      for (int j = 1; j < n - 1; j++)
        for (int k = 1; k < n - 1; k++)
          B[i][j][k] = 0.125 * (A[i + 1][j][k] - 2.0 * A[i][j][k] + A[i - 1][j][k])
                     + 0.125 * (A[i][j + 1][k] - 2.0 * A[i][j][k] + A[i][j - 1][k])
                     + 0.125 * (A[i][j][k + 1] - 2.0 * A[i][j][k] + A[i][j][k - 1])
                     + A[i][j][k];
    /*P*/for (int i = 1; i < n - 1; i++)
      for (int j = 1; j < n - 1; j++)
        for (int k = 1; k < n - 1; k++)
          A[i][j][k] = 0.125 * (B[i + 1][j][k] - 2.0 * B[i][j][k] + B[i - 1][j][k])
                     + 0.125 * (B[i][j + 1][k] - 2.0 * B[i][j][k] + B[i][j - 1][k])
                     + 0.125 * (B[i][j][k + 1] - 2.0 * B[i][j][k] + B[i][j][k - 1])
                     + B[i][j][k];
  }
""")

kernel("jacobi-1d", "tsteps=5/500 n=61/2000", "", "A[n] B[n]", """
  for (int t = 0; t < tsteps; t++) {
    /*P*/for (int i = 1; i < n - 1; i++)
      B[i] = 0.33333 * (A[i - 1] + A[i] + A[i + 1]);
    /*P*/for (int i = 1; i < n - 1; i++)
      A[i] = 0.33333 * (B[i - 1] + B[i] + B[i + 1]);
  }
""")

kernel("jacobi-2d", "tsteps=4/500 n=27/1300", "", "A[n][n] B[n][n]", """
  for (int t = 0; t < tsteps; t++) {
    /*P*/for (int i = 1; i < n - 1; i++)
      for (int j = 1; j < n - 1; j++)
        B[i][j] = 0.2 * (A[i][j] + A[i][j - 1] + A[i][1 + j] + A[1 + i][j] + A[i - 1][j]);
    /*P*/for (int i = 1; i < n - 1; i++)
      for (int j = 1; j < n - 1; j++)
        A[i][j] = 0.2 * (B[i][j] + B[i][j - 1] + B[i][1 + j] + B[1 + i][j] + B[i - 1][j]);
  }
""")

kernel("lu", "n=29/2000", "", "A[n][n]", """
  for (int i = 0; i < n; i++) {
    for (int j = 0; j < i; j++) {
      for (int k = 0; k < j; k++)
        A[i][j] -= A[i][k] * A[k][j];
      A[i][j] /= A[j][j];
    }
    /*P*/for (int j = i; j < n; j++)
      for (int k = 0; k < i; k++)
        A[i][j] -= A[i][k] * A[k][j];
  }
""", inputs="A=dominant")

kernel("ludcmp", "n=29/2000", "", "A[n][n] b[n] x[n] y[n]", """
  double w;
  for (int i = 0; i < n; i++) {
    for (int j = 0; j < i; j++) {
      w = A[i][j];
      for (int k = 0; k < j; k++)
        w -= A[i][k] * A[k][j];
      A[i][j] = w / A[j][j];
    }
    /*P*/for (int j = i; j < n; j++) {
      w = A[i][j];
      for (int k = 0; k < i; k++)
        w -= A[i][k] * A[k][j];
      A[i][j] = w;
    }
  }
  for (int i = 0; i < n; i++) {
    w = b[i];
    for (int j = 0; j < i; j++)
      w -= A[i][j] * y[j];
    y[i] = w;
  }
  for (int i = n - 1; i >= 0; i--) {
    w = y[i];
    for (int j = i + 1; j < n; j++)
      w -= A[i][j] * x[j];
    x[i] = w / A[i][i];
  }
""", inputs="A=dominant")

kernel("mvt", "n=33/2000", "", "x1[n] x2[n] y1[n] y2[n] A[n][n]", """
  /*P*/for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++)
      x1[i] = x1[i] + A[i][j] * y1[j];
  /*P*/for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++)
      x2[i] = x2[i] + A[j][i] * y2[j];
""")

kernel("nussinov", "n=29/2500", "", "seq[n] table[n][n]", """
  for (int i = n - 1; i >= 0; i--)
    for (int j = i + 1; j < n; j++) {
      if (j - 1 >= 0)
        table[i][j] = LARGER(table[i][j], table[i][j - 1]);
      if (i + 1 < n)
        table[i][j] = LARGER(table[i][j], table[i + 1][j]);
      if (j - 1 >= 0 && i + 1 < n) {
        if (i < j - 1)
          table[i][j] = LARGER(table[i][j], table[i + 1][j - 1] + PAIRED(seq[i], seq[j]));
        else
          table[i][j] = LARGER(table[i][j], table[i + 1][j - 1]);
      }
      for (int k = i + 1; k < j; k++)
        table[i][j] = LARGER(table[i][j], table[i][k] + table[k + 1][j]);
    }
""", of="int", inputs="seq=bases")

kernel("seidel-2d", "tsteps=3/500 n=25/2000", "", "A[n][n]", """
  for (int t = 0; t < tsteps; t++)
    for (int i = 1; i <= n - 2; i++)
      for (int j = 1; j <= n - 2; j++)
        A[i][j] = (A[i - 1][j - 1] + A[i - 1][j] + A[i - 1][j + 1]
                   + A[i][j - 1] + A[i][j] + A[i][j + 1]
                   + A[i + 1][j - 1] + A[i + 1][j] + A[i + 1][j + 1]) / 9.0;
""")

kernel("symm", "m=23/1000 n=27/1200", "alpha=1.5 beta=1.2", "C[m][n] A[m][m] B[m][n]", """
  double temp2;
  for (int i = 0; i < m; i++)
    /*P*/for (int j = 0; j < n; j++) {
      temp2 = 0.0;
      for (int k = 0; k < i; k++) {
        C[k][j] += alpha * B[i][j] * A[i][k];
        temp2 += B[k][j] * A[i][k];
      }
      C[i][j] = beta * C[i][j] + alpha * B[i][j] * A[i][i] + alpha * temp2;
    }
""")

kernel("syr2k", "m=23/1000 n=27/1200", "alpha=1.5 beta=1.2", "C[n][n] A[n][m] B[n][m]", """
  /*P*/for (int i = 0; i < n; i++) {
    for (int j = 0; j <= i; j++)
      C[i][j] *= beta;
    for (int k = 0; k < m; k++)
      for (int j = 0; j <= i; j++)
        C[i][j] += A[j][k] * alpha * B[i][k] + B[j][k] * alpha * A[i][k];
  }
""")

kernel("syrk", "m=23/1000 n=27/1200", "alpha=1.5 beta=1.2", "C[n][n] A[n][m]", """
  /*P*/for (int i = 0; i < n; i++) {
    for (int j = 0; j <= i; j++)
      C[i][j] *= beta;
    for (int k = 0; k < m; k++)
      for (int j = 0; j <= i; j++)
        C[i][j] += alpha * A[i][k] * A[j][k];
  }
""")

kernel("trisolv", "n=33/2000", "", "L[n][n] x[n] b[n]", """
  for (int i = 0; i < n; i++) {
    x[i] = b[i];
    for (int j = 0; j < i; j++)
      x[i] -= L[i][j] * x[j];
    x[i] = x[i] / L[i][i];
  }
""", inputs="L=dominant")

kernel("trmm", "m=23/1000 n=27/1200", "alpha=1.5", "A[m][m] B[m][n]", """
  for (int i = 0; i < m; i++)
    /*P*/for (int j = 0; j < n; j++) {
      for (int k = i + 1; k < m; k++)
        B[i][j] += A[k][i] * B[k][j];
      B[i][j] = alpha * B[i][j];
    }
""")

HEAD = """#include <math.h>
#ifndef PREFIX
#define PREFIX
#endif
#define JOINED(prefix, name) prefix##name
#define EXPANDED(prefix, name) JOINED(prefix, name)
#define NAMED(name) EXPANDED(PREFIX, name)
#define LARGER(a, b) ((a) >= (b) ? (a) : (b))
#define PAIRED(a, b) ((a) + (b) == 3 ? 1 : 0)
"""


def array_parameter(item, array, dimensions, spelling, values):
    """An array as a parameter is declared in a spelling."""
    restrict = "restrict " if spelling in ("const", "vlar", "flatr") else ""
    if spelling.startswith("flat"):
        return f"{item} *{restrict}{array}"
    if spelling == "const":
        rows = "".join(f"[{values[dimension]}]" for dimension in dimensions[1:])
        return f"{item} (*{restrict}{array}){rows}" if rows else f"{item} *{restrict}{array}"
    shape = [str(values[dimension]) for dimension in dimensions] if spelling == "default" else list(dimensions)
    return f"{item} {array}" + "".join(f"[{length}]" for length in [restrict + shape[0]] + shape[1:])


def parameters(kernel, spelling, values):
    """The parameters: sizes (unless they are constants), scalars, arrays."""
    sizes = [] if spelling == "const" else [f"int {size}" for size in kernel.sizes]
    scalars = [f"{kernel.type} {scalar}" for scalar in kernel.scalars]
    arrays = [array_parameter(kernel.type, array, dimensions, spelling, values) for array, dimensions in kernel.arrays.items()]
    return ", ".join(sizes + scalars + arrays)


def flat_access(dimensions, indices):
    """One index for several: [i + 1][j] of rows of n is [(i + 1) * n + j]."""
    index = indices[0]
    for dimension, inner in zip(dimensions[1:], indices[1:]):
        index = f"{index if re.fullmatch(r'[a-z0-9]+', index) else f'({index})'} * {dimension} + {inner}"
    return f"[{index}]"


def body_of(kernel, spelling, values):
    """The body, with flat accesses or constant sizes where the spelling has them."""
    if spelling == "const":
        return re.sub(r"\b(" + "|".join(values) + r")\b", lambda match: str(values[match[1]]), kernel.body)
    if not spelling.startswith("flat"):
        return kernel.body
    return re.sub(r"\b(" + "|".join(kernel.arrays) + r")((?:\[[^\[\]]+\])+)",
                  lambda match: match[1] + flat_access(kernel.arrays[match[1]], re.findall(r"\[([^\[\]]+)\]", match[2])), kernel.body)


def function_text(kernel, spelling, size):
    """One kernel as a C function."""
    values = kernel.values(size)
    head = f"void NAMED({kernel.function})({parameters(kernel, spelling, values)})"
    return f"\n{head}\n{{\n{body_of(kernel, spelling, values)}\n}}\n"


def text(spelling, size, names=None):
    """A C file with all kernels, or those of some names; spelling is one of SPELLINGS, size is "small" or "large"."""
    assert spelling in SPELLINGS and size in ("small", "large"), (spelling, size)
    return HEAD + "".join(function_text(KERNELS[name], spelling, size) for name in names or KERNELS)


def marked_lines(source):
    """The numbers of the lines with marked loops in a text."""
    return {number for number, line in enumerate(source.splitlines(), 1) if MARK in line}


def kernel_lines(source):
    """{name of a kernel: range of its lines} of a text."""
    functions = {kernel.function: name for name, kernel in KERNELS.items()}
    starts = [(number, functions[match[1]]) for number, line in enumerate(source.splitlines(), 1)
              if (match := re.match(r"void NAMED\((\w+)\)", line))]
    ends = [number for number, _ in starts[1:]] + [source.count("\n") + 1]
    return {name: range(number, end) for (number, name), end in zip(starts, ends)}


assert len(KERNELS) == 30
assert sum(kernel.marked for kernel in KERNELS.values()) == MARKED_LOOPS
assert sum(kernel.marked > 0 for kernel in KERNELS.values()) == MARKED_KERNELS
