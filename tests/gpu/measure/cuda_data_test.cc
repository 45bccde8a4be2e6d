// CudaBackend's data operations agree with the host's, bit for bit where that is promised.
#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "library/verification/input_rules.h"
#include "tests/gpu/first_cuda_device.h"
#include "worker/measure/host_data.h"

namespace fusion {
namespace {

constexpr int64_t kCount = 1000003;

class CudaDataTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const absl::StatusOr<std::string> uuid = FirstCudaDevice();
    if (!uuid.ok()) GTEST_SKIP() << "SKIP: " << uuid.status().message();
    absl::StatusOr<std::unique_ptr<ExecutionBackend>> backend = CudaBackend::Open(*uuid);
    ASSERT_TRUE(backend.ok()) << backend.status();
    backend_ = std::move(*backend);
  }
  template <class T>
  DeviceAddress Upload(const std::vector<T>& data) {
    const int64_t bytes = static_cast<int64_t>(data.size() * sizeof(T));
    const DeviceAddress address = backend_->Allocate(bytes).value();
    EXPECT_TRUE(backend_->CopyIn(address, data.data(), bytes).ok());
    return address;
  }
  std::unique_ptr<ExecutionBackend> backend_;
};

// Of every kind of values and every pattern, as rows of 1000 entries.
std::vector<InputRule> Rules() {
  std::vector<InputRule> rules;
  for (int kind = v1::InputValues::DEFAULT; kind <= v1::InputValues::UNIT_ROWS; ++kind)
    for (int pattern = 0; pattern <= static_cast<int>(DataPattern::Kind::kClass); ++pattern) {
      v1::Buffer input;
      input.set_count(kCount);
      input.set_data_type(v1::F32);
      input.set_rows(kCount / 1000);
      input.set_columns(997);
      input.set_row_stride(1000);
      input.mutable_values()->set_kind(static_cast<v1::InputValues::Kind>(kind));
      rules.push_back(RuleOf(input, {.kind = static_cast<DataPattern::Kind>(pattern),
                                     .small = pattern % 2 == 0,
                                     .step = 64,
                                     .phase = 5}));
    }
  return rules;
}

TEST_F(CudaDataTest, PerturbAndExcuseAreTheHosts) {
  std::vector<double> entries(kCount), excused(kCount);
  FillEntries(entries.data(), v1::F64, kCount, Rules()[0], 5);
  const std::vector<double> before = entries;
  const DeviceAddress device_entries = Upload(entries), device_before = Upload(before),
                      device_excused = backend_->Allocate(kCount * 8).value();
  PerturbEntries(entries.data(), kCount, 1e-6, 3);
  ExcuseEntries(excused.data(), before.data(), entries.data(), v1::F64, kCount, 4, /*is_first=*/true);
  ASSERT_TRUE(backend_->Perturb(device_entries, kCount, 1e-6, 3).ok());
  ASSERT_TRUE(
      backend_->Excuse(device_excused, device_before, device_entries, v1::F64, kCount, 4, /*is_first=*/true)
          .ok());
  std::vector<double> found(kCount);
  ASSERT_TRUE(backend_->CopyOut(found.data(), device_excused, kCount * 8).ok());
  for (int64_t i = 0; i < kCount; ++i) ASSERT_NEAR(found[i], excused[i], 1e-15) << i;
  // Excused as far as it goes, nothing is wrong.
  EXPECT_EQ(backend_->Compare(device_entries, v1::F64, device_before, kCount, 1, device_excused)
                ->max_relative_error,
            0);
  EXPECT_GT(backend_->Compare(device_entries, v1::F64, device_before, kCount, 1, 0)->max_relative_error,
            1e-7);
}

TEST_F(CudaDataTest, FillHashAndWidenAreTheHosts) {
  for (const InputRule& rule : Rules()) {
    std::vector<float> expected(kCount), found(kCount);
    FillEntries(expected.data(), v1::F32, kCount, rule, 99);
    const DeviceAddress narrow = backend_->Allocate(kCount * 4).value(),
                        wide = backend_->Allocate(kCount * 8).value();
    ASSERT_TRUE(backend_->Fill(narrow, v1::F32, kCount, rule, 99).ok());
    ASSERT_TRUE(backend_->CopyOut(found.data(), narrow, kCount * 4).ok());
    EXPECT_EQ(found, expected);
    EXPECT_EQ(backend_->Hash(narrow, kCount * 4).value(), HashBytes(expected.data(), kCount * 4));
    ASSERT_TRUE(backend_->Widen(wide, narrow, v1::F32, kCount).ok());
    std::vector<double> widened(kCount);
    ASSERT_TRUE(backend_->CopyOut(widened.data(), wide, kCount * 8).ok());
    EXPECT_TRUE(std::equal(widened.begin(), widened.end(), expected.begin()));
  }
  std::vector<double> expected(kCount), found(kCount);
  FillEntries(expected.data(), v1::F64, kCount, Rules()[0], 7);
  const DeviceAddress data = backend_->Allocate(kCount * 8).value();
  ASSERT_TRUE(backend_->Fill(data, v1::F64, kCount, Rules()[0], 7).ok());
  ASSERT_TRUE(backend_->CopyOut(found.data(), data, kCount * 8).ok());
  EXPECT_EQ(found, expected);
}

