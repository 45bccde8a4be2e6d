// The comment before each loop is all that the compiler says of it. Nobody runs this program.
#include <csetjmp>
#include <cstdint>
#include <cstdlib>
#include <utility>

extern "C" double Unknown(double);
extern "C" double exp(double);
double Overloaded(double, int*);
struct Guard {
  ~Guard();
};
struct Matrix {
  double* data;
  int rows, columns;
  double& at(int i, int j) { return data[static_cast<std::size_t>(i) * columns + j]; }
};
struct Words {
  long word[40];
};

// Calls and exceptions.

void UnknownCall(double* a, const double* b, int n) {
  // not partitioned: it calls Unknown (line +0)
  for (int i = 0; i < n; ++i) a[i] = Unknown(b[i]);
}

void UnknownFunctionOfCpp(double* a, int* b, int n) {
  // not partitioned: it calls Overloaded(double, int*) (line +0)
  for (int i = 0; i < n; ++i) a[i] = Overloaded(a[i], b);
}

void FunctionPointer(double* a, double (*function)(double), int n) {
  // not partitioned: it calls a function pointer (line +0)
  for (int i = 0; i < n; ++i) a[i] = function(a[i]);
}

void CallThatWritesErrno(double* a, int n) {
  // not partitioned: it calls exp (line +0)
  for (int i = 0; i < n; ++i) a[i] = exp(a[i]);
}

void CallOfMemoryFunction(Words* a, const Words* b, int n) {
  // not partitioned: it calls memcpy (line +0)
  for (int i = 0; i < n; ++i) a[i] = b[n - i];
}

void Random(int* a, int n) {
  // not partitioned: it calls rand (line +0)
  for (int i = 0; i < n; ++i) a[i] = std::rand();
}

void MayThrow(double* a, int n) {
  // not partitioned: it may end early (line +1)
  for (int i = 0; i < n; ++i) {
    if (a[i] < 0) throw a[i];
    a[i] = a[i] + 1;
  }
}

void CatchInside(double* a, int* b, int n) {
  // not partitioned: it may end early (line +3)
  for (int i = 0; i < n; ++i) {
    try {
      a[i] = Overloaded(a[i], b);
    } catch (int) {
      a[i] = 0;
    }
  }
}

void CatchOutside(double* a, int* b, int n) {
  try {
    // not partitioned: it calls Overloaded(double, int*), which may throw (line +0)
    for (int i = 0; i < n; ++i) a[i] = Overloaded(a[i], b);
  } catch (int) {
    a[0] = 0;
  }
}

void DestructorOfEach(double* a, int n) {
  // not partitioned: it calls Guard::~Guard() (line +3)
  for (int i = 0; i < n; ++i) {
    Guard guard;
    a[i] = 1;
  }
}

void Abort(double* a, int n) {
  // not partitioned: it may end early (line +1)
  for (int i = 0; i < n; ++i) {
    if (a[i] > 7) std::abort();
    a[i] = 2;
  }
}

std::jmp_buf place;

void Setjmp(double* a, int n) {
  if (setjmp(place) != 0) return;
  // not partitioned: its function calls one that may return twice, such as setjmp
  for (int i = 0; i < n; ++i) a[i] = 3;
}

__attribute__((optnone)) void NotOptimized(double* a, int n) {
  // not partitioned: its function is not to be optimized
  for (int i = 0; i < n; ++i) a[i] = 3;
}

// Instructions.

void VolatileRead(double* a, volatile double* b, int n) {
  // not partitioned: it has a volatile access (line +0)
  for (int i = 0; i < n; ++i) a[i] = b[i];
}

void VolatileWrite(volatile double* a, int n) {
  // not partitioned: it has a volatile access (line +0)
  for (int i = 0; i < n; ++i) a[i] = 4;
}

void AtomicSum(int* a, int* sum, int n) {
  // not partitioned: it has an atomic access (line +0)
  for (int i = 0; i < n; ++i) __atomic_fetch_add(sum, a[i], __ATOMIC_RELAXED);
}

