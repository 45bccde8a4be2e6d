#include "server/target/target.h"

#include <gmock/gmock.h>

namespace fusion {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::SizeIs;

std::vector<std::string> CudaArchs() {
  std::vector<std::string> archs;
  for (const auto& architecture : TargetOf(v1::CUDA).profile().architectures())
    archs.push_back(architecture.device().arch());
  return archs;
}

TEST(Targets, AreThoseOfTheProtocolInItsOrder) {
  ASSERT_THAT(Targets(), SizeIs(v1::Target_ARRAYSIZE - 1)) << "all but TARGET_AUTO";
  for (size_t i = 0; i < Targets().size(); ++i) EXPECT_EQ(Targets()[i]->id(), static_cast<v1::Target>(i + 1));
  for (const Target* target : Targets()) EXPECT_EQ(&TargetOf(target->id()), target);
  EXPECT_EQ(TargetOf(v1::TARGET_AUTO).id(), v1::HOST);
}

// Every number says where it comes from, and when.
TEST(Profiles, HaveASourceAndADateForEachNumber) {
  const auto is_date = [](const std::string& date) {
    return date.size() == 7 && date[4] == '-' && date >= "2026-01" && date <= "2099-12";
  };
  for (const Target* target : Targets()) {
    const v1::TargetProfile& profile = target->profile();
    const google::protobuf::Reflection& fields = *profile.GetReflection();
    std::vector<const google::protobuf::FieldDescriptor*> set;
    fields.ListFields(profile, &set);
    int figures = 0;
    for (const google::protobuf::FieldDescriptor* field : set) {
      if (field->message_type() != v1::Figure::descriptor()) continue;
      const auto& figure = static_cast<const v1::Figure&>(fields.GetMessage(profile, field));
      ++figures;
      EXPECT_GT(figure.value(), 0) << field->full_name();
      EXPECT_GT(figure.source().size(), 5u) << field->full_name();
      EXPECT_TRUE(is_date(figure.date())) << field->full_name();
    }
    EXPECT_GT(figures, 5);
    EXPECT_GT(profile.architectures_size(), 0);
    for (const auto& architecture : profile.architectures()) {
      EXPECT_GT(architecture.f32_over_f64(), 0) << architecture.device().arch();
      EXPECT_GT(architecture.source().size(), 5u) << architecture.device().arch();
      EXPECT_TRUE(is_date(architecture.date())) << architecture.device().arch();
      EXPECT_EQ(architecture.device().target(), target->id());
    }
  }
}

TEST(ChooseArch, AKnownArchitectureIsItself) {
  ASSERT_GE(CudaArchs().size(), 7u);
  for (const std::string& arch : CudaArchs())
    for (v1::Target target : {v1::CUDA, v1::TARGET_AUTO}) {
      absl::StatusOr<ArchChoice> choice = ChooseArch(target, arch);
      ASSERT_TRUE(choice.ok()) << choice.status();
      EXPECT_EQ(choice->arch, arch);
      EXPECT_EQ(choice->warning, "");
    }
  for (const char* arch : {"sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120"})
    EXPECT_THAT(CudaArchs(), Contains(arch));
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
  }
  EXPECT_THAT(std::string(ChooseArch(v1::CUDA, "sm_70").status().message()),
              HasSubstr("sm_70 is older than sm_75"));
  EXPECT_FALSE(ChooseArch(v1::CUDA, "x86-64").ok());
  EXPECT_THAT(std::string(ChooseArch(v1::HOST, "sm_90").status().message()), HasSubstr("x86-64-avx512"));
}

TEST(DescribedDevice, HasTheLimitsOfItsArchitecture) {
  for (const std::string& arch : CudaArchs()) {
    const DeviceDescription device = DescribedDevice(v1::CUDA, arch);
    EXPECT_EQ(device.target(), v1::CUDA);
    EXPECT_EQ(device.arch(), arch);
    EXPECT_THAT(device.name(), HasSubstr("described, not measured"));
    // A block may have the shared memory of its multiprocessor, less what the system keeps.
    EXPECT_LE(device.shared_bytes_per_block(), device.shared_bytes_per_multiprocessor());
    EXPECT_GE(device.shared_bytes_per_block(), device.shared_bytes_per_multiprocessor() - 1024);
    EXPECT_GE(device.max_threads_per_multiprocessor(), device.max_threads_per_block());
  }
  EXPECT_EQ(DescribedDevice(v1::CUDA, "sm_75").shared_bytes_per_block(), 64 << 10);
  EXPECT_EQ(DescribedDevice(v1::CUDA, "sm_86").max_threads_per_multiprocessor(), 1536);
}

TEST(DeviceFeatures, FollowTheArchitecture) {
  const auto features = [](const std::string& arch) {
    return TargetOf(v1::CUDA).Features(DescribedDevice(v1::CUDA, arch));
  };
  for (const char* arch : {"sm_80", "sm_90"}) EXPECT_EQ(features(arch).f32_over_f64, 2) << arch;
  EXPECT_EQ(features("sm_75").f32_over_f64, 32);
  for (const char* arch : {"sm_86", "sm_89", "sm_103", "sm_120"})
    EXPECT_EQ(features(arch).f32_over_f64, 64) << arch;
  EXPECT_FALSE(features("sm_75").asynchronous_copies);
  EXPECT_TRUE(features("sm_80").asynchronous_copies);
  EXPECT_TRUE(features("sm_80").f64_matrix_units);
  EXPECT_FALSE(features("sm_86").f64_matrix_units);
  EXPECT_FALSE(features("sm_89").clusters);
  EXPECT_TRUE(features("sm_90").clusters);
  EXPECT_FALSE(TargetOf(v1::HOST).Features(DescribedDevice(v1::HOST)).asynchronous_copies);
}

TEST(DescribedDevice, TheH100IsTheOneThatIsDescribedByDefault) {
  EXPECT_EQ(DescribedDevice(v1::CUDA, "sm_90").SerializeAsString(),
            DescribedDevice(v1::CUDA).SerializeAsString());
}

}  // namespace
}  // namespace fusion
