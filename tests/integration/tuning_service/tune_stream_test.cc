// The stream of a tuning program against a whole server on loopback.
#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <condition_variable>
#include <filesystem>
#include <mutex>
#include <thread>
#include <vector>

#include "base/temporary_directory.h"
#include "client/api/client.h"
#include "server/metrics/server_metrics.h"
#include "server/rpc/server.h"
#include "tests/tuning_connection.h"

namespace fusion::testing {
namespace {

using ::testing::HasSubstr;

v1::SectionDeclaration Section(const std::string& rest = "") {
  v1::SectionDeclaration declaration;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
      "program: 'solver' section: 'sweep' device_class: 'cpu' context { name: 'n' value: 1000 } "
      "parameters { name: 'tile' power_of_two { lower: 1 upper: 1024 } default_value: 2 } "
      "parameters { name: 'order' enumeration { values: 'rows' values: 'columns' } } " +
          rest,
      &declaration));
  return declaration;
}

// 1 at tile 64 by columns.
double Value(const v1::Configuration& configuration) {
  return 1 + std::abs(std::log2(configuration.values(0)) - 6) + (configuration.values(1) == 1 ? 0 : 0.5);
}

class TuneStreamTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto directory = TemporaryDirectory::Create();
    ASSERT_TRUE(directory.ok());
    directory_ = *std::move(directory);
    Start("127.0.0.1:0");
  }
  void Start(const std::string& address) {
    ServerOptions options;
    options.address = address;
    options.data_directory = directory_->path();
    absl::StatusOr<std::unique_ptr<Server>> server = Server::Start(options);
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    channel_ = TuningChannel(server_->address());
    stub_ = v1::TunerService::NewStub(channel_);
  }
  void Restart() {
    const std::string address = server_->address();
    server_.reset();
    Start(address);
  }
  v1::TuningDetails Details(const std::string& name) {
    grpc::ClientContext context;
    v1::GetTuningRequest request;
    request.set_name(name);
    v1::TuningDetails details;
    const grpc::Status status = stub_->GetTuning(&context, request, &details);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return details;
  }
  // Connects and declares; the name of the tuning.
  std::string Begin(TuningConnection& program, const std::string& process,
                    uint64_t* last_sequence = nullptr) {
    EXPECT_TRUE(program.Hello(process));
    const auto welcome = program.Wait(&v1::TuneResponse::has_welcome);
    EXPECT_TRUE(welcome);
    if (welcome && last_sequence != nullptr) *last_sequence = welcome->welcome().last_sequence();
    EXPECT_TRUE(program.Declare(Section()));
    const auto declared = program.Wait(&v1::TuneResponse::has_declared);
    EXPECT_TRUE(declared);
    if (!declared) return "";
    EXPECT_EQ(declared->declared().status().code(), 0) << declared->declared().status().message();
    return declared->declared().tuning();
  }

  std::unique_ptr<TemporaryDirectory> directory_;
  std::unique_ptr<Server> server_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::TunerService::Stub> stub_;
};

// A client written by somebody else, whose protocol does not look at its text.
TEST_F(TuneStreamTest, ADeclarationThatIsNotUtf8IsRefusedAndTheStreamGoesOn) {
  TuningConnection program(channel_);
  const std::string name = Begin(program, "p");
  for (const char* field : {"section", "value", "constraint"}) {
    v1::SectionDeclaration broken = Section("constraints: 'tile > 0'");
    const std::string bad = "caf\xe9";
    if (field[0] == 's') broken.set_section(bad);
    if (field[0] == 'v') broken.mutable_parameters(1)->mutable_enumeration()->set_values(0, bad);
    if (field[0] == 'c') broken.set_constraints(0, bad);
    const uint32_t section = static_cast<uint32_t>(100 + field[0]);
    ASSERT_TRUE(program.Declare(broken, section));
    const auto refused = program.Wait(&v1::TuneResponse::has_declared);
    ASSERT_TRUE(refused) << field;
    EXPECT_EQ(refused->declared().section(), section);
    EXPECT_EQ(refused->declared().status().code(), static_cast<int>(absl::StatusCode::kInvalidArgument));
    EXPECT_THAT(refused->declared().status().message(), HasSubstr("UTF-8"));
  }
  ASSERT_TRUE(program.Report(1, {TuningRun({64, 1}, 1)}));
  ASSERT_TRUE(program.WaitAcknowledged(1));
  EXPECT_TRUE(program.Close().ok());
  EXPECT_EQ(Details(name).tuning().runs(), 1u);
}

