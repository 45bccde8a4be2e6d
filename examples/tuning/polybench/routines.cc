#include "routines.h"

#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <new>

#include "parts.h"
#include "sequential.h"

namespace polybench {
namespace {

using fusion::DevicePointers;
using fusion::PartitionArray;
using fusion::PartitionedLoop;
using fusion::PartitionedRun;

constexpr double kAlpha = 1.5, kBeta = 1.2;  // PolyBench's
constexpr int64_t kHugePage = 2 << 20;

template <class Value>
void Fill(const HostArray& array, int64_t columns, Value&& value) {
  const int64_t rows = array.count() / columns;
#pragma omp parallel for schedule(static)
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) array.data()[i * columns + j] = value(i, j);
  }
}

double Difference(const HostArray& found, const HostArray& expected) {
  double largest = 0;
#pragma omp parallel for schedule(static) reduction(max : largest)
  for (int64_t i = 0; i < found.count(); ++i) {
    const double is = found.data()[i], should = expected.data()[i];
    double difference =
        std::abs(is - should) / std::max(std::abs(should), std::numeric_limits<double>::min());
    if (!(difference >= 0)) difference = std::numeric_limits<double>::infinity();  // not a number
    if (is == should) difference = 0;
    largest = std::max(largest, difference);
  }
  return largest;
}