void AtomicRead(int* a, int* b, int n) {
  // not partitioned: it has an atomic access (line +0)
  for (int i = 0; i < n; ++i) a[i] = __atomic_load_n(b + i, __ATOMIC_SEQ_CST);
}

void Fence(int* a, int n) {
  // not partitioned: it has an atomic access (line +2)
  for (int i = 0; i < n; ++i) {
    a[i] = 5;
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
  }
}

void Assembly(int* a, int n) {
  // not partitioned: it has assembly (line +1)
  for (int i = 0; i < n; ++i) {
    asm volatile("" ::: "memory");
    a[i] = 6;
  }
}

void AssemblyThatComputes(int* a, int n) {
  // not partitioned: it has assembly (line +0)
  for (int i = 0; i < n; ++i) asm("incl %0" : "+r"(a[i]));
}

void StrictFloatingPoint(double* a, const double* b, int n) {
#pragma STDC FENV_ACCESS ON
  // not partitioned: its function may change or ask how floating-point numbers are computed
  for (int i = 0; i < n; ++i) a[i] = b[i] * 3;
}

void LongDouble(long double* a, int n) {
  // not partitioned: it computes with long double (line +0)
  for (int i = 0; i < n; ++i) a[i] = a[i] * 3;
}

void LongDoubleInside(double* a, int n) {
  // not partitioned: it computes with long double (line +0)
  for (int i = 0; i < n; ++i) a[i] = static_cast<double>(a[i] / 3.0L);
}

void Division(int* a, int divisor, int n) {
  // loop partitioned: a (read, written); on the host alone, as it divides by an integer that may be 0
  for (int i = 0; i < n; ++i) a[i] = a[i] / divisor;
}

void RemainderOfElements(unsigned* a, int n) {
  // loop partitioned: a (read, written); on the host alone, as it divides by an integer that may be 0
  for (int i = 0; i < n; ++i) a[i] = 1000 % a[i];
}

void DivisionByConstant(int* a, int n) {
  // loop partitioned: a (read, written)
  for (int i = 0; i < n; ++i) a[i] = a[i] / 7;
}

void IntegerToPointer(std::uintptr_t* a, double* b, int n) {
  // not partitioned: it computes with addresses as numbers (line +0)
  for (int i = 0; i < n; ++i) b[i] = *reinterpret_cast<double*>(a[i]);
}

void PointerToInteger(std::uintptr_t* a, double* b, int n) {
  // not partitioned: it computes with addresses as numbers (line +0)
  for (int i = 0; i < n; ++i) a[i] = reinterpret_cast<std::uintptr_t>(b + i);
}

void StoresPointer(double** a, double* b, int n) {
  // not partitioned: it stores a pointer (line +0)
  for (int i = 0; i < n; ++i) a[i] = b + i;
}

void ReadsPointer(double** a, double* b, int n) {
  // not partitioned: it reads a pointer (line +0)
  for (int i = 0; i < n; ++i) b[i] = *a[i];
}

void ComparesAddresses(double* a, const double* b, const double* c, int n) {
  // not partitioned: it compares addresses (line +0)
  for (int i = 0; i < n; ++i) a[i] = b + 2 * i < c ? 1 : 2;
}

thread_local double own[100];

void ThreadLocal(double* a) {
  // loop partitioned: an array (read), a (written); checked before each run: an array apart from a
  for (int i = 0; i < 100; ++i) a[i] = own[i];
}

// Forms of loops.

int EarlyReturn(const double* a, double x, int n) {
  // not partitioned: it may end early (line +1)
  for (int i = 0; i < n; ++i) {
    if (a[i] == x) return i;
  }
  return -1;
}

void EarlyBreak(double* a, int n) {
  // not partitioned: it may end early (line +0)
  for (int i = 0; i < n; ++i) {
    a[i] = 7;
    if (a[i + 1] > 1) break;
  }
}

