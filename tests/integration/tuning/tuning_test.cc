// The tuning library with real servers: embedded and as a process; the example programs; forks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "client/tuner/fusion_tuner.h"
#include "tests/folders.h"
#include "tests/integration/process.h"
#include "tests/integration/tuning_server.h"

namespace fusion::testing {
namespace {

using std::chrono::steady_clock;
using ::testing::HasSubstr;

class TuningTest : public ::testing::Test {
 protected:
  ~TuningTest() override {
    for (fusion_tuner* tuner : tuners_) fusion_tuner_destroy(tuner);
  }
  // Null where it fails; the code is in code_.
  fusion_tuner* Create(const std::string& server, const std::string& program = "test") {
    const std::string data = client_.folder() + "/embedded";
    fusion_tuner_options options;
    fusion_tuner_options_init(&options);
    options.server = server.c_str();
    options.program = program.c_str();
    options.device_class = "simulated";
    options.data_directory = data.c_str();
    options.notice = [](const char* line, void* data) {
      auto* test = static_cast<TuningTest*>(data);
      std::lock_guard lock(test->mutex_);
      test->notices_.push_back(line);
    };
    options.notice_data = this;
    fusion_tuner* tuner = nullptr;
    code_ = fusion_tuner_create(&options, &tuner);
    if (tuner != nullptr) tuners_.push_back(tuner);
    return tuner;
  }
  void Destroy(fusion_tuner* tuner) {
    std::erase(tuners_, tuner);
    fusion_tuner_destroy(tuner);
  }
  fusion_tuner_section* Section(fusion_tuner* tuner, int64_t upper = 40) {
    fusion_tuner_section* section = nullptr;
    fusion_tuner_parameter* tile = nullptr;
    EXPECT_EQ(fusion_tuner_section_create(tuner, "loop", &section), FUSION_TUNER_OK);
    EXPECT_EQ(fusion_tuner_integer_range(tuner, "tile", 0, upper, 1, &tile), FUSION_TUNER_OK);
    EXPECT_EQ(fusion_tuner_section_parameter(section, tile), FUSION_TUNER_OK);
    EXPECT_EQ(fusion_tuner_section_declare(section), FUSION_TUNER_OK) << fusion_tuner_message();
    return section;
  }
  // Simulated: the best is 13, and the next ones take 4 % longer. Within 1 % a search takes two for alike.
  static int Run(fusion_tuner_section* section) {
    const double distance = static_cast<double>(fusion_tuner_next(section)->integer) - 13;
    return fusion_tuner_report(section, 1 + distance * distance / 25);
  }
  static int64_t Best(fusion_tuner_section* section) {
    fusion_tuner_value value{};
    EXPECT_EQ(fusion_tuner_best(section, &value, 1), FUSION_TUNER_OK);
    return value.integer;
  }
  // Runs the section all the time until then; false after 30 s.
  static bool RunUntil(fusion_tuner_section* section, const std::function<bool()>& holds) {
    for (const auto end = steady_clock::now() + std::chrono::seconds(30); steady_clock::now() < end;) {
      if (holds()) return true;
      for (int i = 0; i < 20; ++i) EXPECT_EQ(Run(section), FUSION_TUNER_OK);
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
    return false;
  }
  static fusion_tuner_counters_t Counters(fusion_tuner* tuner) {
    fusion_tuner_counters_t counters{};
    counters.size = sizeof(counters);
    EXPECT_EQ(fusion_tuner_counters(tuner, &counters), FUSION_TUNER_OK);
    return counters;
  }
  static bool Connected(fusion_tuner* tuner) { return Counters(tuner).connected != 0; }
  std::vector<std::string> Notices() {
    std::lock_guard lock(mutex_);
    return notices_;
  }

  ClientProgram client_;
  int code_ = 0;

 private:
  std::vector<fusion_tuner*> tuners_;
  std::mutex mutex_;
  std::vector<std::string> notices_;
};

TEST_F(TuningTest, AnEmbeddedServerFindsTheBestAndRemembersIt) {
  fusion_tuner* tuner = Create("embedded");
  ASSERT_NE(tuner, nullptr) << fusion_tuner_message();
  fusion_tuner_section* section = Section(tuner);
  EXPECT_TRUE(RunUntil(section, [&] { return Best(section) == 13 && fusion_tuner_converged(section) == 1; }))
      << "best " << Best(section) << ", converged " << fusion_tuner_converged(section) << ", explored "
      << Counters(tuner).explored << ", reported " << Counters(tuner).reported << ", acknowledged "
      << Counters(tuner).acknowledged << ", connected " << Counters(tuner).connected << "; "
      << ::testing::PrintToString(Notices());
  EXPECT_EQ(fusion_tuner_flush(tuner, 10), FUSION_TUNER_OK) << fusion_tuner_message();
  const fusion_tuner_counters_t counters = Counters(tuner);
  EXPECT_EQ(counters.acknowledged + counters.dropped, counters.reported);
  EXPECT_GT(counters.explored, 5u);
  Destroy(tuner);
  tuner = Create("embedded");
  ASSERT_NE(tuner, nullptr) << fusion_tuner_message();
  section = Section(tuner);
  const auto end = steady_clock::now() + std::chrono::seconds(10);
  while (Best(section) != 13 && steady_clock::now() < end)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_EQ(Best(section), 13) << "known before anything ran";
  EXPECT_EQ(Counters(tuner).reported, 0u);
}

TEST_F(TuningTest, ADataDirectoryInUseIsSaidWithWhatToDo) {
  ASSERT_NE(Create("embedded"), nullptr) << fusion_tuner_message();
  // The database is locked for other processes, and for another server in this one.
  EXPECT_EQ(Create("embedded"), nullptr);
  EXPECT_EQ(code_, FUSION_TUNER_UNAVAILABLE);
  EXPECT_THAT(fusion_tuner_message(), HasSubstr("start a fusion-server"));
}

TEST_F(TuningTest, OptionsThatMakeNoSense) {
  fusion_tuner_options options;
  fusion_tuner_options_init(&options);
  fusion_tuner* tuner = nullptr;
  options.exploration_share = 1.5;
  EXPECT_EQ(fusion_tuner_create(&options, &tuner), FUSION_TUNER_INVALID_ARGUMENT);
  options.exploration_share = std::nan("");
  EXPECT_EQ(fusion_tuner_create(&options, &tuner), FUSION_TUNER_INVALID_ARGUMENT);
  options.exploration_share = 0.5;
  options.strategy = "guessing";
  EXPECT_EQ(fusion_tuner_create(&options, &tuner), FUSION_TUNER_INVALID_ARGUMENT);
  EXPECT_THAT(fusion_tuner_message(), HasSubstr("no strategy guessing"));
  options.size = 0;
  EXPECT_EQ(fusion_tuner_create(&options, &tuner), FUSION_TUNER_INVALID_ARGUMENT);
  EXPECT_EQ(fusion_tuner_create(nullptr, nullptr), FUSION_TUNER_INVALID_ARGUMENT);
  fusion_tuner_destroy(nullptr);
}

TEST_F(TuningTest, AServerThatIsKilledAndStartedAgainLosesNothingThatItAcknowledged) {
  TuningServer server(client_);
  fusion_tuner* tuner = Create(server.address());
  ASSERT_NE(tuner, nullptr) << fusion_tuner_message();
  fusion_tuner_section* section = Section(tuner);
  ASSERT_TRUE(RunUntil(section, [&] { return Counters(tuner).acknowledged > 50; }));
  server.Kill();
  ASSERT_TRUE(RunUntil(section, [&] { return !Connected(tuner); }));
  for (int i = 0; i < 100; ++i) ASSERT_EQ(Run(section), FUSION_TUNER_OK);
  server.StartAgain();
  ASSERT_TRUE(RunUntil(section, [&] { return Connected(tuner); }));
  ASSERT_EQ(fusion_tuner_flush(tuner, 10), FUSION_TUNER_OK) << fusion_tuner_message();
  const fusion_tuner_counters_t counters = Counters(tuner);
  EXPECT_EQ(counters.acknowledged + counters.dropped, counters.reported);
  EXPECT_EQ(counters.reconnections, 1u);
  // Each once.
  EXPECT_EQ(server.StoredReports().runs, counters.acknowledged);
  ASSERT_EQ(Notices().size(), 2u);
  EXPECT_THAT(Notices()[0], HasSubstr(server.address() + " is gone"));
  EXPECT_THAT(Notices()[1], HasSubstr("is back"));
}

TEST_F(TuningTest, AServerThatComesLaterIsFound) {
  TuningServer server(client_);
  server.Kill();
  fusion_tuner* tuner = Create(server.address());
  ASSERT_NE(tuner, nullptr) << fusion_tuner_message();
  fusion_tuner_section* section = Section(tuner);
  for (int i = 0; i < 10; ++i) ASSERT_EQ(Run(section), FUSION_TUNER_OK);
  EXPECT_EQ(fusion_tuner_next(section)->integer, 20) << "its defaults";
  EXPECT_EQ(fusion_tuner_flush(tuner, 0.2), FUSION_TUNER_DEADLINE_EXCEEDED);
  server.StartAgain();
  ASSERT_EQ(fusion_tuner_flush(tuner, 20), FUSION_TUNER_OK) << fusion_tuner_message();
  EXPECT_EQ(server.StoredReports().runs, 10u);
  ASSERT_EQ(Notices().size(), 2u);
  EXPECT_THAT(Notices()[0], HasSubstr("cannot be reached"));
  EXPECT_THAT(Notices()[1], HasSubstr("is back"));
}

TEST_F(TuningTest, ProgramsThatDeclareASectionDifferently) {
  TuningServer server(client_);
  fusion_tuner* first = Create(server.address());
  fusion_tuner_section* section = Section(first);
  ASSERT_TRUE(RunUntil(section, [&] { return Counters(first).acknowledged > 0; }));
  fusion_tuner* second = Create(server.address());
  fusion_tuner_section* other = Section(second, /*upper=*/30);
  ASSERT_TRUE(RunUntil(other, [&] { return fusion_tuner_section_status(other) != FUSION_TUNER_OK; }));
  EXPECT_EQ(fusion_tuner_section_status(other), FUSION_TUNER_ALREADY_EXISTS);
  EXPECT_THAT(fusion_tuner_message(), HasSubstr("section loop: "));
  EXPECT_EQ(fusion_tuner_next(other)->integer, 15) << "its defaults";
  EXPECT_EQ(fusion_tuner_section_status(section), FUSION_TUNER_OK);
}

TEST_F(TuningTest, AChildGoesOnWithTheChoiceAndReportsNothing) {
  TuningServer server(client_);
  fusion_tuner* tuner = Create(server.address());
  fusion_tuner_section* section = Section(tuner);
  ASSERT_TRUE(RunUntil(section, [&] { return fusion_tuner_converged(section) == 1; }));
  ASSERT_EQ(fusion_tuner_start(section), FUSION_TUNER_OK);
  // Other threads that run the section while the process forks.
  std::atomic<bool> done{false};
  std::thread other([&] {
    while (!done) Run(section);
  });
  for (int fork_number = 0; fork_number < 10; ++fork_number) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      alarm(20);  // a child that hangs ends
      // Numbers tell the parent what was wrong.
      if (fusion_tuner_stop(section) != FUSION_TUNER_OK) _exit(1);
      for (int i = 0; i < 10; ++i) {
        if (fusion_tuner_next(section)->integer != Best(section)) _exit(2);
        if (fusion_tuner_start(section) != FUSION_TUNER_OK || fusion_tuner_stop(section) != FUSION_TUNER_OK)
          _exit(3);
      }
      fusion_tuner_section* later = nullptr;
      fusion_tuner_parameter* tile = nullptr;
      if (fusion_tuner_section_create(tuner, "later", &later) != FUSION_TUNER_OK) _exit(4);
      if (fusion_tuner_integer_range(tuner, "tile", 1, 2, 1, &tile) != FUSION_TUNER_OK) _exit(4);
      if (fusion_tuner_section_parameter(later, tile) != FUSION_TUNER_OK) _exit(4);
      if (fusion_tuner_section_declare(later) != FUSION_TUNER_OK || fusion_tuner_next(later) == nullptr)
        _exit(5);
      std::thread([&] { Run(section); }).join();
      if (fusion_tuner_flush(tuner, 1) != FUSION_TUNER_FAILED_PRECONDITION) _exit(6);
      if (Counters(tuner).connected != 0) _exit(7);
      fusion_tuner* another = nullptr;
      if (fusion_tuner_create(nullptr, &another) != FUSION_TUNER_FAILED_PRECONDITION) _exit(8);
      if (Notices().empty() || Notices().back().find("forked") == std::string::npos) _exit(9);
      fusion_tuner_destroy(tuner);
      _exit(0);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
    EXPECT_EQ(WEXITSTATUS(status), 0);
  }
  done = true;
  other.join();
  EXPECT_EQ(fusion_tuner_stop(section), FUSION_TUNER_OK);
  ASSERT_EQ(fusion_tuner_flush(tuner, 10), FUSION_TUNER_OK) << fusion_tuner_message();
  EXPECT_EQ(server.StoredReports().runs, Counters(tuner).acknowledged) << "children reported nothing";
  EXPECT_TRUE(Notices().empty()) << Notices()[0];
}

TEST_F(TuningTest, ProgramsOfTheSameSectionShareASearch) {
  TuningServer server(client_);
  const std::vector<std::string> arguments = {"--server", server.address(), "--seconds", "2", "--size", "64"};
  Process first("tuning_product", arguments, client_.environment());
  Process second("tuning_product", arguments, client_.environment());
  for (Process* program : {&first, &second}) {
    const ProcessResult result = program->Wait();
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(result.err, "");
    EXPECT_THAT(result.out, HasSubstr("tuned"));
  }
  ASSERT_EQ(server.Tunings().size(), 1u);
  const v1::Tuning tuning = server.Tunings()[0];
  EXPECT_EQ(tuning.declaration().section(), "product");
  EXPECT_GT(tuning.configurations(), 10u);
  EXPECT_EQ(server.StoredReports().by_process.size(), 2u);
}

TEST_F(TuningTest, AProgramInCRunsWithEitherServer) {
  const ProcessResult embedded =
      Process("tuning_partition", {"--seconds", "1", "--size", "500"}, client_.environment()).Wait();
  EXPECT_EQ(embedded.exit_code, 0) << embedded.err;
  EXPECT_EQ(embedded.err, "");
  EXPECT_THAT(embedded.out, HasSubstr("tuned    split at "));
  TuningServer server(client_);
  client_.SetEnvironment("FUSION_SERVER", server.address());
  const ProcessResult remote =
      Process("tuning_partition", {"--seconds", "1", "--size", "500"}, client_.environment()).Wait();
  EXPECT_EQ(remote.exit_code, 0) << remote.err;
  EXPECT_EQ(remote.err, "");
  ASSERT_EQ(server.Tunings().size(), 1u);
  EXPECT_EQ(server.Tunings()[0].declaration().section(), "triangle");
  EXPECT_GT(server.Tunings()[0].runs(), 10u);
  EXPECT_EQ(Process("tuning_partition", {"--size", "1"}, client_.environment()).Wait().exit_code, 2);
}

// The tuner of these calls lives as long as the process, so its server is one that is not there.
TEST_F(TuningTest, TheThreeCallsOfAtuneRtSayWhatIsWrong) {
  // Names of their own when the test is repeated in one process.
  static int repetition = 0;
  const std::string name = "rows" + std::to_string(++repetition), similar = name + "x";
  const char* const rows = name.c_str();
  setenv("FUSION_SERVER", "127.0.0.1:1", 1);
  EXPECT_EQ(fusion_start_measurements(rows), FUSION_TUNER_NOT_FOUND);
  EXPECT_EQ(fusion_get_partition_parameter(rows, 10, 1, 1), 10) << "bounds reversed";
  EXPECT_THAT(fusion_tuner_message(), HasSubstr("the lower bound 10 is above the upper bound 1"));
  EXPECT_EQ(fusion_get_partition_parameter(rows, 0, 100, 0), 0) << "no step";
  EXPECT_EQ(fusion_get_partition_parameter(nullptr, 0, 100, 10), 50);
  EXPECT_EQ(fusion_get_partition_parameter(rows, 0, 100, 10), 50);
  EXPECT_EQ(fusion_start_measurements(rows), FUSION_TUNER_OK);
  EXPECT_EQ(fusion_start_measurements(rows), FUSION_TUNER_FAILED_PRECONDITION);
  EXPECT_EQ(fusion_stop_measurements(rows), FUSION_TUNER_OK);
  EXPECT_EQ(fusion_stop_measurements(rows), FUSION_TUNER_FAILED_PRECONDITION);
  EXPECT_EQ(fusion_stop_measurements(similar.c_str()), FUSION_TUNER_NOT_FOUND);
  EXPECT_THAT(fusion_tuner_message(), HasSubstr("did you mean " + name + "?"));
  EXPECT_EQ(fusion_start_measurements(nullptr), FUSION_TUNER_INVALID_ARGUMENT);
  // Other bounds: another section with the same name.
  EXPECT_EQ(fusion_get_partition_parameter(rows, 0, 1000, 10), 500);
  EXPECT_EQ(fusion_start_measurements(rows), FUSION_TUNER_OK);
  EXPECT_EQ(fusion_stop_measurements(rows), FUSION_TUNER_OK);
  EXPECT_EQ(fusion_get_partition_parameter(rows, 0, 100, 10), 50);
  EXPECT_EQ(fusion_get_partition_parameter("columns", INT64_MIN, INT64_MAX, 1), -1)
      << "too many, and their middle";
  unsetenv("FUSION_SERVER");
}

// Nothing that is linked into the shared library may stand in the way of a program's own libraries.
TEST_F(TuningTest, TheSharedLibraryShowsItsCFunctionsAlone) {
  FILE* symbols =
      popen(("nm -D -g --defined-only '" + testing::BuildFolder() + "/lib/libfusion_tuner.so'").c_str(), "r");
  ASSERT_NE(symbols, nullptr);
  char line[4096];
  int functions = 0;
  while (fgets(line, sizeof(line), symbols) != nullptr) {
    char kind = 0, name[4096] = "";
    ASSERT_EQ(sscanf(line, "%*x %c %4000s", &kind, name), 2) << line;
    const std::string symbol = name;
    if (kind == 'A') continue;  // the name of the version
    ++functions;
    EXPECT_EQ(symbol.rfind("fusion_", 0), 0u) << symbol;
  }
  EXPECT_EQ(pclose(symbols), 0);
  EXPECT_EQ(functions, 37);
}

}  // namespace
}  // namespace fusion::testing
