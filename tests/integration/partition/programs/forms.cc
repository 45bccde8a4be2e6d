// Loop forms as people write them in C++. The comment before each function says what the partitioning
// compiler makes of it:
//   found            the outermost loop is partitioned
//   refused: WHY     it must not be
//   later: WHY       it is parallel, but need not be found yet
#include "tests/integration/partition/programs/forms.h"

#include <algorithm>
#include <cmath>

// found
void VectorByIndex(std::vector<double>& a, const std::vector<double>& b) {
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = 3 * b[i] + 2;
}

// found
void VectorByInt(std::vector<double>& a, const std::vector<double>& b, int n) {
  for (int i = 0; i < n; ++i) a[i] = b[i] - 0.5;
}

// found
void RangeFor(std::vector<double>& a) {
  for (double& x : a) x = 0.5 * x * x + 2;
}

// found
void Spans(std::span<double> a, std::span<const double> b) {
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = 0.25 * b[i];
}

// found
void UnsignedIndex(double* a, const double* b, unsigned n) {
  for (unsigned i = 0; i < n; ++i) a[i] = b[i] * 5;
}

// found
void UnsignedRows(double* a, const double* b, unsigned n, unsigned m) {
  for (unsigned i = 0; i < n; ++i) {
    for (unsigned j = 0; j < m; ++j) a[i * m + j] = b[i * m + j] * 5;
  }
}

// found
void SizeRows(double* a, const double* b, std::size_t n, std::size_t m) {
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < m; ++j) a[i * m + j] = b[i * m + j] - 7;
  }
}

// found
void MovingPointers(double* a, const double* b, int n) {
  const double* end = b + n;
  while (b != end) *a++ = *b++ * 0.5;
}

// found
void Downward(double* a, int n) {
  for (int i = n - 1; i >= 0; --i) a[i] = a[i] * 3;
}

// found
void StepFour(double* a, int n) {
  for (int i = 0; i < n; i += 4) {
    a[i] = 5;
    a[i + 1] = 6;
  }
}

// found
void UpToN(double* a, int n) {
  for (int i = 1; i <= n; i++) a[i] = 2 * i;
}

// found
void ClassByReference(Matrix& a, const Matrix& b, const Matrix& c) {
  for (int i = 0; i < a.rows; ++i) {
    for (int j = 0; j < a.columns; ++j) {
      double sum = 0;
      for (int k = 0; k < b.columns; ++k) sum += b.at(i, k) * c.at(k, j);
      a.at(i, j) = sum;
    }
  }
}

// found
void ClassByValue(Matrix a, const Matrix b, const Matrix c) {
  for (int i = 0; i < a.rows; ++i) {
    for (int j = 0; j < a.columns; ++j) {
      double sum = 0;
      for (int k = 0; k < b.columns; ++k) sum += b.at(i, k) * c.at(k, j);
      a.at(i, j) = sum;
    }
  }
}

// later: rows are objects of their own
void VectorOfVectors(std::vector<std::vector<double>>& a, const std::vector<std::vector<double>>& b) {
  for (std::size_t i = 0; i < a.size(); ++i) {
    for (std::size_t j = 0; j < a[i].size(); ++j) a[i][j] = b[i][j] + 1;
  }
}

// found
void IndirectRead(double* __restrict a, const double* __restrict b, const int* __restrict index, int n) {
  for (int i = 0; i < n; ++i) a[i] = b[index[i]];
}

// found
void SparseProduct(double* __restrict y, const double* __restrict value, const double* __restrict x,
                   const int* __restrict column, const int* __restrict row, int n) {
  for (int i = 0; i < n; ++i) {
    double sum = 0;
    for (int k = row[i]; k < row[i + 1]; ++k) sum += value[k] * x[column[k]];
    y[i] = sum;
  }
}

// refused: scatter
void Scatter(double* a, const double* b, const int* index, int n) {
  for (int i = 0; i < n; ++i) a[index[i]] = b[i];
}

// found
void Exponential(double* a, const double* b, int n) {
  for (int i = 0; i < n; ++i) a[i] = std::exp(b[i]) * std::sqrt(b[i]);
}

// found
void IfElse(double* a, const double* b, int n) {
  for (int i = 0; i < n; ++i) {
    if (b[i] > 1) {
      a[i] = b[i];
    } else {
      a[i] = 2 - b[i] * b[i];
    }
  }
}

// found
void PartialWrite(double* a, const double* b, int n) {
  for (int i = 0; i < n; ++i) {
    if (b[i] > 1) a[i] = b[i];
  }
}

// refused: a floating-point sum in another order has other bits
double FloatSum(const double* a, int n) {
  double sum = 0;
  for (int i = 0; i < n; ++i) sum += a[i];
  return sum;
}

// found
long IntegerSum(const int* a, int n) {
  long sum = 0;
  for (int i = 0; i < n; ++i) sum += a[i];
  return sum;
}

// refused: early exit
int EarlyExit(const double* a, int n) {
  for (int i = 0; i < n; ++i) {
    if (a[i] > 1.9) return i;
  }
  return -1;
}