void UnknownCount(double* a) {
  // not partitioned: the number of its iterations is not known before
  while (*a != 0) *a++ = 8;
}

void UnknownStep(double* a, int n, int step) {
  // not partitioned: it has a counter whose step is not constant
  for (int i = 0; i < n; i += step) a[i] = 9;
}

void Endless(double* a) {
  // not partitioned: it does not end
  for (;;) *a = *a + 1;
}

double LiveOut(const double* a, double* b, int n) {
  double last = 0;
  // not partitioned: a value of its last iteration is used after it (line +1)
  for (int i = 0; i < n; ++i) {
    last = a[i] * 2;
    b[i] = last;
  }
  return last;
}

int LastCounterUsed(double* a, int n) {
  int i;
  // loop partitioned: a (written)
  for (i = 0; i < n; ++i) a[i] = 11;
  return i;
}

void CarriedScalar(double* a, int n) {
  double last = 0;
  // not partitioned: last is carried from iteration to iteration
  for (int i = 0; i < n; ++i) {
    last = 0.5 * (last + a[i]);
    a[i] = last;
  }
}

double FloatSum(const double* a, int n) {
  double sum = 0;
  // not partitioned: it sums up, and the order of a sum of floating-point numbers matters
  for (int i = 0; i < n; ++i) sum += a[i];
  return sum;
}

int Product(const int* a, int n) {
  int product = 1;
  // not partitioned: product is carried from iteration to iteration
  for (int i = 0; i < n; ++i) product *= a[i];
  return product;
}

void ReadsAlone(const double* a, int n) {
  // not partitioned: it writes nothing
  for (int i = 0; i < n; ++i) __builtin_assume(a[i] > 0);
}

// Elements.

void Recurrence(double* a, int n) {
  // not partitioned: iterations may share elements of a: one writes (line +0) what another reads (line +0)
  for (int i = 1; i < n; ++i) a[i] = a[i - 1] * 2;
}

void Scatter(double* a, const int* index, int n) {
  // not partitioned: where it writes a (line +0) is not an affine function of its counters
  for (int i = 0; i < n; ++i) a[index[i]] = 12;
}

void Gather(double* a, const double* b, const int* index, int n) {
  // not partitioned: b and a may overlap, and what it reads of them is not known before the loop
  for (int i = 0; i < n; ++i) a[i] = b[index[i]];
}

// It has no columns: which elements of a row are written is known when the row is done.
void RowsThatEndEarly(double* __restrict a, const double* __restrict b, int n, long m) {
  // loop partitioned: b (read), a (written)
  for (int i = 0; i < n; ++i) {
    for (long j = 0; (j < m) & (b[i + j] > 0); ++j) a[i * m + j] = b[j];
  }
}

// Arrays that each iteration writes before it reads them.

void ScratchOfRow(const double* __restrict a, double* __restrict b, double* __restrict part, int n, long m) {
  // loop partitioned: a (read), part (private to each iteration), b (written); on the host alone, as it needs
  // a copy of part for each thread
  for (int i = 0; i < n; ++i) {
    for (long j = 0; j < m; ++j) part[j] = a[i * m + j] * 2;
    for (long j = 0; j < m; ++j) b[i * m + j] = part[m - 1 - j];
  }
}

void RunningSums(const double* __restrict a, double* __restrict b, int n, long m) {
  double sum[101];
  // loop partitioned: sum (private to each iteration), a (read), b (written); checked before each run: -n >=
  // 0 or n >= 1, m >= 100; on the host alone, as it needs a copy of sum for each thread
  for (int i = 0; i < n; ++i) {
    sum[0] = 0;
    for (long j = 0; j < 100; ++j) sum[j + 1] = sum[j] + a[i * m + j];
    for (long j = 0; j < 100; ++j) b[i * m + j] = sum[j + 1] - sum[100 - j];
  }
}