TEST_F(TuneStreamTest, ReportsAreAcknowledgedAndStored) {
  TuningConnection program(channel_);
  const std::string name = Begin(program, "p");
  const auto choice = program.Wait(&v1::TuneResponse::has_choice);
  ASSERT_TRUE(choice);
  EXPECT_EQ(choice->choice().best().values(0), 2);
  uint64_t sequence = 0;
  ASSERT_TRUE(program.Report(++sequence, {}, 2));
  int runs = 0;
  while (runs < 60) {
    const auto next = program.Wait([](const v1::TuneResponse& response) {
      return response.has_choice() &&
             (response.choice().proposals_size() > 0 || response.choice().phase() == v1::CONVERGED);
    });
    ASSERT_TRUE(next);
    if (next->choice().proposals_size() == 0) break;
    std::vector<v1::TuningReport> reports;
    for (const v1::TuningProposal& proposal : next->choice().proposals()) {
      const auto& values = proposal.configuration().values();
      reports.push_back(
          TuningRun({values.begin(), values.end()}, Value(proposal.configuration()), proposal.id()));
    }
    runs += static_cast<int>(reports.size());
    ASSERT_TRUE(program.Report(++sequence, reports, 2));
  }
  ASSERT_TRUE(program.WaitAcknowledged(sequence));
  // A program that says that nothing more comes gets a clean end.
  const grpc::Status end = program.Close();
  EXPECT_TRUE(end.ok()) << end.error_message();
  const v1::TuningDetails details = Details(name);
  EXPECT_EQ(details.tuning().runs(), static_cast<uint64_t>(runs));
  EXPECT_EQ(details.tuning().best().values(0), 64);
  EXPECT_EQ(details.tuning().best().values(1), 1);
  EXPECT_GT(details.convergence_size(), 0);
}

TEST_F(TuneStreamTest, BatchSentAgainAfterARestartCountsOnce) {
  std::string name;
  {
    TuningConnection program(channel_);
    name = Begin(program, "p");
    for (uint64_t sequence = 1; sequence <= 3; ++sequence)
      ASSERT_TRUE(program.Report(sequence, {TuningRun({2, 0}, 1)}));
    ASSERT_TRUE(program.WaitAcknowledged(3));
    Restart();
    EXPECT_FALSE(program.Finish().ok());
  }
  TuningConnection program(channel_);
  uint64_t last = 0;
  EXPECT_EQ(Begin(program, "p", &last), name);
  EXPECT_EQ(last, 3u);
  for (uint64_t sequence = 2; sequence <= 5; ++sequence)
    ASSERT_TRUE(program.Report(sequence, {TuningRun({2, 0}, 1)}));
  ASSERT_TRUE(program.WaitAcknowledged(5));
  EXPECT_EQ(Details(name).tuning().runs(), 5u);
  EXPECT_EQ(Details(name).tuning().provenance(), v1::EXACT);
}

TEST_F(TuneStreamTest, SecondConnectionOfAProcessTakesThePlaceOfTheFirst) {
  TuningConnection first(channel_);
  Begin(first, "p");
  TuningConnection second(channel_);
  const std::string name = Begin(second, "p");
  EXPECT_EQ(first.Finish().error_code(), grpc::StatusCode::ABORTED);
  ASSERT_TRUE(second.Report(1, {TuningRun({2, 0}, 1)}));
  EXPECT_TRUE(second.WaitAcknowledged(1));
  EXPECT_EQ(Details(name).tuning().programs(), 1u);
}

