// fusion-client tune against a server in the test.
#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "base/temporary_directory.h"
#include "server/rpc/server.h"
#include "tests/integration/process.h"
#include "tests/tuning_connection.h"

namespace fusion::testing {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::json;

std::string ReadText(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

class TuneCommandsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto directory = TemporaryDirectory::Create();
    ASSERT_TRUE(directory.ok());
    directory_ = *std::move(directory);
    ServerOptions options;
    options.address = "127.0.0.1:0";
    options.data_directory = directory_->path();
    absl::StatusOr<std::unique_ptr<Server>> server = Server::Start(options);
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    client_.SetEnvironment("FUSION_SERVER", server_->address());
  }
  static v1::SectionDeclaration Section(const std::string& section, int64_t n) {
    v1::SectionDeclaration declaration;
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
        "program: 'solver' device_class: 'cpu' parameters { name: 'tile' power_of_two { lower: 1 upper: 64 } "
        "default_value: 1 } "
        "parameters { name: 'order' enumeration { values: 'rows' values: 'columns' } }",
        &declaration));
    declaration.set_section(section);
    v1::ContextSize* size = declaration.add_context();
    size->set_name("n");
    size->set_value(n);
    return declaration;
  }
  // Every configuration once, 1 ms at tile 8 by columns; one of them fails. The name of the tuning.
  std::string Measure(const v1::SectionDeclaration& declaration) {
    TuningConnection program(TuningChannel(server_->address()));
    static int process = 0;
    program.Hello("p" + std::to_string(process++));
    program.Declare(declaration);
    const auto declared = program.Wait(&v1::TuneResponse::has_declared);
    EXPECT_TRUE(declared);
    uint64_t sequence = 0;
    // Proposals, and what was not proposed as if it were.
    program.Report(++sequence, {}, 1);
    const auto proposed = program.Wait(
        [](const v1::TuneResponse& r) { return r.has_choice() && r.choice().proposals_size() > 0; });
    EXPECT_TRUE(proposed);
    uint64_t id = proposed->choice().proposals(0).id();
    for (int repeat = 0; repeat < 3; ++repeat)
      for (int power = 0; power <= 6; ++power)
        for (int order = 0; order < 2; ++order) {
          const double value = 0.001 * (1 + std::abs(power - 3) + (1 - order) * 0.5) * (1 + 0.01 * repeat);
          program.Report(++sequence, {TuningRun({std::exp2(power), static_cast<double>(order)}, value, id)},
                         0);
          EXPECT_TRUE(
              program.WaitAcknowledged(sequence));  // what exploring cost is judged by what is known by then
        }
    v1::TuningReport failed = TuningRun({64, 0}, 1);
    failed.set_count(0);
    failed.set_failures(2);
    program.Report(++sequence, {failed});
    EXPECT_TRUE(program.WaitAcknowledged(sequence));
    EXPECT_TRUE(program.Close().ok());
    return declared->declared().tuning();
  }

  std::unique_ptr<TemporaryDirectory> directory_;
  std::unique_ptr<Server> server_;
  ClientProgram client_;
};