// The second write of an element may or may not happen.
void ScratchWithCondition(const double* __restrict a, double* __restrict b, double* __restrict part, int n,
                          long m) {
  // loop partitioned: part (private to each iteration), a (read), b (written); on the host alone, as it needs
  // a copy of part for each thread
  for (int i = 0; i < n; ++i) {
    for (long j = 0; j < m; ++j) {
      part[j] = 1;
      if (a[j] > 0) part[j] = a[i * m + j];
    }
    for (long j = 0; j < m; ++j) b[i * m + j] = part[m - 1 - j];
  }
}

// part has its elements where k has an iteration.
void ScratchWrittenAgain(const double* __restrict a, double* __restrict b, double* __restrict part, int n,
                         long m, int steps) {
  // loop partitioned: a (read), part (private to each iteration), b (written); checked before each run: steps
  // >= 1; on the host alone, as it needs a copy of part for each thread
  for (int i = 0; i < n; ++i) {
    for (int k = 0; k < steps; ++k)
      for (long j = 0; j < m; ++j) part[j] = a[i * m + j] * k;
    for (long j = 0; j < m; ++j) b[i * m + j] = part[m - 1 - j];
  }
}

void ReadBeforeWritten(const double* __restrict a, double* __restrict b, double* __restrict part, int n,
                       long m) {
  // not partitioned: iterations may share elements of part: one writes (line +4) what another reads (line +2)
  for (int i = 0; i < n; ++i) {
    // loop partitioned: part (read), b (written)
    for (long j = 0; j < m; ++j) b[i * m + j] = part[j];
    // loop partitioned: a (read), part (written)
    for (long j = 0; j < m; ++j) part[j] = a[i * m + j] * 2;
  }
}

// The first iteration reads an element that the loop has not written.
void ReadOfOneBefore(const double* __restrict a, double* __restrict b, double* __restrict part, int n,
                     long m) {
  // not partitioned: iterations may share elements of part: one writes (line +5) what another reads (line +4)
  for (int i = 0; i < n; ++i) {
    // not partitioned: iterations may share elements of part: one writes (line +2) what another reads (line
    // +1)
    for (long j = 0; j < m; ++j) {
      b[i * m + j] = part[m - 1 - j];
      part[j] = a[i * m + j] * 2;
    }
  }
}

void WrittenUnderACondition(const double* __restrict a, double* __restrict b, double* __restrict part, int n,
                            long m) {
  // not partitioned: iterations may share elements of part: one writes (line +3) what another writes (line
  // +3)
  for (int i = 0; i < n; ++i) {
    if (a[i] > 0) {
      // loop partitioned: a (read), part (written)
      for (long j = 0; j < m; ++j) part[j] = a[i * m + j] * 2;
    }
    // loop partitioned: part (read), b (written)
    for (long j = 0; j < m; ++j) b[i * m + j] = part[j];
  }
}

void SomeElementsWritten(const double* __restrict a, double* __restrict b, double* __restrict part, int n,
                         long m) {
  // not partitioned: iterations may share elements of part: one writes (line +3) what another writes (line
  // +3)
  for (int i = 0; i < n; ++i) {
    // loop partitioned: a (read), part (written)
    for (long j = 0; j < m; ++j)
      if (a[j] > 0) part[j] = a[i * m + j] * 2;
    // loop partitioned: part (read), b (written)
    for (long j = 0; j < m; ++j) b[i * m + j] = part[j];
  }
}

void WrittenUntil(const double* __restrict a, double* __restrict b, double* __restrict part, int n, long m) {
  // not partitioned: iterations may share elements of part: one writes (line +2) what another writes (line
  // +2)
  for (int i = 0; i < n; ++i) {
    // not partitioned: the number of its iterations is not known before
    for (long j = 0; (j < m) & (a[j] > 0); ++j) part[j] = a[i * m + j] * 2;
    // loop partitioned: part (read), b (written)
    for (long j = 0; j < m; ++j) b[i * m + j] = part[j];
  }
}

