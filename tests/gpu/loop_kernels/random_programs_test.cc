// Random loops on a GPU, in random shapes, beside the C that they were made from, bit for bit.
//
// FUSION_RANDOM_LOOPS=10000 runs more; each hundred is a test with a seed of its own, so that
// GTEST_TOTAL_SHARDS processes share them out.
#include "tests/property/loop_kernels/random_programs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "server/codegen/device_runtime.h"
#include "server/target/target.h"
#include "tests/gpu/first_cuda_device.h"
#include "tests/property/loop_kernels/host_run.h"
#include "worker/build/builder.h"

namespace fusion {
namespace {

using testing::ArrayBytes;
using testing::RandomProgram;
using testing::SharedObject;

constexpr int kTogether = 100;  // that a compiler sees at once
constexpr CType kTypes[] = {CType::kInt, CType::kFloat, CType::kInt, CType::kDouble};

int Batches() {
  const char* asked = std::getenv("FUSION_RANDOM_LOOPS");
  return asked == nullptr ? 2 : std::max(1, std::atoi(asked) / kTogether);
}

std::string CudaSource(const LoopCode& code) {
  std::string source;
  for (const LoopKernel& kernel : code.kernels) source += TargetOf(v1::CUDA).Print(kernel.kernel);
  return source;
}

// The device and the compiler that all batches of the process use, or why there is none.
class Device {
 public:
  static absl::StatusOr<Device*> Get() {
    static const absl::StatusOr<Device*> device = Open();
    return device;
  }
  // Contracts nothing, as the C does not.
  absl::StatusOr<std::unique_ptr<LoadedBinary>> Build(const std::string& kernels) {
    v1::BuildTask task;
    task.set_target(v1::CUDA);
    task.set_arch(CudaArch(*backend_));
    task.set_source(kernels);
    task.add_options("--fmad=false");
    task.set_deadline_seconds(300);
    const BuildOutput output = builder_->Build(task);
    if (output.result.outcome() != v1::OK) return absl::InternalError(output.result.log());
    return backend_->Load(output.binary);
  }
  // Runs a program's kernels on the arrays, and brings these back.
  absl::Status Run(LoadedBinary& binary, const RandomProgram& program, ArrayBytes* arrays) {
    std::vector<uint64_t> addresses, all;
    const auto allocate = [&](int64_t bytes) -> absl::StatusOr<uint64_t> {
      FUSION_ASSIGN_OR_RETURN(all.emplace_back(), backend_->Allocate(bytes));
      return all.back();
    };
    const absl::Status done = [&]() -> absl::Status {
      for (const std::vector<char>& array : *arrays) {
        FUSION_ASSIGN_OR_RETURN(addresses.emplace_back(), allocate(static_cast<int64_t>(array.size())));
        FUSION_RETURN_IF_ERROR(
            backend_->CopyIn(addresses.back(), array.data(), static_cast<int64_t>(array.size())));
      }
      std::map<std::string, uint64_t> workspaces;
      for (const CVariable& workspace : program.code.workspaces) {
        FUSION_ASSIGN_OR_RETURN(workspaces[workspace.name],
                                allocate(8 * EntriesOf(workspace, program.sizes).value_or(0)));
      }
      std::vector<PreparedLaunch> launches;
      FUSION_RETURN_IF_ERROR(testing::ForEachCall(
          program.code, program.interface, program.sizes, addresses, workspaces,
          [&](const LoopKernel& kernel, int64_t blocks, std::vector<uint64_t> arguments) -> absl::Status {
            PreparedLaunch launch;
            FUSION_ASSIGN_OR_RETURN(launch.kernel, binary.FindKernel(kernel.kernel.name));
            launch.name = kernel.kernel.name;
            launch.grid = blocks;
            launch.threads = kernel.kernel.threads;
            launch.shared_bytes = kernel.shared_bytes;
            launch.values = std::move(arguments);
            for (uint64_t& value : launch.values) launch.arguments.push_back(&value);
            FUSION_RETURN_IF_ERROR(backend_->Prepare(launch).status());
            launches.push_back(std::move(launch));
            return absl::OkStatus();
          }));
      FUSION_RETURN_IF_ERROR(backend_->Run(launches, {}).status());
      for (size_t i = 0; i < arrays->size(); ++i)
        FUSION_RETURN_IF_ERROR(
            backend_->CopyOut((*arrays)[i].data(), addresses[i], static_cast<int64_t>((*arrays)[i].size())));
      return absl::OkStatus();
    }();
    for (uint64_t address : all) backend_->Free(address);
    return done;
  }

 private:
  static absl::StatusOr<Device*> Open() {
    FUSION_ASSIGN_OR_RETURN(const std::string uuid, FirstCudaDevice());
    auto device = std::make_unique<Device>();
    FUSION_ASSIGN_OR_RETURN(device->builder_, MakeBuilder(v1::CUDA));
    FUSION_ASSIGN_OR_RETURN(device->backend_, CudaBackend::Open(uuid));
    return device.release();  // for all tests of the process
  }
  std::unique_ptr<Builder> builder_;
  std::unique_ptr<ExecutionBackend> backend_;
};

class RandomProgramsOnGpuTest : public ::testing::TestWithParam<int> {};

TEST_P(RandomProgramsOnGpuTest, KernelsComputeWhatTheTextDoes) {
  const absl::StatusOr<Device*> device = Device::Get();
  if (!device.ok()) GTEST_SKIP() << "SKIP: " << device.status().message();
  std::mt19937 random(1000 + GetParam());
  std::vector<RandomProgram> programs;
  std::string serial, kernels = DeviceRuntime();
  for (int i = 0; i < kTogether; ++i) {
    programs.push_back(testing::MakeRandomProgram(
        random, i, {.type = kTypes[i % std::size(kTypes)], .most_iterations = 23, .most_threads = 16}));
    ASSERT_FALSE(HasFailure());
    serial +=
        testing::SerialSource(programs.back().program, programs.back().interface, absl::StrCat("serial", i));
    kernels += CudaSource(programs.back().code);
  }
  const auto c = SharedObject::Compile(serial, true);
  ASSERT_TRUE(c != nullptr);
  const absl::StatusOr<std::unique_ptr<LoadedBinary>> binary = (*device)->Build(kernels);
  ASSERT_TRUE(binary.ok()) << binary.status();
  for (int i = 0; i < kTogether; ++i) {
    const RandomProgram& one = programs[i];
    ArrayBytes expected = testing::RandomArrays(one.interface, one.sizes, i), got = expected;
    testing::RunSerial(*c, absl::StrCat("serial", i), one.interface, one.sizes, &expected);
    const absl::Status ran = (*device)->Run(**binary, one, &got);
    ASSERT_TRUE(ran.ok()) << ran << "\n" << one.text;
    for (size_t array = 0; array < expected.size(); ++array)
      ASSERT_TRUE(expected[array] == got[array])
          << one.interface.arrays[array].variable.name << " of " << one.text << "\n"
          << CudaSource(one.code);
  }
}
INSTANTIATE_TEST_SUITE_P(Hundreds, RandomProgramsOnGpuTest, ::testing::Range(0, Batches()));

}  // namespace
}  // namespace fusion
