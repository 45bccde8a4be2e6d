// A server that is killed while programs tune: what it acknowledged is there once, and so is everything else
// when it was sent again. FUSION_KILLS says how often.
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <map>
#include <random>
#include <set>
#include <thread>

#include "tests/eventually.h"
#include "tests/fault/long_form.h"
#include "tests/integration/process.h"
#include "tests/tuning_connection.h"

namespace fusion::testing {
namespace {

constexpr int kPrograms = 4;

int Kills() {
  const char* wanted = std::getenv("FUSION_KILLS");
  return wanted != nullptr ? std::atoi(wanted) : Count(5, 100);
}

v1::SectionDeclaration Section() {
  v1::SectionDeclaration declaration;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
      "program: 'p' section: 's' device_class: 'cpu' parameters { name: 'tile' integer { lower: 1 upper: 64 "
      "step: 1 } }",
      &declaration));
  return declaration;
}

// Sends batches of reports whose values are all different, keeps them until they are acknowledged, and
// connects again whenever the stream breaks, as a program does.
class ResendingProgram {
 public:
  ResendingProgram(std::string address, int number)
      : address_(std::move(address)), process_("process" + std::to_string(number)), number_(number) {}

  // Until `stop`, and then until everything is acknowledged.
  void Run(const std::atomic<bool>& stop) {
    while (!stop || acknowledged_ < sent_) {
      // As the library does. A channel that is kept waits after a failure, longer than it takes the server to
      // be back.
      auto channel = TuningChannel(address_);
      TuningConnection connection(channel);
      RunConnection(connection, stop);
    }
  }
  const std::string& process() const { return process_; }
  uint64_t acknowledged() const { return acknowledged_; }
  uint64_t sent() const { return sent_; }
  uint64_t lost() const { return lost_; }
  int connections() const { return connections_; }
  // The value that stands for one report: none like another, and yet no drift.
  static double ValueOf(int number, uint64_t sequence, int report) {
    return 1 + 1e-12 * (number * 1e8 + static_cast<double>(sequence) * 10 + report);
  }
  static int ReportsOf(uint64_t sequence) { return static_cast<int>(sequence % 4); }

 private:
  static bool IsAcknowledged(const v1::TuneResponse& response) { return response.has_acknowledged(); }

  void RunConnection(TuningConnection& connection, const std::atomic<bool>& stop) {
    connection.Hello(process_);
    const auto welcome = connection.Wait(&v1::TuneResponse::has_welcome);
    if (!welcome) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      return;
    }
    ++connections_;
    // Everything acknowledged is on the disk.
    if (welcome->welcome().last_sequence() < acknowledged_)
      lost_ += acknowledged_ - welcome->welcome().last_sequence();
    acknowledged_ = std::max<uint64_t>(acknowledged_, welcome->welcome().last_sequence());
    connection.Declare(Section());
    const auto declared = connection.Wait(&v1::TuneResponse::has_declared);
    if (!declared) return;
    for (uint64_t sequence = acknowledged_ + 1; sequence <= sent_; ++sequence) Send(connection, sequence);
    for (;;) {
      if (!stop && sent_ < acknowledged_ + 50) {
        Send(connection, ++sent_);
        // As when an answer was late: a batch twice.
        if (sent_ % 7 == 0) Send(connection, sent_);
        std::this_thread::sleep_for(std::chrono::microseconds(500));
      }
      const bool full = stop || sent_ >= acknowledged_ + 50;
      const auto response = connection.Wait(&IsAcknowledged, std::chrono::milliseconds(full ? 1000 : 0));
      if (response) acknowledged_ = std::max<uint64_t>(acknowledged_, response->acknowledged().sequence());
      if (stop && acknowledged_ >= sent_) return;
      if (broken_) {
        broken_ = false;
        return;
      }
      if (full && !response) return;  // it may be broken
    }
  }
  void Send(TuningConnection& connection, uint64_t sequence) {
    std::vector<v1::TuningReport> reports;
    for (int i = 0; i < ReportsOf(sequence); ++i)
      reports.push_back(TuningRun({static_cast<double>(1 + sequence % 64)}, ValueOf(number_, sequence, i)));
    if (!connection.Report(sequence, reports, 1)) broken_ = true;
  }

  const std::string address_, process_;
  const int number_;
  std::atomic<uint64_t> acknowledged_{0}, sent_{0};
  uint64_t lost_ = 0;
  int connections_ = 0;
  bool broken_ = false;
};

