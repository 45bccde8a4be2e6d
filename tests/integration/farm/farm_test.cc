// Client, server and worker as separate processes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "tests/folders.h"
#include "tests/integration/exported_folder_build.h"
#include "tests/integration/process.h"

namespace fusion::testing {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

constexpr char kSource[] =
    "size n = 40003;\nvector[n] x, y, z, s, r;\nscalar a;\ninput a, x, y, z;\n"
    "s = axpy(a, x, y);\nr = vadd(s, z);\nreturn r;\n";

class FarmTest : public ::testing::Test {
 protected:
  void SetUp() override { file_ = client_.Write("two_calls.fuse", kSource); }

  // Listens on `address`, or a free port, which it notes in address_.
  void StartServer(const std::string& address = "127.0.0.1:0") {
    server_ = std::make_unique<ServerProcess>(client_, address);
    address_ = server_->address();
  }
  void StartWorker() {
    worker_ = std::make_unique<Process>(
        "fusion-worker",
        std::vector<std::string>{"--server", address_, "--target", "host", "--name", "alpha"},
        client_.environment());
  }
  std::vector<std::string> Submit(std::vector<std::string> more = {}) {
    std::vector<std::string> arguments = {"submit", file_,      "--target", "host",  "--candidates",
                                          "3",      "--server", address_,   "--json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }

  ClientProgram client_;
  std::string file_;
  std::string address_;
  std::unique_ptr<ServerProcess> server_;
  std::unique_ptr<Process> worker_;
};

TEST_F(FarmTest, JobRunsOnAWorkerElsewhere) {
  StartServer();
  StartWorker();
  ProcessResult result = client_.Run(Submit());
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const json submitted = json::parse(result.out);
  EXPECT_EQ(submitted["candidates"][0]["outcome"], "OK");
  const json workers = json::parse(client_.Run({"workers", "list", "--server", address_, "--json"}).out);
  ASSERT_EQ(workers["workers"].size(), 1u);
  EXPECT_EQ(workers["workers"][0]["worker"], "workers/alpha");
  EXPECT_TRUE(workers["workers"][0]["connected"]);
  EXPECT_EQ(workers["workers"][0]["devices"][0]["target"], "host");
  ProcessResult drained = client_.Run({"workers", "drain", "alpha", "--server", address_, "--json"});
  EXPECT_EQ(drained.exit_code, 0) << drained.err;
  EXPECT_TRUE(json::parse(drained.out)["workers"][0]["draining"]);
}

TEST_F(FarmTest, JobOutlivesItsClientAndIsWatchedByAnother) {
  StartServer();
  Process submit("fusion-client", Submit(), client_.environment());
  ASSERT_TRUE(server_->WaitForError("listening"));
  StartWorker();
  ASSERT_TRUE(submit.WaitForError("searching")) << submit.err();
  submit.Signal(SIGINT);
  ProcessResult interrupted = submit.Wait();
  EXPECT_EQ(interrupted.exit_code, 130);
  EXPECT_THAT(interrupted.err, HasSubstr("lives on"));
  const json jobs = json::parse(client_.Run({"jobs", "list", "--server", address_, "--json"}).out);
  ASSERT_EQ(jobs["jobs"].size(), 1u);
  const std::string job = jobs["jobs"][0]["job"];
  EXPECT_THAT(interrupted.err, HasSubstr("fusion-client jobs watch " + job + " --server " + address_));
  ProcessResult watched = client_.Run({"jobs", "watch", job, "--server", address_, "--json"});
  EXPECT_EQ(watched.exit_code, 0) << watched.err;
}

TEST_F(FarmTest, KilledServerGoesOnWhenItIsStartedAgain) {
  StartServer();
  StartWorker();
  Process submit("fusion-client", Submit(), client_.environment());
  ASSERT_TRUE(submit.WaitForError("building")) << submit.err();
  server_->Signal(SIGKILL);
  server_->Wait();
  StartServer(address_);
  // The same client, still watching, sees the end.
  ProcessResult result = submit.Wait();
  ASSERT_EQ(result.exit_code, 0) << result.err << server_->err();
  EXPECT_EQ(json::parse(result.out)["state"], "SUCCEEDED");
}

TEST_F(FarmTest, FetchedFoldersCompileAloneAndTheirExamplesVerify) {
  StartServer();
  StartWorker();
  struct Case {
    std::string example;
    std::vector<std::string> sizes;  // measured at; the example runs at these and at others
    std::vector<std::string> runs;
    std::vector<std::string> outputs;
  };
  const Case cases[] = {
      {"function1", {"elements=4003"}, {"", "elements=301", "elements=1"}, {"F"}},
      {"gemver", {"m=259", "n=517"}, {"", "m=33 n=131", "m=1 n=1"}, {"B", "x", "w"}},
  };
  for (const Case& test : cases) {
    file_ = testing::SourceFolder() + "/examples/" + test.example + ".fuse";
    std::vector<std::string> sizes;
    for (const std::string& size : test.sizes) sizes.insert(sizes.end(), {"--size", size});
    ProcessResult submitted = client_.Run(Submit(sizes));
    ASSERT_EQ(submitted.exit_code, 0) << submitted.err;
    const std::string job = json::parse(submitted.out)["job"];
    const std::string folder = client_.folder() + "/" + test.example;
    ProcessResult fetched =
        client_.Run({"fetch", job, "--rank", "1", "--output", folder, "--server", address_, "--json"});
    ASSERT_EQ(fetched.exit_code, 0) << fetched.err;
    EXPECT_EQ(json::parse(fetched.out)["artifact"], folder);
    const CommandResult compiled = CompileHostFolder(folder);
    ASSERT_EQ(compiled.exit_code, 0) << test.example << "\n" << compiled.output;
    for (const std::string& run : test.runs) {
      const CommandResult ran = RunExample(folder, run);
      EXPECT_EQ(ran.exit_code, 0) << test.example << " " << run << "\n" << ran.output;
      for (const std::string& output : test.outputs)
        EXPECT_THAT(ran.output, HasSubstr(output + ": largest relative error")) << test.example << " " << run;
    }
  }
}

TEST_F(FarmTest, SecondServerOnTheSameDataIsRefused) {
  StartServer();
  Process second("fusion-server", {"--listen", "127.0.0.1:0", "--data", client_.folder() + "/server"},
                 client_.environment());
  ProcessResult result = second.Wait();
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("process"));
  server_->Signal(SIGTERM);
  EXPECT_EQ(server_->Wait().exit_code, 0);
}

}  // namespace
}  // namespace fusion::testing
