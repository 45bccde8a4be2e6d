// Quotients and square roots as generated kernels compute them on a GPU: what fusion_math.h promises of them.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <iterator>
#include <limits>
#include <random>
#include <type_traits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "library/catalog/embedded_files.h"
#include "tests/gpu/first_cuda_device.h"
#include "worker/build/builder.h"

namespace fusion {
namespace {

constexpr long double kMostUlp = 2;

// The distance from `found` to the exact result in units of the last place of a T there. 0 where both are the
// same infinity or both are no number; beyond the largest number either it or infinity will do.
template <class T>
long double Ulps(T found, long double exact) {
  using Limits = std::numeric_limits<T>;
  constexpr long double kWrong = std::numeric_limits<long double>::infinity();
  if (std::isnan(exact) || std::isnan(found)) return std::isnan(exact) && std::isnan(found) ? 0 : kWrong;
  if (std::signbit(found) != std::signbit(exact)) return kWrong;
  if (exact == 0 || std::isinf(exact)) return found == exact ? 0 : kWrong;
  const int exponent = std::clamp(std::ilogb(exact), Limits::min_exponent - 1, Limits::max_exponent - 1);
  const long double unit = std::ldexp(1.0L, exponent - (Limits::digits - 1));
  if (std::isinf(found)) return std::abs(exact) > Limits::max() - kMostUlp * unit ? 0 : kWrong;
  return std::abs(found - exact) / unit;
}

template <class T>
class DeviceMathTest : public ::testing::Test {
 protected:
  using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;

  void SetUp() override {
    const absl::StatusOr<std::string> uuid = FirstCudaDevice();
    if (!uuid.ok()) GTEST_SKIP() << "SKIP: " << uuid.status().message();
    absl::StatusOr<std::unique_ptr<Builder>> builder = MakeBuilder(v1::CUDA);
    if (!builder.ok()) GTEST_SKIP() << "SKIP: " << builder.status().message();
    absl::StatusOr<std::unique_ptr<ExecutionBackend>> backend = CudaBackend::Open(*uuid);
    ASSERT_TRUE(backend.ok()) << backend.status();
    v1::BuildTask build;
    build.set_target(v1::CUDA);
    build.set_arch(CudaArch(**backend));
    build.set_source(absl::StrCat("#define FUSION_CUDA 1\n#define FUSION_FN __device__ __forceinline__\n",
                                  EmbeddedFiles().at("device/fusion_math.h"), "typedef ",
                                  sizeof(T) == 4 ? "float" : "double", R"( T;
extern "C" __global__ void compute(const T* x, const T* y, T* quotients, T* by, T* roots) {
  const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  quotients[i] = fu_div(x[i], y[i]);
  by[i] = fu_div_by(x[i], y[i]);
  roots[i] = fu_sqrt(x[i]);
})"));
    const BuildOutput output = (*builder)->Build(build);
    ASSERT_EQ(output.result.outcome(), v1::OK) << output.result.log();
    absl::StatusOr<std::unique_ptr<LoadedBinary>> binary = (*backend)->Load(output.binary);
    ASSERT_TRUE(binary.ok()) << binary.status();
    backend_ = *std::move(backend);
    binary_ = *std::move(binary);
  }

  // Computes for all x[i], y[i], and checks each result.
  void Check(std::vector<T> x, std::vector<T> y) {
    constexpr int kThreads = 256;
    while (x.size() % kThreads != 0) x.push_back(1), y.push_back(1);
    const int64_t bytes = static_cast<int64_t>(x.size() * sizeof(T));
    std::vector<T> results[3];  // quotients, the same by fu_div_by, roots
    PreparedLaunch launch;
    launch.kernel = binary_->FindKernel("compute").value();
    launch.name = "compute";
    launch.grid = static_cast<int64_t>(x.size()) / kThreads;
    launch.threads = kThreads;
    for (size_t i = 0; i < 2 + std::size(results); ++i)
      launch.values.push_back(backend_->Allocate(bytes).value());
    const std::vector<uint64_t> data = launch.values;
    for (uint64_t& value : launch.values) launch.arguments.push_back(&value);
    ASSERT_TRUE(backend_->CopyIn(data[0], x.data(), bytes).ok());
    ASSERT_TRUE(backend_->CopyIn(data[1], y.data(), bytes).ok());
    ASSERT_TRUE(backend_->Prepare(launch).ok());
    std::vector<PreparedLaunch> launches;
    launches.push_back(std::move(launch));
    ASSERT_TRUE(backend_->Run(launches, {}).ok());
    for (size_t i = 0; i < std::size(results); ++i) {
      results[i].resize(x.size());
      ASSERT_TRUE(backend_->CopyOut(results[i].data(), data[2 + i], bytes).ok());
    }
    for (DeviceAddress address : data) backend_->Free(address);
    for (size_t i = 0; i < x.size(); ++i) {
      const long double quotient = static_cast<long double>(x[i]) / y[i];
      ASSERT_LE(Ulps(results[0][i], quotient), kMostUlp) << x[i] << " / " << y[i] << " = " << results[0][i];
      ASSERT_LE(Ulps(results[1][i], quotient), kMostUlp)
          << x[i] << " / " << y[i] << " by = " << results[1][i];
      ASSERT_LE(Ulps(results[2][i], std::sqrt(static_cast<long double>(x[i]))), kMostUlp)
          << "sqrt(" << x[i] << ") = " << results[2][i];
    }
  }

  std::unique_ptr<ExecutionBackend> backend_;
  std::unique_ptr<LoadedBinary> binary_;  // goes before the backend
};

using Types = ::testing::Types<float, double>;
TYPED_TEST_SUITE(DeviceMathTest, Types);

TYPED_TEST(DeviceMathTest, AnyNumbers) {
  std::mt19937_64 dice(1);
  std::vector<TypeParam> x(1 << 20), y(x.size());
  for (size_t i = 0; i < x.size(); ++i) {  // all exponents, numbers below the normal ones among them
    x[i] = std::bit_cast<TypeParam>(static_cast<typename TestFixture::Bits>(dice()));
    y[i] = std::bit_cast<TypeParam>(static_cast<typename TestFixture::Bits>(dice()));
  }
  this->Check(x, y);
}

TYPED_TEST(DeviceMathTest, UsualNumbers) {
  std::mt19937_64 dice(2);
  std::uniform_real_distribution<TypeParam> numbers(0.01, 100);
  std::vector<TypeParam> x(1 << 20), y(x.size());
  for (size_t i = 0; i < x.size(); ++i) x[i] = numbers(dice), y[i] = numbers(dice);
  this->Check(x, y);
}

TYPED_TEST(DeviceMathTest, ZerosInfinitiesNaNAndTheEndsOfTheRange) {
  using Limits = std::numeric_limits<TypeParam>;
  const TypeParam largest_power = std::ldexp(TypeParam{1}, Limits::max_exponent - 1);
  const TypeParam some[] = {0,
                            1,
                            3,
                            Limits::infinity(),
                            Limits::quiet_NaN(),
                            Limits::max(),
                            Limits::min(),
                            Limits::denorm_min(),
                            3 * Limits::denorm_min(),
                            Limits::min() / 3,
                            largest_power,
                            largest_power / 2,
                            largest_power / 3};
  std::vector<TypeParam> x, y;
  for (TypeParam a : some)
    for (TypeParam b : some)
      for (int signs = 0; signs < 4; ++signs)
        x.push_back(signs & 1 ? -a : a), y.push_back(signs & 2 ? -b : b);
  this->Check(x, y);
}

}  // namespace
}  // namespace fusion
