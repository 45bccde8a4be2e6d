// Two terminals: what one command started is there for another, without any daemon.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "tests/integration/process.h"

namespace fusion::testing {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

class SharedServerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    // Enough to build that the commands of the other terminal come to it while it runs.
    std::string calls, names = "x0";
    for (int i = 1; i <= 6; ++i) {
      absl::StrAppend(&names, ", x", i);
      absl::StrAppend(&calls, "x", i, " = ", i % 2 ? "exp" : "neg", "(x", i - 1, ");\n");
    }
    file_ = client_.Write("chain.fuse", absl::StrCat("size n = 40003;\nvector[n] ", names, ";\ninput x0;\n",
                                                     calls, "return x6;\n"));
  }
  std::vector<std::string> Submit(std::vector<std::string> more = {}) const {
    std::vector<std::string> arguments = {"submit", file_, "--target", "host", "--candidates", "4", "--json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }
  Process Start(const std::vector<std::string>& arguments) {
    return Process("fusion-client", arguments, client_.environment());
  }
  static json Parsed(const ProcessResult& result) {
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return json::parse(result.out, nullptr, false);
  }
  ClientProgram client_;
  std::string file_;
};

TEST_F(SharedServerTest, AnotherTerminalListsShowsFetchesTunesAndSubmits) {
  const json before = Parsed(client_.Run(Submit()));
  const std::string ended = before["job"];
  Process first = Start(Submit({"--size", "n=50021"}));
  ASSERT_TRUE(first.WaitForError("building")) << first.err();

  const json jobs = Parsed(client_.Run({"jobs", "list", "--json"}))["jobs"];
  ASSERT_EQ(jobs.size(), 2u);
  EXPECT_EQ(jobs[0]["state"], "RUNNING");
  EXPECT_EQ(jobs[1]["job"], ended);
  EXPECT_EQ(jobs[1]["best"]["seconds"], before["candidates"][0]["measured_seconds"]["median"]);
  const json shown = Parsed(client_.Run({"jobs", "show", jobs[0]["job"], "--json"}));
  EXPECT_EQ(shown["state"], "RUNNING");
  EXPECT_FALSE(shown.value("stage", "").empty()) << shown.dump();
  EXPECT_EQ(client_.Run({"fetch", ended, "--output", client_.folder() + "/code"}).exit_code, 0);
  EXPECT_TRUE(std::filesystem::exists(client_.folder() + "/code/fused.h"));
  EXPECT_EQ(client_.Run({"tune", "list"}).exit_code, 0);
  const json second = Parsed(client_.Run(Submit({"--size", "n=60017"})));
  EXPECT_EQ(second["state"], "SUCCEEDED");

  const json result = Parsed(first.Wait());
  EXPECT_EQ(result["state"], "SUCCEEDED");
  EXPECT_EQ(result["job"], jobs[0]["job"]);
}

// The first had the server and the worker; the second is none the worse for its end.
TEST_F(SharedServerTest, TheSecondGoesOnWhenTheFirstIsInterrupted) {
  Process first = Start(Submit());
  ASSERT_TRUE(first.WaitForError("building")) << first.err();
  Process second = Start(Submit({"--size", "n=50021"}));
  ASSERT_TRUE(second.WaitForError("searched")) << second.err();
  first.Signal(SIGINT);
  EXPECT_EQ(first.Wait().exit_code, 130);
  const json result = Parsed(second.Wait());
  EXPECT_EQ(result["state"], "SUCCEEDED");
  // Neither job is lost: the first goes on when it is watched.
  const json jobs = Parsed(client_.Run({"jobs", "list", "--json"}))["jobs"];
  ASSERT_EQ(jobs.size(), 2u);
  const std::string left = jobs[1]["job"];
  const ProcessResult watched = client_.Run({"jobs", "watch", left, "--json"});
  EXPECT_EQ(Parsed(watched)["state"], "SUCCEEDED");
}

// A process that is killed leaves its socket.
TEST_F(SharedServerTest, TheSecondGoesOnWhenTheFirstIsKilled) {
  Process first = Start(Submit());
  ASSERT_TRUE(first.WaitForError("building")) << first.err();
  Process second = Start(Submit({"--size", "n=50021"}));
  ASSERT_TRUE(second.WaitForError("searched")) << second.err();
  first.Signal(SIGKILL);
  first.Wait();
  const json result = Parsed(second.Wait());
  EXPECT_EQ(result["state"], "SUCCEEDED");
  EXPECT_THAT(client_.Run({"jobs", "list"}).out, HasSubstr(std::string(result["job"])));
}

}  // namespace
}  // namespace fusion::testing