TEST_F(TuneCommandsTest, Everything) {
  ProcessResult result = client_.Run({"tune", "list"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.out, "nothing has been tuned yet\n");

  const std::string name = Measure(Section("sweep", 1000));
  const std::string other = Measure(Section("sweep", 2000));
  const std::string gather = Measure(Section("gather", 1000));

  result = client_.Run({"tune", "list"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr(name));
  EXPECT_THAT(result.out, HasSubstr("tile=8 order=columns"));
  result = client_.Run({"tune", "list", "--json"});
  Json list = Json::parse(result.out);
  EXPECT_EQ(list["schema"], "fusion.tunings/1");
  ASSERT_EQ(list["tunings"].size(), 3u);
  EXPECT_EQ(list["tunings"][0]["tuning"], gather);
  EXPECT_EQ(list["tunings"][0]["best"], Json({{"tile", 8}, {"order", "columns"}}));
  EXPECT_EQ(Json::parse(client_.Run({"tune", "list", "--json", "--program", "none"}).out)["tunings"].size(),
            0u);
  EXPECT_EQ(Json::parse(
                client_.Run({"tune", "list", "--json", "--program", "solver", "--limit", "2"}).out)["tunings"]
                .size(),
            2u);

  // By name, by id alone, by section where there is one.
  for (const std::string& given : {gather, gather.substr(8), std::string("solver/gather")}) {
    result = client_.Run({"tune", "show", given, "--json"});
    ASSERT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(Json::parse(result.out)["tuning"], gather);
  }
  result = client_.Run({"tune", "show", "solver/sweep"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("there are 2 tunings of solver/sweep"));
  EXPECT_THAT(result.err, HasSubstr(name + "  n=1000"));
  EXPECT_THAT(result.err, HasSubstr(other));
  EXPECT_EQ(client_.Run({"tune", "show", "solver/none"}).exit_code, 2);
  EXPECT_EQ(client_.Run({"tune", "show", "tunings/none"}).exit_code, 2);

  const std::string plots = client_.folder() + "/plots";
  result = client_.Run({"tune", "show", name, "--plot", plots});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("solver/sweep  n=1000  on cpu"));
  EXPECT_THAT(result.out, HasSubstr("powers of two, 1 to 64"));
  EXPECT_THAT(result.out, HasSubstr("best: tile=8 order=columns"));
  EXPECT_THAT(result.out, HasSubstr("the best is better by 4.5"));
  EXPECT_THAT(result.out, HasSubstr("42 runs, 2 failures, 14 configurations; generation 1"));
  EXPECT_THAT(result.out, HasSubstr("exploring cost "));
  EXPECT_THAT(result.out, HasSubstr("and 4 more (--all)"));
  const std::string landscape = ReadText(plots + "/landscape.svg"),
                    convergence = ReadText(plots + "/convergence.svg");
  EXPECT_EQ(landscape.rfind("<svg", 0), 0u);
  EXPECT_THAT(landscape, HasSubstr(">tile</text>"));
  EXPECT_THAT(landscape, HasSubstr(">columns</text>"));
  EXPECT_THAT(landscape, HasSubstr("best: tile=8 order=columns"));
  EXPECT_EQ(convergence.rfind("<svg", 0), 0u);
  // Over plots of before, but over nothing else.
  EXPECT_EQ(client_.Run({"tune", "show", name, "--plot", plots}).exit_code, 0);
  client_.Write("taken/landscape.svg", "my notes");
  result = client_.Run({"tune", "show", name, "--plot", client_.folder() + "/taken"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_EQ(ReadText(client_.folder() + "/taken/landscape.svg"), "my notes");

  result = client_.Run({"tune", "show", name, "--json", "--plot", plots});
  const Json shown = Json::parse(result.out);
  EXPECT_EQ(shown["schema"], "fusion.tuning/1");
  EXPECT_EQ(shown["configurations"].size(), 14u);
  EXPECT_EQ(shown["configurations"][0]["count"], 3);
  EXPECT_NEAR(shown["speedup"].get<double>(), 4.5, 0.2);
  EXPECT_EQ(shown["landscape_plot"], plots + "/landscape.svg");
  EXPECT_GT(shown["convergence"].size(), 0u);
  EXPECT_GT(shown["exploration_share"].get<double>(), 0);

  // T4: what the schema requires of every result, and what Kernel Tuner writes.
  result = client_.Run({"tune", "export", name});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const Json exported = Json::parse(result.out);
  EXPECT_EQ(exported["schema_version"], "1.0.0");
  ASSERT_EQ(exported["results"].size(), 43u);
  const std::set<std::string> invalidity = {"timeout",     "compile",     "runtime",
                                            "correctness", "constraints", "correct"};
  int failed = 0;
  for (const Json& run : exported["results"]) {
    for (const char* key : {"configuration", "times", "invalidity", "correctness"})
      EXPECT_TRUE(run.contains(key)) << key;
    EXPECT_TRUE(run["configuration"].is_object());
    EXPECT_TRUE(run["times"].is_object());
    EXPECT_TRUE(run["times"]["runtimes"].is_array());
    for (const char* key : {"compilation", "framework", "search_algorithm", "validation"})
      EXPECT_TRUE(run["times"][key].is_number()) << key;
    EXPECT_TRUE(invalidity.count(run["invalidity"])) << run["invalidity"];
    EXPECT_TRUE(run["correctness"].is_number());
    EXPECT_TRUE(run["timestamp"].is_string());
    EXPECT_EQ(run["objectives"], Json::array({"time"}));
    for (const Json& measurement : run["measurements"]) {
      EXPECT_TRUE(measurement["name"].is_string());
      EXPECT_TRUE(measurement["value"].is_number());
      EXPECT_TRUE(measurement["unit"].is_string());
    }
    failed += run["invalidity"] == "runtime" ? 1 : 0;
  }
  EXPECT_EQ(failed, 1);
  EXPECT_EQ(exported["results"][0]["configuration"], Json({{"tile", 1}, {"order", "rows"}}));
  EXPECT_NEAR(exported["results"][0]["times"]["runtimes"][0].get<double>(), 4.5, 1e-9);
  const std::string file = client_.folder() + "/results.json";
  result = client_.Run({"tune", "export", name, "--output", file, "--json"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(Json::parse(result.out)["results"], 43);
  EXPECT_EQ(Json::parse(ReadText(file)), exported);

  result = client_.Run({"tune", "reset", "solver/gather", "--json"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(Json::parse(result.out)["generation"], 2);
  EXPECT_EQ(Json::parse(result.out)["runs"], 0);
  EXPECT_EQ(client_.Run({"tune", "reset", "tunings/none"}).exit_code, 2);
  // Without measurements there is nothing to draw.
  EXPECT_NE(client_.Run({"tune", "show", gather, "--plot", plots}).exit_code, 0);
}

// Runs of three configurations, so many each, with the values that repeat.
std::string MeasureThree(Server& server, const v1::SectionDeclaration& declaration,
                         const std::vector<std::vector<double>>& values) {
  TuningConnection program(TuningChannel(server.address()));
  program.Hello("p-" + declaration.section());
  program.Declare(declaration);
  const auto declared = program.Wait(&v1::TuneResponse::has_declared);
  EXPECT_TRUE(declared);
  std::vector<v1::TuningReport> reports;
  for (size_t tile = 0; tile < values.size(); ++tile)
    for (const double value : values[tile])
      reports.push_back(TuningRun({std::exp2(static_cast<double>(tile)), 0}, value));
  program.Report(1, reports);
  EXPECT_TRUE(program.WaitAcknowledged(1));
  EXPECT_TRUE(program.Close().ok());
  return declared->declared().tuning();
}

TEST_F(TuneCommandsTest, NothingIsCalledBetterThatIsNot) {
  // The default is tile 1.
  const std::string alike = MeasureThree(*server_, Section("alike", 1),
                                         {{1.0, 1.3, 0.8, 1.2, 0.7}, {0.98, 1.31, 0.75, 1.22, 0.72}, {0.9}});
  const std::string default_best =
      MeasureThree(*server_, Section("default", 1), {{1.0, 1.01, 0.99}, {2, 2.01}, {3, 3.01}});
  const std::string short_runs =
      MeasureThree(*server_, Section("short", 1), {{90e-9, 91e-9, 92e-9}, {30e-9, 31e-9, 32e-9}});
  const std::string better =
      MeasureThree(*server_, Section("better", 1), {{2.0, 2.01, 1.99}, {1, 1.01, 0.99}});

  ProcessResult result = client_.Run({"tune", "show", alike});
  EXPECT_THAT(result.out, HasSubstr("the best is not better by more than both are uncertain by"));
  EXPECT_THAT(result.out, ::testing::Not(HasSubstr("better by 0")));
  // The first row of the table is the best, though another that ran once has a lower mean.
  Json json = Json::parse(client_.Run({"tune", "show", alike, "--json", "--all"}).out);
  EXPECT_EQ(json["configurations"][0]["configuration"], json["best"]);
  EXPECT_EQ(json["configurations"][0]["mean"], json["best_value"]);
  EXPECT_EQ(json["best"]["tile"], 2);
  EXPECT_EQ(json["better_than_default"], false);
  EXPECT_TRUE(json["speedup"].is_null());

  EXPECT_THAT(client_.Run({"tune", "show", default_best}).out, HasSubstr("it is the best that is known"));
  result = client_.Run({"tune", "show", short_runs});
  EXPECT_THAT(result.out, HasSubstr("runs are so short that the clock hides which configuration is better"));
  EXPECT_THAT(result.out, ::testing::Not(HasSubstr("better by")));
  EXPECT_THAT(client_.Run({"tune", "show", better}).out, HasSubstr("the best is better by 2.00x"));

  result = client_.Run({"tune", "list"});
  EXPECT_THAT(result.out, HasSubstr("below clock"));
  EXPECT_THAT(result.out, HasSubstr("2.00x"));
  EXPECT_THAT(result.out, HasSubstr("exploring"));
  for (const Json& tuning : Json::parse(client_.Run({"tune", "list", "--json"}).out)["tunings"]) {
    EXPECT_EQ(tuning["below_clock"], tuning["tuning"] == short_runs);
    EXPECT_EQ(tuning["better_than_default"], tuning["tuning"] == better);
  }
}

TEST_F(TuneCommandsTest, WatchEndsAtAnInterrupt) {
  const std::string name = Measure(Section("sweep", 1000));
  Process watch("fusion-client", {"tune", "watch", name, "--json"}, client_.environment());
  std::this_thread::sleep_for(std::chrono::seconds(2));
  watch.Signal(SIGINT);
  const ProcessResult result = watch.Wait();
  EXPECT_EQ(result.exit_code, 130) << result.err;
  ASSERT_FALSE(result.out.empty());
  const Json first = Json::parse(result.out.substr(0, result.out.find('\n')));
  EXPECT_EQ(first["tuning"], name);
}

TEST_F(TuneCommandsTest, CompletionKnowsTheCommands) {
  const ProcessResult result = client_.Run({"completion", "bash"});
  EXPECT_THAT(result.out, HasSubstr("\"tune:export\""));
  EXPECT_THAT(result.out, HasSubstr("--plot)"));
}

}  // namespace
}  // namespace fusion::testing
