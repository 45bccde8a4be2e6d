// How fast a server takes reports of running programs, and how soon it answers: a real server on loopback,
// programs in a process of their own that speak the raw protocol. Everything is durable as always.
//
//   tuning_server_bench [--programs 8] [--seconds 5] [--batch 8] [--run-seconds 0.005] [--stored 10 1000
//   1000000] [--strategy S]
//                       [--folder DIR] [--memory-folder DIR] prints JSON
//
// Each with the database on the disk of --folder, and with all of it in memory (--memory-folder, a tmpfs):
// what the server itself takes. What the disk takes is measured before each case.
//
// For each number of reports stored before: how many reports a second are acknowledged when the programs send
// as fast as they can (batches of --batch reports, --window of them on the way), and how long it takes from
// sending a report of one run until it is acknowledged, and until the next proposal is there, when each
// program waits for both and then runs for --run-seconds (0: at once, so that the processors, which programs
// and server share, are what is measured).
#include <fcntl.h>
#include <google/protobuf/text_format.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/grpcpp.h>
#include <spdlog/spdlog.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "fusion/v1/tuner.grpc.pb.h"
#include "server/metrics/server_metrics.h"
#include "server/rpc/server.h"
#include "server/tuner/declared_section.h"
#include "server/tuner/parameter_space.h"
#include "server/upkeep/data_directory.h"

namespace fusion {
namespace {

using Clock = std::chrono::steady_clock;
using Json = nlohmann::ordered_json;

struct Options {
  int programs = 8;
  double seconds = 5;
  double run_seconds = 0.005;
  int batch = 8;
  int window = 64;
  std::string strategy;
  std::string folder, memory_folder = "/dev/shm";
  std::vector<int64_t> stored = {10, 1000, 1'000'000};
  std::string address;  // of the programs' process: the server
};

double Seconds(Clock::duration time) { return std::chrono::duration<double>(time).count(); }

v1::SectionDeclaration Section(const Options& options) {
  v1::SectionDeclaration declaration;
  google::protobuf::TextFormat::ParseFromString(
      "program: 'bench' section: 'section' device_class: 'cpu' context { name: 'n' value: 1000 } "
      "parameters { name: 'a' integer { lower: 1 upper: 256 step: 1 } } "
      "parameters { name: 'b' power_of_two { lower: 1 upper: 1024 } } "
      "parameters { name: 'c' integer { lower: 0 upper: 31 step: 1 } } "
      "parameters { name: 'd' enumeration { values: 'x' values: 'y' values: 'z' } }",
      &declaration);
  declaration.set_strategy(options.strategy);
  return declaration;
}

double Value(const google::protobuf::RepeatedField<double>& values, std::mt19937& random) {
  const double value =
      1e-3 * (1 + std::fabs(values[0] - 100) / 100 + std::fabs(std::log2(values[1]) - 6) / 4 +
              std::fabs(values[2] - 20) / 20 + 0.1 * values[3]);
  return value * std::exp(std::normal_distribution<double>(0, 0.02)(random));
}

// ---- The programs

struct Figures {
  double reports = 0, seconds = 0;             // acknowledged
  std::vector<double> acknowledged, proposed;  // seconds of each
};

class Program {
 public:
  Program(const Options& options, int number) : options_(options), random_(static_cast<unsigned>(number)) {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);  // a connection of its own
    channel_ = grpc::CreateCustomChannel(options.address, grpc::InsecureChannelCredentials(), arguments);
    stub_ = v1::TunerService::NewStub(channel_);
    stream_ = stub_->Tune(&context_);
    v1::TuneRequest request;
    request.mutable_hello()->set_process(absl::StrCat("bench-", getpid(), "-", number));
    stream_->Write(request);
    request.mutable_declare()->set_section(1);
    *request.mutable_declare()->mutable_declaration() = Section(options);
    stream_->Write(request);
    v1::TuneResponse response;
    while (stream_->Read(&response))
      if (response.has_choice()) break;
    best_ = response.choice().best();
  }