TEST(KilledServerTest, NoAcknowledgedReportIsLostAndNoneCountsTwice) {
  const ClientProgram client;
  auto server = std::make_unique<ServerProcess>(client);
  const std::string address = server->address();
  std::vector<std::unique_ptr<ResendingProgram>> programs;
  std::vector<std::thread> threads;
  std::atomic<bool> stop{false};
  for (int i = 0; i < kPrograms; ++i) programs.push_back(std::make_unique<ResendingProgram>(address, i));
  for (auto& program : programs) threads.emplace_back([&] { program->Run(stop); });
  std::mt19937 random(1);
  const int kills = Kills();
  for (int kill = 0; kill < kills && !::testing::Test::HasFailure(); ++kill) {
    // A kill that comes before anything was acknowledged shows nothing.
    const uint64_t before = programs[0]->acknowledged();
    EXPECT_TRUE(Eventually([&] { return programs[0]->acknowledged() > before; }))
        << "no report was acknowledged after kill " << kill;
    std::this_thread::sleep_for(std::chrono::milliseconds(random() % 200));
    server->Signal(SIGKILL);
    server->Wait();
    server = std::make_unique<ServerProcess>(client, address);
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();

  std::map<std::string, std::multiset<double>> stored;
  auto stub = v1::TunerService::NewStub(TuningChannel(address));
  v1::ListTuningsResponse tunings;
  {
    grpc::ClientContext context;
    ASSERT_TRUE(stub->ListTunings(&context, {}, &tunings).ok());
  }
  ASSERT_EQ(tunings.tunings_size(), 1);
  v1::ListTuningReportsRequest request;
  request.set_name(tunings.tunings(0).name());
  request.set_page_size(10000);
  uint64_t count = 0;
  do {
    grpc::ClientContext context;
    v1::ListTuningReportsResponse page;
    ASSERT_TRUE(stub->ListTuningReports(&context, request, &page).ok());
    for (const v1::StoredTuningReport& report : page.reports())
      stored[report.process()].insert(report.report().mean());
    count += static_cast<uint64_t>(page.reports_size());
    request.set_page_token(page.next_page_token());
  } while (!request.page_token().empty());

  uint64_t expected = 0, batches = 0;
  for (int number = 0; number < kPrograms; ++number) {
    const ResendingProgram& program = *programs[static_cast<size_t>(number)];
    EXPECT_EQ(program.lost(), 0u) << program.process();
    EXPECT_EQ(program.acknowledged(), program.sent());
    EXPECT_GE(program.connections(), kills);
    std::multiset<double> sent;
    for (uint64_t sequence = 1; sequence <= program.sent(); ++sequence)
      for (int i = 0; i < ResendingProgram::ReportsOf(sequence); ++i)
        sent.insert(ResendingProgram::ValueOf(number, sequence, i));
    EXPECT_EQ(stored[program.process()] == sent, true)
        << program.process() << ": " << sent.size() << " sent, " << stored[program.process()].size()
        << " stored";
    expected += sent.size();
    batches += program.sent();
  }
  EXPECT_EQ(count, expected);
  // The sums say the same as the reports.
  uint64_t runs = 0;
  v1::TuningDetails details;
  {
    grpc::ClientContext context;
    v1::GetTuningRequest get;
    get.set_name(tunings.tunings(0).name());
    ASSERT_TRUE(stub->GetTuning(&context, get, &details).ok());
  }
  EXPECT_EQ(details.tuning().runs(), expected);
  if (details.tuning().drifts() == 0) {
    for (const auto& configuration : details.configurations()) runs += configuration.count();
    EXPECT_EQ(runs, expected);
  }
  std::cout << kills << " kills, " << batches << " batches, " << count << " reports\n";
  TellFigure("server killed", kills);
  TellFigure("reports, each stored once", static_cast<double>(count));
}

}  // namespace
}  // namespace fusion::testing