template <class Body>
double Seconds(Body&& body) {
  const auto start = std::chrono::steady_clock::now();
  body();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double BoundOfSums(int64_t terms) {
  return 2 * static_cast<double>(terms + 4) * std::numeric_limits<double>::epsilon();
}

class Gemm : public Routine {
 public:
  Gemm(int64_t ni, int64_t nj, int64_t nk)
      : ni_(ni), nj_(nj), nk_(nk), a_(ni * nk), b_(nk * nj), c_(ni * nj), expected_(ni * nj) {
    name = "gemm";
    sizes = {{"ni", ni}, {"nj", nj}, {"nk", nk}};
    iterations = ni;
    flops = 2.0 * static_cast<double>(ni) * static_cast<double>(nj) * static_cast<double>(nk);
    bytes_up = 8.0 * static_cast<double>(a_.count() + b_.count() + c_.count());
    bytes_down = 8.0 * static_cast<double>(c_.count());
    error_bound = BoundOfSums(nk);
    Fill(a_, nk, [&](int64_t i, int64_t k) {
      return static_cast<double>(i * (k + 1) % nk) / static_cast<double>(nk);
    });
    Fill(b_, nj, [&](int64_t k, int64_t j) {
      return static_cast<double>(k * (j + 2) % nj) / static_cast<double>(nj);
    });
    Restore(c_);
  }
  void RestoreOutputs() override { Restore(c_); }
  double RunSequential() override {
    Restore(expected_);
    return Seconds([&] {
      sequential_gemm(static_cast<int>(ni_), static_cast<int>(nj_), static_cast<int>(nk_), kAlpha, kBeta,
                      expected_.data(), a_.data(), b_.data());
    });
  }
  void AddTo(PartitionedLoop& loop) override {
    in_a_ = loop.AddArray(PartitionArray::ReadRows(a_.data(), ni_, nk_));
    in_b_ = loop.AddArray(PartitionArray::ReadWhole(b_.data(), nk_ * nj_));
    out_c_ = loop.AddArray(PartitionArray::ReadWriteRows(c_.data(), ni_, nj_));
  }
  PartitionedRun Run(PartitionedLoop& loop) override {
    const auto product = [&](const double* a, const double* b, double* c) {
      return Product{nj_, nk_, kAlpha, kBeta, a, nk_, b, nj_, c, nj_, /*symmetric=*/false};
    };
    loop.MarkChanged(in_b_);
    return fusion::partitioned_for(
        loop, ni_,
        [&](int64_t begin, int64_t end) {
          MultiplyOnHost(begin, end, product(a_.data(), b_.data(), c_.data()));
        },
        [&](cudaStream_t stream, int64_t begin, int64_t end, const DevicePointers& on_device) {
          MultiplyOnDevice(stream, begin, end,
                           product(on_device.Get<double>(in_a_), on_device.Get<double>(in_b_),
                                   on_device.Get<double>(out_c_)));
          return std::string();
        });
  }
  double LargestError() const override { return Difference(c_, expected_); }

 private:
  void Restore(const HostArray& c) {
    Fill(c, nj_, [&](int64_t i, int64_t j) {
      return static_cast<double>((i * j + 1) % ni_) / static_cast<double>(ni_);
    });
  }
  const int64_t ni_, nj_, nk_;
  HostArray a_, b_, c_, expected_;
  int in_a_ = 0, in_b_ = 0, out_c_ = 0;
};

class Gesummv : public Routine {
 public:
  explicit Gesummv(int64_t n)
      : n_(n), a_(n * n), b_(n * n), x_(n), tmp_(n), y_(n), expected_tmp_(n), expected_y_(n) {
    name = "gesummv";
    sizes = {{"n", n}};
    iterations = n;
    flops = 4.0 * static_cast<double>(n) * static_cast<double>(n);
    bytes_up = 8.0 * static_cast<double>(2 * a_.count() + n);
    bytes_down = 16.0 * static_cast<double>(n);
    error_bound = BoundOfSums(n);
    Fill(a_, n,
         [&](int64_t i, int64_t j) { return static_cast<double>((i * j + 1) % n) / static_cast<double>(n); });
    Fill(b_, n,
         [&](int64_t i, int64_t j) { return static_cast<double>((i * j + 2) % n) / static_cast<double>(n); });
    Fill(x_, 1, [&](int64_t i, int64_t) { return static_cast<double>(i % n) / static_cast<double>(n); });
    RestoreOutputs();
  }
  void RestoreOutputs() override {
    const double unset = std::numeric_limits<double>::quiet_NaN();
    for (const HostArray* array : {&tmp_, &y_}) Fill(*array, 1, [&](int64_t, int64_t) { return unset; });
  }
  double RunSequential() override {
    return Seconds([&] {
      sequential_gesummv(static_cast<int>(n_), kAlpha, kBeta, a_.data(), b_.data(), expected_tmp_.data(),
                         x_.data(), expected_y_.data());
    });
  }
  void AddTo(PartitionedLoop& loop) override {
    in_a_ = loop.AddArray(PartitionArray::ReadRows(a_.data(), n_, n_));
    in_b_ = loop.AddArray(PartitionArray::ReadRows(b_.data(), n_, n_));
    in_x_ = loop.AddArray(PartitionArray::ReadWhole(x_.data(), n_));
    out_tmp_ = loop.AddArray(PartitionArray::WriteRows(tmp_.data(), n_, 1));
    out_y_ = loop.AddArray(PartitionArray::WriteRows(y_.data(), n_, 1));
  }
  PartitionedRun Run(PartitionedLoop& loop) override {
    loop.MarkChanged(in_x_);
    return fusion::partitioned_for(
        loop, n_,
        [&](int64_t begin, int64_t end) {
          SumRowsOnHost(begin, end,
                        {n_, kAlpha, kBeta, a_.data(), b_.data(), x_.data(), tmp_.data(), y_.data()});
        },
        [&](cudaStream_t stream, int64_t begin, int64_t end, const DevicePointers& on_device) {
          SumRowsOnDevice(
              stream, begin, end,
              {n_, kAlpha, kBeta, on_device.Get<double>(in_a_), on_device.Get<double>(in_b_),
               on_device.Get<double>(in_x_), on_device.Get<double>(out_tmp_), on_device.Get<double>(out_y_)});
          return std::string();
        });
  }
  double LargestError() const override {
    return std::max(Difference(tmp_, expected_tmp_), Difference(y_, expected_y_));
  }

 private:
  const int64_t n_;
  HostArray a_, b_, x_, tmp_, y_, expected_tmp_, expected_y_;
  int in_a_ = 0, in_b_ = 0, in_x_ = 0, out_tmp_ = 0, out_y_ = 0;
};

class Syrk : public Routine {
 public:
  Syrk(int64_t n, int64_t m) : n_(n), m_(m), a_(n * m), c_(n * n), expected_(n * n) {
    name = "syrk";
    sizes = {{"n", n}, {"m", m}};
    iterations = n;
    const double triangle = 0.5 * static_cast<double>(n) * static_cast<double>(n + 1);
    flops = 2 * triangle * static_cast<double>(m);
    bytes_up = 8 * (static_cast<double>(a_.count()) + triangle);
    bytes_down = 8 * triangle;
    error_bound = BoundOfSums(m);
    Fill(a_, m,
         [&](int64_t i, int64_t j) { return static_cast<double>((i * j + 1) % n) / static_cast<double>(n); });
    Restore(c_);
  }
  void RestoreOutputs() override { Restore(c_); }
  double RunSequential() override {
    Restore(expected_);
    return Seconds([&] {
      sequential_syrk(static_cast<int>(n_), static_cast<int>(m_), kAlpha, kBeta, expected_.data(), a_.data());
    });
  }
  void AddTo(PartitionedLoop& loop) override {
    // Row i of c needs rows 0 to i of a: those of the device's part, as it has the first iterations.
    in_a_ = loop.AddArray(PartitionArray::ReadRows(a_.data(), n_, m_));
    out_c_ = loop.AddArray(PartitionArray::ReadWriteRows(c_.data(), n_, n_).LowerTriangle());
  }
  PartitionedRun Run(PartitionedLoop& loop) override {
    const auto product = [&](const double* a, double* c) {
      return Product{n_, m_, kAlpha, kBeta, a, m_, nullptr, 0, c, n_, /*symmetric=*/true};
    };
    return fusion::partitioned_for(
        loop, n_,
        [&](int64_t begin, int64_t end) { MultiplyOnHost(begin, end, product(a_.data(), c_.data())); },
        [&](cudaStream_t stream, int64_t begin, int64_t end, const DevicePointers& on_device) {
          MultiplyOnDevice(stream, begin, end,
                           product(on_device.Get<double>(in_a_), on_device.Get<double>(out_c_)));
          return std::string();
        });
  }
  double LargestError() const override { return Difference(c_, expected_); }

 private:
  void Restore(const HostArray& c) {
    Fill(c, n_, [&](int64_t i, int64_t j) {
      return static_cast<double>((i * j + 2) % m_) / static_cast<double>(m_);
    });
  }
  const int64_t n_, m_;
  HostArray a_, c_, expected_;
  int in_a_ = 0, out_c_ = 0;
};

}  // namespace

HostArray::HostArray(int64_t count) : count_(count) {
  const auto bytes = static_cast<size_t>((count * 8 + kHugePage - 1) / kHugePage * kHugePage);
  data_.reset(static_cast<double*>(std::aligned_alloc(kHugePage, bytes)));
  if (data_ == nullptr) throw std::bad_alloc();
  madvise(data_.get(), bytes, MADV_HUGEPAGE);  // a wish
}

void HostArray::Free::operator()(double* data) const { std::free(data); }

std::unique_ptr<Routine> Routine::Make(const std::string& name, const std::vector<int64_t>& sizes) {
  // PolyBench's loops count in int, and so do the products of indices in its inputs.
  for (int64_t size : sizes) {
    if (size < 1 || size > 1 << 22) return nullptr;
  }
  if (name == "gemm" && sizes.size() == 3) return std::make_unique<Gemm>(sizes[0], sizes[1], sizes[2]);
  if (name == "gesummv" && sizes.size() == 1) return std::make_unique<Gesummv>(sizes[0]);
  if (name == "syrk" && sizes.size() == 2) return std::make_unique<Syrk>(sizes[0], sizes[1]);
  return nullptr;
}

}  // namespace polybench