  // As fast as it can for a while.
  void Send(Figures* figures) {
    std::atomic<uint64_t> acknowledged{sequence_};
    const Clock::time_point begin = Clock::now(),
                            end = begin + std::chrono::duration_cast<Clock::duration>(
                                              std::chrono::duration<double>(options_.seconds));
    std::atomic<uint64_t> last{UINT64_MAX};
    std::thread reader([&] {
      v1::TuneResponse response;
      while (acknowledged < last && stream_->Read(&response)) {
        if (!response.has_acknowledged()) continue;
        acknowledged = response.acknowledged().sequence();
        acknowledged.notify_all();
      }
    });
    uint64_t sent = 0;
    v1::TuneRequest request;
    while (Clock::now() < end) {
      const uint64_t known = acknowledged;
      if (sequence_ - known >= static_cast<uint64_t>(options_.window)) {
        acknowledged.wait(known);
        continue;
      }
      request.Clear();
      request.mutable_reports()->set_sequence(++sequence_);
      for (int i = 0; i < options_.batch; ++i) AddReport(best_.values(), 0, request.mutable_reports());
      ++sent;
      if (!stream_->Write(request)) std::abort();
    }
    last = sequence_;
    // One more, so that the reader comes to see it.
    request.Clear();
    request.mutable_reports()->set_sequence(++sequence_);
    stream_->Write(request);
    reader.join();
    figures->seconds = Seconds(Clock::now() - begin);
    figures->reports = static_cast<double>(sent) * options_.batch;
    v1::TuneResponse response;
    while (acknowledged < sequence_ && stream_->Read(&response))
      if (response.has_acknowledged()) acknowledged = response.acknowledged().sequence();
  }

  // One run after the other, each with a proposal.
  void RoundTrips(Figures* figures) {
    const Clock::time_point end = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                                     std::chrono::duration<double>(options_.seconds));
    v1::TuneRequest request;
    request.mutable_reports()->set_sequence(++sequence_);
    request.mutable_reports()->add_demands()->set_section(1);
    request.mutable_reports()->mutable_demands(0)->set_wanted(1);
    stream_->Write(request);
    v1::TuneResponse response;
    v1::TuningProposal proposal;
    bool converged = false;
    auto wait = [&](bool acknowledged_wanted, bool proposal_wanted, Clock::time_point since) {
      while ((acknowledged_wanted || (proposal_wanted && !converged)) && stream_->Read(&response)) {
        if (response.has_acknowledged() && response.acknowledged().sequence() >= sequence_) {
          if (acknowledged_wanted) figures->acknowledged.push_back(Seconds(Clock::now() - since));
          acknowledged_wanted = false;
        } else if (response.has_choice()) {
          converged = response.choice().phase() == v1::CONVERGED;
          if (response.choice().proposals_size() == 0) continue;
          proposal = response.choice().proposals(0);
          if (proposal_wanted) figures->proposed.push_back(Seconds(Clock::now() - since));
          proposal_wanted = false;
        }
      }
    };
    wait(true, true, Clock::now());
    figures->acknowledged.clear();
    figures->proposed.clear();
    while (Clock::now() < end) {
      request.Clear();
      request.mutable_reports()->set_sequence(++sequence_);
      const bool explore = proposal.id() != 0;
      AddReport(explore ? proposal.configuration().values() : best_.values(), proposal.id(),
                request.mutable_reports());
      proposal.Clear();
      if (options_.run_seconds > 0)
        std::this_thread::sleep_for(std::chrono::duration<double>(options_.run_seconds));
      const Clock::time_point since = Clock::now();
      stream_->Write(request);
      wait(true, explore, since);
    }
  }

  void Close() {
    stream_->WritesDone();
    v1::TuneResponse response;
    while (stream_->Read(&response)) {
    }
    const grpc::Status status = stream_->Finish();
    if (!status.ok()) std::cerr << "stream: " << status.error_message() << "\n";
  }

 private:
  void AddReport(const google::protobuf::RepeatedField<double>& values, uint64_t proposal,
                 v1::ReportBatch* batch) {
    v1::TuningReport* report = batch->add_reports();
    report->set_section(1);
    report->set_proposal(proposal);
    *report->mutable_configuration()->mutable_values() = values;
    report->set_count(1);
    report->set_mean(Value(values, random_));
    report->set_minimum(report->mean());
  }

  const Options& options_;
  std::mt19937 random_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::TunerService::Stub> stub_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReaderWriter<v1::TuneRequest, v1::TuneResponse>> stream_;
  v1::Configuration best_;
  uint64_t sequence_ = 0;
};

Json Quantiles(std::vector<double> values) {
  if (values.empty()) return nullptr;
  std::sort(values.begin(), values.end());
  auto at = [&](double share) {
    return values[static_cast<size_t>(share * static_cast<double>(values.size() - 1))];
  };
  return {{"count", values.size()},
          {"p50_seconds", at(0.5)},
          {"p99_seconds", at(0.99)},
          {"maximum_seconds", values.back()}};
}