TEST_F(CudaDataTest, CompareAndScaleAreTheHosts) {
  std::vector<double> reference(kCount);
  FillEntries(reference.data(), v1::F64, kCount, Rules()[0], 5);
  std::vector<float> output(reference.begin(), reference.end());
  const double nan = std::numeric_limits<double>::quiet_NaN(),
               infinity = std::numeric_limits<double>::infinity();
  reference[10] = nan;
  output[10] = static_cast<float>(nan);
  reference[11] = 1e39;
  output[11] = static_cast<float>(infinity);
  auto check = [&] {
    const DeviceAddress device_output = Upload(output), device_reference = Upload(reference);
    const ReferenceFigures figures = FiguresOf(MeasureScale(reference.data(), v1::F32, kCount)),
                           on_device = backend_->Figures(device_reference, v1::F32, kCount).value();
    const double scale = figures.scale;
    EXPECT_NEAR(on_device.scale, scale, 1e-12 * scale);
    EXPECT_EQ(on_device.largest, figures.largest);
    EXPECT_EQ(on_device.finite, figures.finite);
    const Comparison expected =
        CompareEntries(output.data(), v1::F32, reference.data(), kCount, scale, nullptr);
    const Comparison found =
        backend_->Compare(device_output, v1::F32, device_reference, kCount, scale, 0).value();
    EXPECT_EQ(found.worst_index, expected.worst_index);
    if (expected.max_relative_error < infinity) {
      EXPECT_NEAR(found.max_relative_error, expected.max_relative_error, 1e-15);
    } else {
      EXPECT_EQ(found.max_relative_error, infinity);
    }
    return found;
  };
  EXPECT_LT(check().max_relative_error, 1e-6);
  output[500000] += 1;
  EXPECT_EQ(check().worst_index, 500000);
  output[400000] = static_cast<float>(nan);
  output[600000] = static_cast<float>(nan);
  EXPECT_EQ(check().worst_index, 400000);
}

TEST_F(CudaDataTest, GuardsAndInspectionsAreThoseOfTheSingleCalls) {
  std::vector<double> reference(kCount);
  FillEntries(reference.data(), v1::F64, kCount, Rules()[0], 5);
  std::vector<float> output(reference.begin(), reference.end());
  output[kCount - 1] += 1;
  const DeviceAddress narrow = Upload(output), wide = Upload(reference),
                      guards = backend_->Allocate(1 << 20).value();
  // More than fit one launch, at any byte.
  std::vector<MemoryRange> zones;
  for (int i = 0; i < 200; ++i) zones.push_back({guards + 5000 * i + i % 7, 4096 + i % 5});
  ASSERT_TRUE(backend_->WriteGuards(zones).ok());
  std::vector<Inspection> inspections;
  for (const MemoryRange& zone : zones)
    inspections.push_back({.kind = Inspection::Kind::kGuard, .range = zone});
  for (int64_t bytes : {int64_t{0}, int64_t{4}, int64_t{8}, kCount * 4})
    inspections.push_back({.kind = Inspection::Kind::kHash, .range = {narrow, bytes}});
  inspections.push_back({.kind = Inspection::Kind::kHash, .range = {wide, kCount * 8}});
  for (int64_t count : {kCount, kCount - 1})
    inspections.push_back(
        {.kind = Inspection::Kind::kCompare, .range = {narrow, count * 4}, .reference = wide, .scale = 0.5});
  const auto check = [&] {
    const std::vector<uint64_t> found = backend_->Inspect(inspections).value();
    EXPECT_EQ(found, backend_->ExecutionBackend::Inspect(inspections).value());
    return found;
  };
  std::vector<uint64_t> found = check();
  EXPECT_EQ(std::vector<uint64_t>(200, 0), std::vector<uint64_t>(found.begin(), found.begin() + 200));
  EXPECT_GT(found[found.size() - 2], found.back());
  const unsigned char other[3] = {1, 2, 3};
  ASSERT_TRUE(backend_->CopyIn(zones[150].address + zones[150].bytes - 3, other, 3).ok());
  found = check();
  EXPECT_EQ(found[150], 3u);
  EXPECT_EQ(found[149] + found[151], 0u);
}

// What was freed is given again, and all of it if something else does not fit.
TEST_F(CudaDataTest, FreedMemoryIsFree) {
  const MemoryInfo before = backend_->Memory().value();
  const int64_t bytes = before.free_bytes / 64;
  const DeviceAddress first = backend_->Allocate(bytes).value();
  backend_->Free(first);
  EXPECT_GE(backend_->Memory().value().free_bytes, before.free_bytes - (int64_t{64} << 20));
  EXPECT_EQ(backend_->Allocate(bytes).value(), first);
  backend_->Free(first);
  const absl::StatusOr<DeviceAddress> most = backend_->Allocate(before.free_bytes / 100 * 99);
  ASSERT_TRUE(most.ok()) << most.status();
  backend_->Free(*most);
}

}  // namespace
}  // namespace fusion
