#include "server/model/architecture.h"

#include <gmock/gmock.h>

namespace fusion {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

TEST(ChooseArch, AKnownArchitectureIsItself) {
  ASSERT_GE(KnownCudaArchs().size(), 7u);
  for (const std::string& arch : KnownCudaArchs())
    for (v1::Target target : {v1::CUDA, v1::TARGET_AUTO}) {
      absl::StatusOr<ArchChoice> choice = ChooseArch(target, arch);
      ASSERT_TRUE(choice.ok()) << choice.status();
      EXPECT_EQ(choice->arch, arch);
      EXPECT_EQ(choice->warning, "");
    }
  for (const char* arch : {"sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120"})
    EXPECT_THAT(KnownCudaArchs(), Contains(arch));
  EXPECT_EQ(ChooseArch(v1::CUDA, "")->arch, "");
  EXPECT_EQ(ChooseArch(v1::HOST, "x86-64-avx2")->arch, "x86-64-avx2");
  EXPECT_EQ(ChooseArch(v1::TARGET_AUTO, "aarch64")->arch, "aarch64");
  EXPECT_EQ(ChooseArch(v1::HOST, "aarch64-41-d4f-5c1d2a90")->arch, "aarch64-41-d4f-5c1d2a90");
  EXPECT_FALSE(ChooseArch(v1::HOST, "aarch64-" + std::string(100, 'a')).ok());
}

TEST(ChooseArch, AnUnknownOneIsTheNearestOlderOneWithAWarning) {
  const std::pair<const char*, const char*> cases[] = {
      {"sm_76", "sm_75"},   {"sm_82", "sm_80"},   {"sm_87", "sm_86"},   {"sm_88", "sm_86"},
      {"sm_91", "sm_90"},   {"sm_99", "sm_90"},   {"sm_103", "sm_100"}, {"sm_110", "sm_100"},
      {"sm_121", "sm_120"}, {"sm_130", "sm_120"}, {"sm_999", "sm_120"}};
  for (const auto& [asked, nearest] : cases) {
    absl::StatusOr<ArchChoice> choice = ChooseArch(v1::CUDA, asked);
    ASSERT_TRUE(choice.ok()) << asked << choice.status();
    EXPECT_EQ(choice->arch, nearest) << asked;
    EXPECT_THAT(choice->warning, HasSubstr(asked));
    EXPECT_THAT(choice->warning, HasSubstr(nearest));
  }
  EXPECT_EQ(ChooseArch(v1::CUDA, "sm_90a")->arch, "sm_90");
  EXPECT_THAT(ChooseArch(v1::CUDA, "sm_90a")->warning, HasSubstr("sm_90a"));
  EXPECT_EQ(ChooseArch(v1::CUDA, "sm_103a")->arch, "sm_100");
}

TEST(ChooseArch, WhatNamesNoArchitectureIsAnErrorThatNamesThem) {
  for (const char* arch :
       {"banana", "sm_", "sm_9", "sm_0090", "sm_1000", "sm_090", "sm_90x", "sm_90aa", "sm_-90", "sm_9.0",
        "SM_90", "90", "compute_90", "sm_90 ", "gfx90a", "sm_99999999999999999999"}) {
    for (v1::Target target : {v1::CUDA, v1::TARGET_AUTO}) {
      absl::StatusOr<ArchChoice> choice = ChooseArch(target, arch);
      EXPECT_EQ(choice.status().code(), absl::StatusCode::kInvalidArgument) << arch;
      EXPECT_THAT(std::string(choice.status().message()), HasSubstr("sm_75, sm_80")) << arch;
    }
    EXPECT_FALSE(IsCudaArch(arch)) << arch;
  }
  EXPECT_THAT(std::string(ChooseArch(v1::CUDA, "sm_70").status().message()),
              HasSubstr("sm_70 is older than sm_75"));
  EXPECT_FALSE(ChooseArch(v1::CUDA, "x86-64").ok());
  EXPECT_THAT(std::string(ChooseArch(v1::HOST, "sm_90").status().message()), HasSubstr("x86-64-avx512"));
}

TEST(DescribedCudaDevice, HasTheLimitsOfItsArchitecture) {
  for (const std::string& arch : KnownCudaArchs()) {
    const DeviceDescription device = DescribedCudaDevice(arch);
    EXPECT_EQ(device.target(), v1::CUDA);
    EXPECT_EQ(device.arch(), arch);
    EXPECT_TRUE(IsCudaArch(device.arch()));
    EXPECT_THAT(device.name(), HasSubstr("described, not measured"));
    // What a block may have is what one multiprocessor has, less what the system keeps.
    EXPECT_LE(device.shared_bytes_per_block(), device.shared_bytes_per_multiprocessor());
    EXPECT_GE(device.shared_bytes_per_block(), device.shared_bytes_per_multiprocessor() - 1024);
    EXPECT_GE(device.max_threads_per_multiprocessor(), device.max_threads_per_block());
  }
  EXPECT_EQ(DescribedCudaDevice("sm_75").shared_bytes_per_block(), 64 << 10);
  EXPECT_EQ(DescribedCudaDevice("sm_86").max_threads_per_multiprocessor(), 1536);
}

TEST(F32OverF64, FollowsTheArchitecture) {
  EXPECT_EQ(F32OverF64(90), 2);
  EXPECT_EQ(F32OverF64(80), 2);
  EXPECT_EQ(F32OverF64(75), 32);
  for (int without : {86, 89, 103, 120}) EXPECT_EQ(F32OverF64(without), 64) << without;
}

TEST(DescribedCudaDevice, TheH100IsTheOneThatIsDescribedByDefault) {
  EXPECT_EQ(DescribedCudaDevice("sm_90").SerializeAsString(), DescribedDevice(v1::CUDA).SerializeAsString());
}

}  // namespace
}  // namespace fusion