Json RunPrograms(const Options& options) {
  std::vector<std::unique_ptr<Program>> programs;
  for (int i = 0; i < options.programs; ++i) programs.push_back(std::make_unique<Program>(options, i));
  Json result;
  for (const bool as_fast : {false, true}) {
    std::vector<Figures> figures(programs.size());
    std::vector<std::thread> threads;
    for (size_t i = 0; i < programs.size(); ++i)
      threads.emplace_back(
          [&, i] { as_fast ? programs[i]->Send(&figures[i]) : programs[i]->RoundTrips(&figures[i]); });
    for (std::thread& thread : threads) thread.join();
    if (as_fast) {
      double rate = 0;
      for (const Figures& of : figures) rate += of.reports / of.seconds;
      result["reports_per_second"] = rate;
    } else {
      Figures all;
      for (const Figures& of : figures) {
        all.acknowledged.insert(all.acknowledged.end(), of.acknowledged.begin(), of.acknowledged.end());
        all.proposed.insert(all.proposed.end(), of.proposed.begin(), of.proposed.end());
      }
      result["acknowledged"] = Quantiles(all.acknowledged);
      result["next_proposal"] = Quantiles(all.proposed);
    }
  }
  for (auto& program : programs) program->Close();
  return result;
}

// ---- The server

// So many reports as if they had come before.
absl::Status Fill(const std::string& folder, const Options& options, int64_t count) {
  absl::StatusOr<std::unique_ptr<Store>> store = OpenSqliteStore(DatabasePath(folder));
  if (!store.ok()) return store.status();
  const v1::SectionDeclaration declaration = Section(options);
  absl::StatusOr<std::shared_ptr<const ParameterSpace>> space = ParameterSpace::Create(declaration);
  if (!space.ok()) return space.status();
  TuningRecord tuning;
  tuning.key = *KeyOf(declaration);
  tuning.declaration = declaration.SerializeAsString();
  tuning.strategy = options.strategy;
  tuning.defaults = EncodePoint((*space)->defaults());
  absl::StatusOr<TuningRecord> opened =
      (*store)->OpenTuning(tuning, false, Timestamp(std::chrono::seconds(1)));
  if (!opened.ok()) return opened.status();
  std::mt19937 random(7);
  constexpr int64_t kBatch = 20'000;
  for (int64_t done = 0, sequence = 1; done < count; ++sequence) {
    TuningBatch batch{"before", sequence, {}};
    for (int64_t i = 0; i < kBatch && done < count; ++i, ++done) {
      // A thousand configurations, of which a search remembers all.
      const TuningPoint point =
          (*space)->GridPoint((static_cast<uint64_t>(random()) % 1000) * ((*space)->grid_points() / 1000));
      google::protobuf::RepeatedField<double> values(point.begin(), point.end());
      const double value = Value(values, random);
      TuningReportRecord& report = batch.reports.emplace_back();
      report.tuning = opened->number;
      report.generation = opened->progress.generation;
      report.time = Timestamp(std::chrono::seconds(2));
      report.runs = {EncodePoint(point), 1, value, 0, value, 0};
    }
    if (absl::Status status = (*store)->CommitTunings({batch}, {}, Timestamp(std::chrono::seconds(2)));
        !status.ok())
      return status;
  }
  return absl::OkStatus();
}

// What the disk takes to make safe what a small commit adds to the log, as often as eight programs commit.
Json SyncTimes(const std::string& folder) {
  const std::string path = folder + "/sync";
  const int file = open(path.c_str(), O_CREAT | O_WRONLY, 0600);
  std::vector<double> times;
  const std::string pages(6 * 4096, 'x');
  for (int i = 0; i < 2000 && file >= 0; ++i) {
    if (write(file, pages.data(), pages.size()) < 0) break;
    const Clock::time_point begin = Clock::now();
    fdatasync(file);
    times.push_back(Seconds(Clock::now() - begin));
    std::this_thread::sleep_for(std::chrono::microseconds(500));
  }
  close(file);
  std::filesystem::remove(path);
  return Quantiles(times);
}

double Sum(const std::string& metrics, const std::string& name) {
  const size_t at = metrics.find("\n" + name + " ");
  return at == std::string::npos ? 0 : std::strtod(metrics.c_str() + at + name.size() + 2, nullptr);
}

// This program again, as the programs' process; what it printed.
absl::StatusOr<Json> InOtherProcess(const Options& options) {
  const std::string command =
      absl::StrCat(std::filesystem::read_symlink("/proc/self/exe").string(), " --address ", options.address,
                   " --programs ", options.programs, " --seconds ", options.seconds, " --run-seconds ",
                   options.run_seconds, " --batch ", options.batch, " --window ", options.window,
                   options.strategy.empty() ? "" : absl::StrCat(" --strategy ", options.strategy));
  FILE* const pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return absl::InternalError("cannot start the programs");
  std::string text;
  char buffer[4096];
  for (size_t size; (size = fread(buffer, 1, sizeof(buffer), pipe)) > 0;) text.append(buffer, size);
  if (pclose(pipe) != 0) return absl::InternalError("the programs failed");
  return Json::parse(text);
}