// found
void CheckedAt(std::vector<double>& a) {
  for (std::size_t i = 0; i < a.size(); ++i) a.at(i) = 4;
}

float factor = 1.5f;

// found
void GlobalFactor(float* a, const float* b, int n) {
  for (int i = 0; i < n; ++i) a[i] = b[i] * factor;
}

// found
void ArrayOfStructs(Body* p, int n) {
  for (int i = 0; i < n; ++i) {
    p[i].x += p[i].mass;
    p[i].z *= 3;
  }
}

// found
void Forces(Body* __restrict f, const Body* __restrict p, int n) {
  for (int i = 0; i < n; ++i) {
    float sum = 0;
    for (int j = 0; j < n; ++j) {
      float d = p[j].x - p[i].x;
      sum += p[j].mass * d / std::sqrt(d * d + 1e-2f);
    }
    f[i].y = sum;
  }
}

static int Escape(double x, double y) {
  double u = 0, v = 0;
  int count = 0;
  while (count < 200 && u * u + v * v < 4) {
    double next = u * u - v * v + x;
    v = 2 * u * v + y;
    u = next;
    ++count;
  }
  return count;
}

// found
void Mandelbrot(int* counts, int width, int height) {
  for (int i = 0; i < height; ++i) {
    for (int j = 0; j < width; ++j) counts[i * width + j] = Escape(3.0 * j / width - 2, 2.0 * i / height - 1);
  }
}

// found
void Transform(std::vector<float>& a) {
  std::transform(a.begin(), a.end(), a.begin(), [](float x) { return 0.5f * x * x - 3; });
}

// refused: histogram
void Histogram(int* counts, const unsigned char* pixels, int n) {
  for (int i = 0; i < n; ++i) counts[pixels[i]]++;
}

double grid[kGrid][kGrid], next_grid[kGrid][kGrid];

// found
void GlobalGrid() {
  for (int i = 1; i < kGrid - 1; ++i) {
    for (int j = 1; j < kGrid - 1; ++j) next_grid[i][j] = 0.5 * (grid[i - 1][j] + grid[i + 1][j]);
  }
}

// found
void Triangular(double* a, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) {
    for (std::int64_t j = 0; j < i; ++j) a[i * n + j] = a[i * n + j] / (i + 2);
  }
}

// later: rows are objects of their own
void PointerRows(double** a, int n, int m) {
  for (int i = 0; i < n; ++i) {
    for (int j = 0; j < m; ++j) a[i][j] *= 3;
  }
}

// found
void LocalArray(double* a, const double* b, int n) {
  for (int i = 0; i < n; ++i) {
    double part[6];
    for (int k = 0; k < 6; ++k) part[k] = b[i * 6 + k] + k;
    double sum = 0;
    for (int k = 0; k < 6; ++k) sum += part[5 - k] * part[k];
    a[i] = sum;
  }
}

// found
void ScratchVector(Matrix& a, std::vector<double>& part) {
  for (int i = 0; i < a.rows; ++i) {
    for (int j = 0; j < a.columns; ++j) part[j] = a.at(i, j) * 0.5;
    for (int j = 0; j < a.columns; ++j) a.at(i, j) = part[a.columns - 1 - j] + i;
  }
}

// found
void ScratchOnStack(double* a, int n) {
  double sum[17];
  for (int i = 0; i < n; ++i) {
    sum[0] = 1;
    for (int j = 0; j < 16; ++j) sum[j + 1] = sum[j] * 0.5 + a[i];
    a[i] = sum[16] - sum[8];
  }
}

// refused: the first element of an iteration is the last one of the iteration before
void ScratchThatGoesOn(double* a, int n) {
  double sum[17] = {};
  for (int i = 0; i < n; ++i) {
    sum[0] = sum[16];
    for (int j = 0; j < 16; ++j) sum[j + 1] = sum[j] * 0.5 + a[i];
    a[i] = sum[16] - sum[8];
  }
}

// refused: some iterations read what another has written
void ScratchUnderACondition(double* a, int n) {
  double part[8] = {};
  for (int i = 0; i < n; ++i) {
    if (a[i] > 1)
      for (int j = 0; j < 8; ++j) part[j] = a[i] * j;
    a[i] = part[7] + part[3];
  }
}

static double Median(const double* a) {
  double sorted[5];
  for (int k = 0; k < 5; ++k) sorted[k] = a[k];
  for (int k = 4; k > 0; --k) {
    for (int j = 0; j < k; ++j) {
      const double less = sorted[j] < sorted[j + 1] ? sorted[j] : sorted[j + 1];
      sorted[j + 1] = sorted[j] < sorted[j + 1] ? sorted[j + 1] : sorted[j];
      sorted[j] = less;
    }
  }
  return sorted[2] + sorted[a[0] > 1 ? 0 : 4];
}

// found
void LocalOfInlined(double* a, const double* b, int n) {
  for (int i = 0; i < n; ++i) a[i] = Median(b + i);
}
