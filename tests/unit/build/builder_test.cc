#include "worker/build/builder.h"

#include <gtest/gtest.h>

namespace fusion {
namespace {

TEST(MakeBuilderTest, NeedsATarget) {
  EXPECT_EQ(MakeBuilder(v1::TARGET_AUTO).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(CompilerVersionTest, IsThatOfTheBuilderOrEmpty) {
  EXPECT_EQ(CompilerVersion(v1::TARGET_AUTO), "");
  for (v1::Target target : {v1::CUDA, v1::HOST}) {
    absl::StatusOr<std::unique_ptr<Builder>> builder = MakeBuilder(target);
    EXPECT_EQ(CompilerVersion(target), builder.ok() ? (*builder)->CompilerVersion() : "");
    EXPECT_EQ(CompilerVersion(target).empty(), !builder.ok());
  }
}

}  // namespace
}  // namespace fusion