// One case: a fresh database in the folder, with so many reports.
absl::StatusOr<Json> Measure(Options options, const std::string& folder, int64_t stored) {
  Json row = {{"stored_before", stored}, {"fdatasync", SyncTimes(folder)}};
  const std::string data = absl::StrCat(folder, "/stored-", stored);
  std::filesystem::remove_all(data);
  std::filesystem::create_directories(data);
  if (absl::Status status = Fill(data, options, stored); !status.ok()) return status;
  ServerOptions server_options;
  server_options.address = "127.0.0.1:0";
  server_options.data_directory = data;
  absl::StatusOr<std::unique_ptr<Server>> server = Server::Start(server_options);
  if (!server.ok()) return server.status();
  options.address = (*server)->address();
  absl::StatusOr<Json> of_programs = InOtherProcess(options);
  if (!of_programs.ok()) return of_programs.status();
  const std::string metrics = (*server)->metrics().registry.Text();
  server->reset();
  row.update(*of_programs);
  const double commits = Sum(metrics, "fusion_tuning_commit_seconds_count");
  row["commits"] = commits;
  row["reports_of_commit"] = commits > 0 ? Sum(metrics, "fusion_tuning_reports_total") / commits : 0;
  row["mean_commit_seconds"] = commits > 0 ? Sum(metrics, "fusion_tuning_commit_seconds_sum") / commits : 0;
  return row;
}

// All cases, in a new folder inside this one that is removed afterwards.
absl::StatusOr<Json> MeasureAll(const Options& options, const std::filesystem::path& parent) {
  std::string folder = (parent / "fusion_tuning_bench_XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr)
    return absl::InternalError("cannot make a folder in " + parent.string());
  absl::StatusOr<Json> cases = Json::array();
  for (const int64_t stored : options.stored) {
    absl::StatusOr<Json> row = Measure(options, folder, stored);
    if (!row.ok()) {
      cases = row.status();
      break;
    }
    cases->push_back(*std::move(row));
  }
  std::filesystem::remove_all(folder);
  return cases;
}

int Serve(const Options& options) {
  Json result = {{"programs", options.programs},
                 {"batch", options.batch},
                 {"run_seconds", options.run_seconds},
                 {"strategy", options.strategy.empty() ? "portfolio" : options.strategy},
                 {"processors", std::thread::hardware_concurrency()}};
  const std::filesystem::path disk =
      options.folder.empty() ? std::filesystem::temp_directory_path() : std::filesystem::path(options.folder);
  for (const auto& [name, folder] : {std::pair<std::string, std::filesystem::path>{"cases", disk},
                                     {"cases_in_memory", options.memory_folder}}) {
    absl::StatusOr<Json> cases = MeasureAll(options, folder);
    if (!cases.ok()) {
      std::cerr << "error: " << cases.status() << "\n";
      return 1;
    }
    result[name] = *std::move(cases);
  }
  std::cout << result.dump(2) << "\n";
  return 0;
}

int Main(int argc, char** argv) {
  Options options;
  CLI::App app("Reports of running programs: how many a second, and how soon answered");
  app.add_option("--programs", options.programs)->check(CLI::Range(1, 1000))->capture_default_str();
  app.add_option("--seconds", options.seconds, "Of each of the two measurements")->capture_default_str();
  app.add_option("--run-seconds", options.run_seconds, "Of a run, between round trips")
      ->capture_default_str();
  app.add_option("--batch", options.batch, "Reports of a batch")
      ->check(CLI::Range(1, 10000))
      ->capture_default_str();
  app.add_option("--window", options.window, "Batches on the way")
      ->check(CLI::Range(1, 10000))
      ->capture_default_str();
  app.add_option("--stored", options.stored, "Reports stored before")->capture_default_str();
  app.add_option("--strategy", options.strategy, "Of the search");
  app.add_option("--folder", options.folder, "Where the databases are (default: where temporary files are)");
  app.add_option("--memory-folder", options.memory_folder, "And where they need no disk")
      ->capture_default_str();
  app.add_option("--address", options.address, "Only the programs, against this server");
  CLI11_PARSE(app, argc, argv);
  spdlog::set_level(spdlog::level::warn);
  if (options.address.empty()) return Serve(options);
  std::cout << RunPrograms(options).dump() << "\n";
  return 0;
}

}  // namespace
}  // namespace fusion

int main(int argc, char** argv) { return fusion::Main(argc, argv); }
