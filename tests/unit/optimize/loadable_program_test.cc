#include "server/optimize/loadable_program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "google/protobuf/util/json_util.h"
#include "tests/folders.h"

namespace fusion {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// z = w - a*v; r = z'*u: two kernels of one binary, one of another. The loader of tests/bench/peers reads the
// same file.
std::string SampleJson() {
  std::ifstream file(testing::SourceFolder() + "/tests/bench/peers/testdata/program.json");
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

v1::LoadableProgram Sample() {
  v1::LoadableProgram program;
  EXPECT_TRUE(google::protobuf::util::JsonStringToMessage(SampleJson(), &program).ok());
  return program;
}

TEST(LoadableProgram, WritesProgramAndEachBinaryOnce) {
  const v1::LoadableProgram program = Sample();
  ASSERT_EQ(program.program().launches_size(), 3);
  v1::Artifact artifact;
  std::vector<std::string> read;
  auto status = AddLoadableFiles(
      program,
      [&](const std::string& digest) -> absl::StatusOr<std::string> {
        read.push_back(digest);
        return "code of " + digest;
      },
      &artifact);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_THAT(read, ElementsAre("sha256:aa11", "sha256:bb22"));
  ASSERT_EQ(artifact.files_size(), 3);
  EXPECT_EQ(artifact.files(0).path(), "binary/program.json");
  EXPECT_EQ(artifact.files(1).path(), "binary/aa11.cubin");
  EXPECT_EQ(artifact.files(1).content(), "code of sha256:aa11");
  EXPECT_EQ(artifact.files(2).path(), "binary/bb22.cubin");
}

// The loader finds every field under its name in the .proto, also those that are 0 or false.
TEST(LoadableProgram, JsonHasAllFieldsAndReadsBack) {
  v1::Artifact artifact;
  auto status = AddLoadableFiles(
      Sample(), [](const std::string&) -> absl::StatusOr<std::string> { return ""; }, &artifact);
  ASSERT_TRUE(status.ok()) << status;
  const std::string& json = artifact.files(0).content();
  for (const char* text :
       {"\"data_type\": \"F32\"", "\"by_value\": false", "\"by_value\": true", "\"shared_bytes\": \"0\"",
        "\"scalar_buffer\": 3", "\"workspace_offset\": \"256\"", "\"workspace_bytes\": \"4096\""})
    EXPECT_THAT(json, HasSubstr(text));
  v1::LoadableProgram read;
  ASSERT_TRUE(google::protobuf::util::JsonStringToMessage(json, &read).ok());
  EXPECT_EQ(read.DebugString(), Sample().DebugString());
}

TEST(LoadableProgram, MissingBinaryIsAnError) {
  v1::Artifact artifact;
  auto status = AddLoadableFiles(
      Sample(), [](const std::string&) -> absl::StatusOr<std::string> { return absl::NotFoundError("gone"); },
      &artifact);
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace fusion