// The elements of later iterations are more.
void WrittenUpToTheCounter(const double* __restrict a, double* __restrict b, double* __restrict part, int n,
                           long m) {
  // not partitioned: iterations may share elements of part: one writes (line +2) what another writes (line
  // +2)
  for (int i = 0; i < n; ++i) {
    // loop partitioned: a (read), part (written)
    for (long j = 0; j < i; ++j) part[j] = a[i * m + j] * 2;
    // loop partitioned: part (read), b (written)
    for (long j = 0; j < i; ++j) b[i * m + j] = part[j];
  }
}

void MoreWrittenUnderACondition(const double* __restrict a, double* __restrict b, double* __restrict part,
                                int n, long m) {
  // not partitioned: iterations may share elements of part: one writes (line +2) what another writes (line
  // +2)
  for (int i = 0; i < n; ++i) {
    // loop partitioned: a (read), part (written)
    for (long j = 0; j < m; ++j) part[j] = a[i * m + j] * 2;
    if (a[i] > 0) part[m] = 5;
    // loop partitioned: part (read), b (written)
    for (long j = 0; j < m; ++j) b[i * m + j] = part[j];
  }
}

void WrittenByAnEarlierIteration(const double* __restrict a, double* __restrict b, double* __restrict part,
                                 int n) {
  // not partitioned: iterations may share elements of part: one writes (line +1) what another reads (line +2)
  for (int i = 1; i < n; ++i) {
    part[i] = a[i];
    b[i] = part[i - 1];
  }
}

// Without an element nothing is written, and part[0] is read.
void ReadOfALoopThatMayBeEmpty(const double* __restrict a, double* __restrict b, double* __restrict part,
                               int n, long m) {
  // not partitioned: iterations may share elements of part: one writes (line +2) what another writes (line
  // +2)
  for (int i = 0; i < n; ++i) {
    // loop partitioned: a (read), part (written)
    for (long j = 0; j < m; ++j) part[j] = a[i * m + j] * 2;
    b[i] = part[0];
  }
}

void ReadOfMoreThanIsWritten(const double* __restrict a, double* __restrict b, double* __restrict part, int n,
                             long m) {
  // not partitioned: iterations may share elements of part: one writes (line +2) what another writes (line
  // +2)
  for (int i = 0; i < n; ++i) {
    // loop partitioned: a (read), part (written)
    for (long j = 0; j < m; ++j) part[j] = a[i * m + j] * 2;
    // loop partitioned: part (read), b (written)
    for (long j = 0; j <= m; ++j) b[i * m + j] = part[j];
  }
}

// Elements between those that are written may be another object's.
void WrittenWithGaps(const double* __restrict a, double* __restrict b, double* __restrict part, int n,
                     long m) {
  // not partitioned: iterations may share elements of part: one writes (line +2) what another writes (line
  // +2)
  for (int i = 0; i < n; ++i) {
    // loop partitioned: a (read), part (written)
    for (long j = 0; j < m; ++j) part[2 * j] = a[i * m + j] * 2;
    // loop partitioned: part (read), b (written)
    for (long j = 0; j < m; ++j) b[i * m + j] = part[2 * (m - 1 - j)];
  }
}

// All but the last iteration are in vain.
void Repetitions(const double* __restrict a, double* __restrict b, int times, long n) {
  // not partitioned: iterations may share elements of b: one writes (line +2) what another writes (line +2)
  for (int i = 0; i < times; ++i) {
    // loop partitioned: a (read), b (written)
    for (long j = 0; j < n; ++j) b[j] = a[j] * i;
  }
}

// Loops inside may have more to share out.
void FewIterations(const double* __restrict a, double* __restrict b, double* __restrict part, long m) {
  // not partitioned: iterations may share elements of part: one writes (line +2) what another writes (line
  // +2)
  for (int i = 0; i < 3; ++i) {
    // loop partitioned: a (read), part (written)
    for (long j = 0; j < m; ++j) part[j] = a[i * m + j] * 2;
    // loop partitioned: part (read), b (written)
    for (long j = 0; j < m; ++j) b[i * m + j] = part[m - 1 - j];
  }
}

