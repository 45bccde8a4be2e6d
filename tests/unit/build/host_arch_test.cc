#include "worker/build/host_arch.h"

#include <gmock/gmock.h>

#include <memory>
#include <set>
#include <string>

#include "worker/build/host_builder.h"

namespace fusion {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string Processor(int number, const std::string& part, const std::string& features,
                      const std::string& variant = "0x0") {
  return "processor\t: " + std::to_string(number) + "\nBogoMIPS\t: 2000.00\nFeatures\t: " + features +
         "\nCPU implementer\t: 0x41\nCPU architecture: 8\nCPU variant\t: " + variant +
         "\nCPU part\t: " + part + "\nCPU revision\t: 1\n\n";
}

TEST(NativeArchTest, MachinesOfOneKindHaveOneName) {
  const std::string two =
      Processor(0, "0xd4f", "fp asimd sve sve2") + Processor(1, "0xd4f", "fp asimd sve sve2");
  EXPECT_THAT(NativeArch("aarch64", two), StartsWith("aarch64-41-d4f-"));
  EXPECT_EQ(NativeArch("aarch64", two), NativeArch("aarch64", Processor(0, "0xd4f", "fp asimd sve sve2")));
  // Clocks and revisions change no instruction.
  std::string other_clock = two;
  other_clock.replace(other_clock.find("2000.00"), 7, "48.00");
  EXPECT_EQ(NativeArch("aarch64", other_clock), NativeArch("aarch64", two));
}

TEST(NativeArchTest, WhatNativeMakesCodeOfTellsMachinesApart) {
  const std::string neoverse_n1 = Processor(0, "0xd0c", "fp asimd"),
                    neoverse_v2 = Processor(0, "0xd4f", "fp asimd"),
                    with_sve = Processor(0, "0xd0c", "fp asimd sve"),
                    other_variant = Processor(0, "0xd0c", "fp asimd", "0x3"),
                    two_kinds = neoverse_n1 + Processor(1, "0xd05", "fp asimd");
  std::set<std::string> names;
  for (const std::string& cpuinfo : {neoverse_n1, neoverse_v2, with_sve, other_variant, two_kinds})
    names.insert(NativeArch("aarch64", cpuinfo));
  EXPECT_EQ(names.size(), 5u);
  EXPECT_THAT(NativeArch("aarch64", two_kinds), StartsWith("aarch64-41-d05+41-d0c-"));
  EXPECT_NE(NativeArch("riscv64", "processor : 0\nisa : rv64imafdcv\n"),
            NativeArch("riscv64", "processor : 0\nisa : rv64imafdc\n"));
}

TEST(NativeArchTest, ItsCodeIsBuiltWithNative) {
  EXPECT_EQ(HostArchOption("aarch64-41-d4f-5c1d2a90"), "-mcpu=native");
  EXPECT_EQ(HostArchOption("riscv64-0a1b2c3d"), "-march=native");
  EXPECT_TRUE(IsNativeArch("aarch64-41-d4f-5c1d2a90"));
  EXPECT_FALSE(IsNativeArch("x86-64-avx512"));
}

TEST(NativeArchTest, AnotherMachineDoesNotBuildForIt) {
  absl::StatusOr<std::unique_ptr<Builder>> builder = HostBuilder::Create();
  if (!builder.ok()) GTEST_SKIP() << "SKIP: " << builder.status().message();
  v1::BuildTask task;
  task.set_target(v1::HOST);
  task.set_arch("aarch64-41-d4f-00000000");
  task.set_source("int x;");
  const BuildOutput output = (*builder)->Build(task);
  EXPECT_FALSE(output.has_outcome()) << "it is no fault of the source";
  EXPECT_THAT(output.result.log(), HasSubstr("aarch64-41-d4f-00000000"));
}

}  // namespace
}  // namespace fusion
