#include "worker/build/build_options.h"

#include <gtest/gtest.h>

#include "absl/strings/match.h"

namespace fusion {
namespace {

v1::BuildTask With(std::initializer_list<const char*> options) {
  v1::BuildTask task;
  for (const char* option : options) task.add_options(option);
  return task;
}

TEST(BuildOptionsTest, WhatChangesTheCodeAloneIsAllowed) {
  EXPECT_TRUE(CheckBuildOptions(With({})).ok());
  EXPECT_TRUE(CheckBuildOptions(With({"-DANSWER=42", "-D_X", "-UY", "-O3", "--std=c++17", "-default-device",
                                      "--maxrregcount=128", "--use_fast_math"}))
                  .ok());
}

TEST(BuildOptionsTest, AllElseIsRefusedByName) {
  for (const char* option : {"",
                             "-I/etc",
                             "-I",
                             "-include",
                             "-include/etc/passwd",
                             "--pre-include=/etc/passwd",
                             "-B/tmp",
                             "-fplugin=x.so",
                             "-wrapper",
                             "@file",
                             "-o",
                             "-oout",
                             "-specs=x",
                             "-Wl,-Map=x",
                             "-Wa,-a=x",
                             "-save-temps",
                             "-MD",
                             "x.cc",
                             "-",
                             "-D",
                             "-D=1",
                             "-D1X",
                             "-DX(y",
                             "-U",
                             "--maxrregcount=",
                             "--maxrregcount=9999",
                             "--maxrregcount=1x",
                             "-O3x"}) {
    const absl::Status status = CheckBuildOptions(With({"-O2", option}));
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << option;
    EXPECT_TRUE(absl::StrContains(status.message(), option));
  }
}

}  // namespace
}  // namespace fusion