int SumBesideScratch(const int* __restrict a, int* __restrict part, int* __restrict b, int n, long m) {
  int sum = 0;
  // not partitioned: it sums up over its iterations, around a partitioned loop
  for (int i = 0; i < n; ++i) {
    // loop partitioned: a (read), part (written)
    for (long j = 0; j < m; ++j) part[j] = a[i * m + j] * 2;
    // loop partitioned: part (read), b (written)
    for (long j = 0; j < m; ++j) b[i * m + j] = part[m - 1 - j];
    sum += a[i];
  }
  return sum;
}

// Members are read before the nest that does not change them.
void MembersOfSteps(Matrix& a, Matrix& b, int steps) {
  // not partitioned: it reads through a pointer that changes (line +5)
  for (int t = 0; t < steps; ++t) {
    // loop partitioned: *a (read), *b (written); columns of an iteration on the device; checked before each
    // run: -a.columns >= 0 or a.columns >= 1, -a.rows >= -2 or a.columns >= 1, a.rows >= 3, -a.columns +
    // b.columns >= 0, *a apart from *b
    for (int i = 1; i < a.rows - 1; ++i) {
      for (int j = 0; j < a.columns; ++j) b.at(i, j) = a.at(i - 1, j) + a.at(i + 1, j);
    }
    std::swap(a.data, b.data);
  }
}

double* global_pointer;
Matrix global_matrix;

void GlobalPointer(int n) {
  // loop partitioned: global_pointer (written)
  for (int i = 0; i < n; ++i) global_pointer[i] = 16;
}

void GlobalMatrix(int n) {
  // loop partitioned: global_matrix (written)
  for (int i = 0; i < n; ++i) global_matrix.data[i] = 17;
}

void Rows(double** a, int n, int m) {
  // not partitioned: it reads through a pointer that changes (line +2)
  for (int i = 0; i < n; ++i) {
    // loop partitioned: a[...] (read, written)
    for (int j = 0; j < m; ++j) a[i][j] *= 3;
  }
}

// Other orders.

void Factorisation(double* a, int n) {
  // loop reordered: j (line +2) and k (line +4) are counted outermost; checked before each run: n >= 2
  // loop partitioned: a (read, written); checked before each run: time >= 0 or -time >= 1, time - n >= -1
  // loop partitioned: a (read, written); columns of an iteration on the device; checked before each run:
  // time >= 0 or -time >= 1, time - n >= -2
  for (int i = 0; i < n; ++i) {
    // not partitioned: iterations may share elements of a: one writes (line +2) what another reads (line +2)
    for (int j = 0; j < i; ++j) {
      // not partitioned: a scalar is carried from iteration to iteration
      for (int k = 0; k < j; ++k) a[i * n + j] -= a[i * n + k] * a[j * n + k];
      a[i * n + j] *= 0.5;
    }
  }
}

// Annotations.

__attribute__((annotate("fusion_sequential"))) void LeftAlone(double* a, int n) {
  // not partitioned: it is annotated fusion_sequential
  for (int i = 0; i < n; ++i) {
    // not partitioned: it is annotated fusion_sequential
    for (int j = 0; j < n; ++j) a[i * n + j] = 13;
  }
}

__attribute__((annotate("fusion_sequential"), always_inline)) static inline void LeftAloneInside(double* a,
                                                                                                 int n) {
  // not partitioned: it is annotated fusion_sequential
  for (int i = 0; i < n; ++i) a[i] = 14;
}

void CallsLeftAlone(double* a, int n) {
  // not partitioned: it calls LeftAloneInside(double*, int) (line +0)
  for (int i = 0; i < n; ++i) LeftAloneInside(a + i * n, n);
}

__attribute__((annotate("something else"))) void AnnotatedOtherwise(double* a, int n) {
  // loop partitioned: a (written)
  for (int i = 0; i < n; ++i) a[i] = 15;
}