TEST_F(TuneStreamTest, MessagesThatTheProtocolDoesNotAllow) {
  struct Case {
    const char* name;
    std::function<void(TuningConnection&)> send;
    grpc::StatusCode code;
    const char* message;
  };
  const Case cases[] = {
      {"nothing", [](auto& c) { c.Send({}); }, grpc::StatusCode::INVALID_ARGUMENT, "kind"},
      {"declare before hello", [](auto& c) { c.Declare(Section()); }, grpc::StatusCode::INVALID_ARGUMENT,
       "hello comes first"},
      {"reports before hello", [](auto& c) { c.Report(1, {}); }, grpc::StatusCode::INVALID_ARGUMENT,
       "hello comes first"},
      {"no name", [](auto& c) { c.Hello(""); }, grpc::StatusCode::INVALID_ARGUMENT, "hello.process"},
      {"long name", [](auto& c) { c.Hello(std::string(1000, 'x')); }, grpc::StatusCode::INVALID_ARGUMENT,
       "hello.process"},
      {"hello twice", [](auto& c) { c.Hello("a"), c.Hello("a"); }, grpc::StatusCode::INVALID_ARGUMENT,
       "once"},
      {"sequence 0", [](auto& c) { c.Hello("b"), c.Report(0, {}); }, grpc::StatusCode::INVALID_ARGUMENT,
       "sequence"},
      {"gap", [](auto& c) { c.Hello("c"), c.Report(1, {}), c.Report(3, {}); },
       grpc::StatusCode::INVALID_ARGUMENT, "after batch 1 comes batch 2, not 3"},
      {"large",
       [](auto& c) { c.Hello("d"), c.Declare(Section("constraints: '" + std::string(2 << 20, ' ') + "'")); },
       grpc::StatusCode::RESOURCE_EXHAUSTED, "at most 1048576"},
      {"section twice",
       [](auto& c) { c.Hello("e"), c.Declare(Section()), c.Declare(Section("constraints: 'tile < 100'")); },
       grpc::StatusCode::INVALID_ARGUMENT, "declared already"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    TuningConnection program(channel_);
    c.send(program);
    const grpc::Status status = program.Finish();
    EXPECT_EQ(status.error_code(), c.code) << status.error_message();
    EXPECT_THAT(status.error_message(), HasSubstr(c.message));
  }
  // The server goes on.
  TuningConnection program(channel_);
  EXPECT_NE(Begin(program, "fine"), "");
}

TEST_F(TuneStreamTest, WrongSectionLeavesTheStream) {
  TuningConnection program(channel_);
  ASSERT_TRUE(program.Hello("p"));
  v1::SectionDeclaration wrong = Section();
  wrong.mutable_parameters(0)->mutable_power_of_two()->set_lower(3);
  ASSERT_TRUE(program.Declare(wrong, 1));
  auto declared = program.Wait(&v1::TuneResponse::has_declared);
  ASSERT_TRUE(declared);
  EXPECT_EQ(declared->declared().status().code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(declared->declared().status().message(), HasSubstr("tile"));
  ASSERT_TRUE(program.Declare(Section(), 2));
  declared = program.Wait(&v1::TuneResponse::has_declared);
  ASSERT_TRUE(declared);
  EXPECT_EQ(declared->declared().status().code(), 0);
  const std::string name = declared->declared().tuning();
  // A report that makes no sense, one of the section that is not tuned, and one of none.
  ASSERT_TRUE(program.Report(
      1, {TuningRun({2, 0}, 1, 0, 1), TuningRun({2, 0}, 1, 0, 3), TuningRun({2, 0}, 1, 0, 2)}));
  declared = program.Wait(&v1::TuneResponse::has_declared);
  ASSERT_TRUE(declared);
  EXPECT_EQ(declared->declared().section(), 3u);
  EXPECT_EQ(declared->declared().status().code(), grpc::StatusCode::NOT_FOUND);
  ASSERT_TRUE(program.WaitAcknowledged(1));
  EXPECT_EQ(Details(name).tuning().runs(), 1u);
  ASSERT_TRUE(program.Report(2, {TuningRun({2, 0}, std::nan(""), 0, 2)}));
  for (const auto& [section, code] : std::vector<std::pair<uint32_t, int>>{
           {1, grpc::StatusCode::FAILED_PRECONDITION}, {3, grpc::StatusCode::NOT_FOUND}}) {
    const auto of_first = program.Wait(&v1::TuneResponse::has_refused);
    ASSERT_TRUE(of_first);
    EXPECT_EQ(of_first->refused().section(), section);
    EXPECT_EQ(of_first->refused().status().code(), code);
  }
  const auto refused = program.Wait(&v1::TuneResponse::has_refused);
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->refused().section(), 2u);
  EXPECT_EQ(refused->refused().status().code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(refused->refused().runs(), 1u);
  EXPECT_TRUE(program.WaitAcknowledged(2));
}

TEST_F(TuneStreamTest, WatchersSeeChangesAndAreNotFlooded) {
  TuningConnection program(channel_);
  const std::string name = Begin(program, "p");
  grpc::ClientContext context;
  v1::WatchTuningRequest request;
  request.set_name(name);
  auto reader = stub_->WatchTuning(&context, request);
  v1::Tuning tuning;
  ASSERT_TRUE(reader->Read(&tuning));
  EXPECT_EQ(tuning.runs(), 0u);
  EXPECT_EQ(tuning.programs(), 1u);
  constexpr uint64_t kReports = 500;
  const auto begin = std::chrono::steady_clock::now();
  std::thread reports([&] {
    for (uint64_t sequence = 1; sequence <= kReports; ++sequence) {
      program.Report(sequence, {TuningRun({2, 0}, 1)});
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  });
  int seen = 0;
  uint64_t runs = 0;
  while (tuning.runs() < kReports && reader->Read(&tuning)) {
    ++seen;
    EXPECT_GE(tuning.runs(), runs);
    runs = tuning.runs();
  }
  reports.join();
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  EXPECT_EQ(tuning.runs(), kReports);
  EXPECT_LE(seen, 10 * seconds + 2);
  context.TryCancel();
  EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::CANCELLED);

  grpc::ClientContext other;
  request.set_name("tunings/none");
  EXPECT_EQ(stub_->WatchTuning(&other, request)->Finish().error_code(), grpc::StatusCode::NOT_FOUND);
}

TEST_F(TuneStreamTest, ShutdownEndsStreams) {
  TuningConnection program(channel_);
  const std::string name = Begin(program, "p");
  grpc::ClientContext context;
  v1::WatchTuningRequest request;
  request.set_name(name);
  auto reader = stub_->WatchTuning(&context, request);
  v1::Tuning tuning;
  ASSERT_TRUE(reader->Read(&tuning));
  server_.reset();
  EXPECT_EQ(program.Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
  while (reader->Read(&tuning)) {
  }
  EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
}

TEST_F(TuneStreamTest, ClientsThatWatchGoOnWhenTheServerIsBack) {
  std::string name;
  {
    TuningConnection program(channel_);
    name = Begin(program, "p");
    ASSERT_TRUE(program.Report(1, {TuningRun({2, 0}, 1)}));
    ASSERT_TRUE(program.WaitAcknowledged(1));
  }
  absl::StatusOr<std::unique_ptr<Client>> client = Client::Connect(server_->address(), ClientCredentials());
  ASSERT_TRUE(client.ok()) << client.status();
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<uint64_t> generations;  // guarded by mutex
  const auto wait_for = [&](uint64_t generation) {
    std::unique_lock lock(mutex);
    return changed.wait_for(lock, std::chrono::seconds(30),
                            [&] { return !generations.empty() && generations.back() >= generation; });
  };
  absl::Status end;
  std::thread watcher([&] {
    end = (*client)->WatchTuning(name, [&](const v1::Tuning& tuning) {
      std::lock_guard lock(mutex);
      generations.push_back(tuning.generation());
      changed.notify_all();
      return tuning.generation() < 3;
    });
  });
  EXPECT_TRUE(wait_for(1));
  Restart();
  grpc::ClientContext first, second;
  v1::ResetTuningRequest request;
  request.set_name(name);
  v1::Tuning reset;
  EXPECT_TRUE(stub_->ResetTuning(&first, request, &reset).ok());
  EXPECT_EQ(reset.generation(), 2u);
  EXPECT_TRUE(wait_for(2));
  EXPECT_TRUE(stub_->ResetTuning(&second, request, &reset).ok());
  watcher.join();
  EXPECT_TRUE(end.ok()) << end;
  EXPECT_TRUE(std::is_sorted(generations.begin(), generations.end()));
}

TEST_F(TuneStreamTest, ProgramsThatVanishLeaveNothing) {
  std::string name;
  for (int i = 0; i < 20; ++i) {
    TuningConnection program(channel_);
    program.Hello("p" + std::to_string(i));
    program.Declare(Section());
    program.Report(1, {TuningRun({2, 0}, 1)}, 3);
    if (i % 2 == 0) program.Cancel();
  }
  TuningConnection last(channel_);
  name = Begin(last, "last");
  for (int attempt = 0; attempt < 100 && Details(name).tuning().programs() > 1; ++attempt)
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_EQ(Details(name).tuning().programs(), 1u);
}

TEST_F(TuneStreamTest, MetricsCount) {
  TuningConnection program(channel_);
  Begin(program, "p");
  ASSERT_TRUE(program.Report(1, {TuningRun({2, 0}, 1), TuningRun({2, 0}, 1)}, 1));
  ASSERT_TRUE(program.WaitAcknowledged(1));
  ASSERT_TRUE(program.Wait(
      [](const v1::TuneResponse& r) { return r.has_choice() && r.choice().proposals_size() > 0; }));
  const std::string text = server_->metrics().registry.Text();
  EXPECT_THAT(text, HasSubstr("fusion_tuning_reports_total 2\n"));
  EXPECT_THAT(text, HasSubstr("fusion_tuning_proposals_total 1\n"));
  EXPECT_THAT(text, HasSubstr("fusion_tunings_live 1\n"));
  EXPECT_THAT(text, HasSubstr("fusion_tuning_programs_connected 1\n"));
  EXPECT_THAT(text, ::testing::Not(HasSubstr("fusion_tuning_commit_seconds_count 0\n")));
}

}  // namespace
}  // namespace fusion::testing
