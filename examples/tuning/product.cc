// A blocked product of matrices whose tiles and order of loops are tuned while the program runs.
//
//   tuning_product [--server HOST:PORT | --server embedded] [--data DIR] [--seconds S] [--size N]
//
// Without --server as fusion_tuner_create does: $FUSION_SERVER, else the configuration of fusion-client, else
// one in this process.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "client/tuner/fusion_tuner.hpp"

namespace {

using Clock = std::chrono::steady_clock;
using fusion::tuner::Values;

struct Blocking {
  int64_t tile_rows, tile_columns, tile_inner;
  size_t order;  // of kOrders
};
const std::vector<std::string> kOrders = {"ijk", "ikj", "kij"};

struct Matrices {
  explicit Matrices(int64_t n) : n(n), a(n * n), b(n * n), c(n * n) {
    for (int64_t i = 0; i < n * n; ++i) {
      a[i] = static_cast<float>(i % 7) - 3;
      b[i] = static_cast<float>(i % 5) - 2;
    }
  }
  int64_t n;
  std::vector<float> a, b, c;
};

// One tile of c += a * b; the innermost loop is the last letter of the order.
void Tile(Matrices& m, size_t order, int64_t i0, int64_t i1, int64_t j0, int64_t j1, int64_t k0, int64_t k1) {
  const int64_t n = m.n;
  switch (order) {
    case 0:
      for (int64_t i = i0; i < i1; ++i)
        for (int64_t j = j0; j < j1; ++j) {
          float sum = m.c[i * n + j];
          for (int64_t k = k0; k < k1; ++k) sum += m.a[i * n + k] * m.b[k * n + j];
          m.c[i * n + j] = sum;
        }
      break;
    case 1:
      for (int64_t i = i0; i < i1; ++i)
        for (int64_t k = k0; k < k1; ++k) {
          const float factor = m.a[i * n + k];
          for (int64_t j = j0; j < j1; ++j) m.c[i * n + j] += factor * m.b[k * n + j];
        }
      break;
    default:
      for (int64_t k = k0; k < k1; ++k)
        for (int64_t i = i0; i < i1; ++i) {
          const float factor = m.a[i * n + k];
          for (int64_t j = j0; j < j1; ++j) m.c[i * n + j] += factor * m.b[k * n + j];
        }
  }
}

void Product(Matrices& m, const Blocking& blocking) {
  std::fill(m.c.begin(), m.c.end(), 0.0f);
  for (int64_t i = 0; i < m.n; i += blocking.tile_rows)
    for (int64_t k = 0; k < m.n; k += blocking.tile_inner)
      for (int64_t j = 0; j < m.n; j += blocking.tile_columns)
        Tile(m, blocking.order, i, std::min(m.n, i + blocking.tile_rows), j,
             std::min(m.n, j + blocking.tile_columns), k, std::min(m.n, k + blocking.tile_inner));
}

Blocking BlockingOf(const Values& values) {
  return {values.Integer(0), values.Integer(1), values.Integer(2), values.Index(3)};
}

// Milliseconds, the shortest of some runs.
double TimeOf(Matrices& matrices, const Blocking& blocking) {
  double best = 1e300;
  for (int run = 0; run < 7; ++run) {
    const auto start = Clock::now();
    Product(matrices, blocking);
    best = std::min(best, std::chrono::duration<double, std::milli>(Clock::now() - start).count());
  }
  return best;
}

void Print(const char* what, const Blocking& blocking, double milliseconds) {
  std::printf("%-8s tiles %lld x %lld x %lld, order %s: %.3f ms\n", what,
              static_cast<long long>(blocking.tile_rows), static_cast<long long>(blocking.tile_columns),
              static_cast<long long>(blocking.tile_inner), kOrders[blocking.order].c_str(), milliseconds);
}

int Tune(const fusion::tuner::TunerOptions& options, double seconds, int64_t n) {
  fusion::tuner::Tuner tuner(options);
  const Blocking defaults{32, 32, 32, 0};
  fusion::tuner::SectionOptions section_options;
  section_options.sizes = {{"n", n}};
  // Three tiles must not take more than a usual second-level cache.
  section_options.constraints = {
      "tile_rows * tile_columns + tile_rows * tile_inner + tile_inner * tile_columns <= 262144"};
  const fusion::tuner::Section section =
      tuner.Declare("product",
                    {fusion::tuner::PowerOfTwo("tile_rows", 8, 512).Default(defaults.tile_rows),
                     fusion::tuner::PowerOfTwo("tile_columns", 8, 512).Default(defaults.tile_columns),
                     fusion::tuner::PowerOfTwo("tile_inner", 8, 512).Default(defaults.tile_inner),
                     fusion::tuner::Enumeration("order", kOrders)},
                    section_options);

  Matrices matrices(n);
  Product(matrices, defaults);
  const std::vector<float> expected = matrices.c;
  long runs = 0;
  for (const auto end = Clock::now() + std::chrono::duration<double>(seconds); Clock::now() < end; ++runs)
    section.Measure([&](const Values& values) { Product(matrices, BlockingOf(values)); });
  // Sums of small integers: exact in any order.
  if (matrices.c != expected) {
    std::fprintf(stderr, "error: the product is wrong\n");
    return 1;
  }

  const std::vector<fusion_tuner_value> values = section.Best(4);
  const Blocking best = BlockingOf(Values(values.data()));
  const fusion::tuner::Status flushed = tuner.Flush(2);
  if (!flushed.ok()) std::fprintf(stderr, "note: %s\n", flushed.message().c_str());
  std::printf("runs     %ld, of which %llu explored; %s\n", runs,
              static_cast<unsigned long long>(tuner.Counters().explored),
              section.Converged() ? "converged" : "the search goes on at the next start");
  Print("default", defaults, TimeOf(matrices, defaults));
  Print("tuned", best, TimeOf(matrices, best));
  return 0;
}

int Usage() {
  std::fprintf(stderr,
               "usage: tuning_product [--server HOST:PORT|embedded] [--data DIR] [--seconds S] [--size N]\n");
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  fusion::tuner::TunerOptions options;
  double seconds = 5;
  int64_t n = 256;
  for (int i = 1; i < argc; i += 2) {
    if (i + 1 == argc) return Usage();
    const std::string name = argv[i];
    if (name == "--server")
      options.server = argv[i + 1];
    else if (name == "--data")
      options.data_directory = argv[i + 1];
    else if (name == "--seconds")
      seconds = std::atof(argv[i + 1]);
    else if (name == "--size")
      n = std::atoll(argv[i + 1]);
    else
      return Usage();
  }
  if (!(seconds > 0) || n < 8 || n > 4096) return Usage();
  try {
    return Tune(options, seconds, n);
  } catch (const fusion::tuner::Error& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 1;
  }
}
