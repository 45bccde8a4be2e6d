// Mutation test of the verification: wrong kernels of every skeleton, printed for the host or for CUDA, and
// whether the worker refuses them.
//
//   build/release/tests/mutation_table                              # a sample on the host
//   build/release/tests/mutation_table --per-kind 20 --subjects 8   # the table
//   build/release/tests/mutation_table --target cuda --per-kind 20 --subjects 8 --json mutants.json
//
// Exit status: 0 all mutants that compute anything else are caught, 1 some are missed, 2 something went
// wrong, 77 there is no such device (with --build-only no device is needed, and nothing is judged).
#include <stdlib.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <fstream>
#include <future>
#include <iostream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "server/codegen/source.h"
#include "server/skeletons/skeletons.h"
#include "tests/mutation/mutants.h"
#include "tests/mutation/subjects.h"
#include "tests/mutation/trial.h"
#include "worker/build/host_builder.h"
#include "worker/measure/host_backend.h"
#include "worker/measure/runner_process.h"

namespace fusion::testing {
namespace {

constexpr int kFailed = 2, kNoDevice = 77;

struct Options {
  std::string target = "host", json, rows;
  int per_kind = 2;
  size_t subjects = 1;
  unsigned seed = 1;
  unsigned parallel = std::max(1u, std::thread::hardware_concurrency());
  int together = 16, data_sets = 270;
  bool build_only = false, list = false, examples = false;
};

struct Counts {
  int made = 0, caught = 0, same = 0, rounding = 0, missed = 0, not_judged = 0, not_built = 0;
  int by_example = 0, harmless = 0, missed_by_example = 0;  // of those caught
};

// Of a row: mutations of each of its subjects, so many of each kind altogether, in turn from each subject.
std::vector<std::vector<Mutation>> Choose(const std::vector<const Subject*>& subjects, v1::Target target,
                                          const Options& options) {
  std::vector<std::vector<Mutation>> chosen(subjects.size());
  std::vector<std::vector<Mutation>> all;
  std::vector<std::set<std::string>> seen(subjects.size());
  const auto text_of = [&](const Subject& subject, MutableCode code) {
    return PrintKernels(&code, target, "k", subject.sizes);
  };
  for (size_t s = 0; s < subjects.size(); ++s) {
    const Subject& subject = *subjects[s];
    seen[s].insert(text_of(subject, Unchanged(subject.code)));
    all.push_back(MutationsOf(subject.code, target, subject.first_launch, subject.last_launch));
    std::mt19937 random(options.seed);
    std::shuffle(all.back().begin(), all.back().end(), random);
  }
  for (const MutationKind kind : kMutationKinds) {
    std::vector<size_t> next(subjects.size(), 0);
    int count = 0;
    for (bool any = true; any && count < options.per_kind;) {
      any = false;
      for (size_t s = 0; s < subjects.size() && count < options.per_kind; ++s)
        for (; next[s] < all[s].size(); ++next[s]) {
          const Mutation& mutation = all[s][next[s]];
          if (mutation.kind != kind) continue;
          MutableCode mutant = Unchanged(subjects[s]->code);
          mutation.apply(&mutant);
          // The change may stand in a version that these sizes do not launch.
          if (!seen[s].insert(text_of(*subjects[s], std::move(mutant))).second) continue;
          chosen[s].push_back(mutation);
          ++next[s];
          ++count;
          any = true;
          break;
        }
    }
  }
  return chosen;
}

class Table {
 public:
  Table(std::string printer, v1::Target target) : printer_(std::move(printer)), target_(target) {}

  void Add(const Trial& trial) {
    for (size_t i = 0; i < trial.mutations().size(); ++i) {
      const Mutation& mutation = trial.mutations()[i];
      const Judgement& judgement = trial.judgements()[i];
      Counts& counts = counts_[{trial.subject().row, mutation.kind}];
      ++(judgement.fate == Fate::kNotBuilt ? counts.not_built : counts.made);
      switch (judgement.fate) {
        case Fate::kNotBuilt:
          break;
        case Fate::kCaught:
          ++counts.caught;
          break;
        case Fate::kSame:
          ++counts.same;
          break;
        case Fate::kRounding:
          ++counts.rounding;
          break;
        case Fate::kMissed:
          ++counts.missed;
          break;
        case Fate::kNotJudged:
          ++counts.not_judged;
          break;
      }
      const ExampleFate of_example = trial.example_fates()[i];
      counts.by_example += of_example == ExampleFate::kCaught;
      counts.harmless += of_example == ExampleFate::kHarmless;
      counts.missed_by_example += of_example == ExampleFate::kMissed;
      const std::string graph = Describe(*trial.subject().graph, trial.subject().implementation);
      const std::string sizes = absl::StrJoin(trial.subject().sizes, ",", absl::PairFormatter("="));
      static constexpr const char* kFates[] = {"not built", "caught", "same",
                                               "rounding",  "missed", "not judged"};
      static constexpr const char* kExampleFates[] = {"not tried", "caught", "harmless", "missed"};
      mutants_.push_back({{"row", trial.subject().row},
                          {"printer", printer_},
                          {"kind", NameOf(mutation.kind)},
                          {"kernel", graph},
                          {"sizes", sizes},
                          {"change", mutation.what},
                          {"fate", kFates[static_cast<int>(judgement.fate)]},
                          {"message", judgement.message},
                          {"example", kExampleFates[static_cast<int>(of_example)]}});
      if (of_example == ExampleFate::kMissed)
        std::cout << "MISSED BY THE EXAMPLE " << trial.subject().row << ", " << NameOf(mutation.kind) << ", "
                  << graph << " at " << sizes << "\n  " << mutation.what << "\n  " << judgement.message
                  << std::endl;
      if (judgement.fate == Fate::kMissed ||
          (judgement.fate == Fate::kNotJudged && !judgement.message.empty()))
        std::cout << (judgement.fate == Fate::kMissed ? "MISSED " : "NOT JUDGED ") << trial.subject().row
                  << ", " << NameOf(mutation.kind) << ", " << graph << " at " << sizes << "\n  "
                  << mutation.what << "\n  " << judgement.message << std::endl;
    }
  }

  void Print() const {
    std::cout << absl::StrFormat("%-24s %-6s %-8s %6s %6s %10s %6s %10s %8s %6s\n", "skeleton", "print",
                                 "kind", "made", "caught", "equivalent", "missed", "by example", "harmless",
                                 "missed");
    Counts all;
    std::set<MutationKind> equivalent;
    int rounding = 0;
    for (const std::string& row : RowNames())
      for (const MutationKind kind : kMutationKinds) {
        const auto found = counts_.find({row, kind});
        if (found == counts_.end()) continue;
        const Counts& counts = found->second;
        std::cout << absl::StrFormat(
            "%-24s %-6s %-8s %6d %6d %10d %6d %10d %8d %6d%s\n", row, printer_, NameOf(kind), counts.made,
            counts.caught, counts.same + counts.rounding, counts.missed, counts.by_example, counts.harmless,
            counts.missed_by_example,
            counts.not_judged > 0 ? absl::StrCat("  not judged ", counts.not_judged) : "");
        all.made += counts.made;
        all.caught += counts.caught;
        all.same += counts.same;
        all.rounding += counts.rounding;
        all.missed += counts.missed;
        all.not_judged += counts.not_judged;
        all.not_built += counts.not_built;
        all.by_example += counts.by_example;
        all.harmless += counts.harmless;
        all.missed_by_example += counts.missed_by_example;
        if (counts.same > 0) equivalent.insert(kind);
        rounding += counts.rounding;
      }
    std::cout << absl::StrFormat("%-24s %-6s %-8s %6d %6d %10d %6d %10d %8d %6d\n", "all", printer_, "",
                                 all.made, all.caught, all.same + all.rounding, all.missed, all.by_example,
                                 all.harmless, all.missed_by_example);
    std::cout << all.not_built << " did not compile and are not counted, " << all.not_judged
              << " could not be judged\n";
    for (const MutationKind kind : equivalent)
      std::cout << "equivalent, " << NameOf(kind) << ": " << WhyEquivalent(kind, target_) << "\n";
    if (rounding > 0)
      std::cout << "equivalent but for rounding (" << rounding
                << "): the same terms are added in another order, or parts that rounding hides on all data\n";
  }

  void WriteJson(const std::string& path) const { std::ofstream(path) << mutants_.dump(1) << "\n"; }
  bool misses() const {
    return std::any_of(counts_.begin(), counts_.end(), [](const auto& entry) {
      return entry.second.missed > 0 || entry.second.missed_by_example > 0;
    });
  }
  bool is_complete() const {
    return std::none_of(counts_.begin(), counts_.end(),
                        [](const auto& entry) { return entry.second.not_judged > 0; });
  }

 private:
  const std::string printer_;
  const v1::Target target_;
  std::map<std::pair<std::string, MutationKind>, Counts> counts_;
  nlohmann::json mutants_ = nlohmann::json::array();
};

absl::StatusOr<v1::DeviceDescription> FindDevice(const Options& options) {
  v1::DeviceDescription device;
  if (options.target == "host") {
    device.set_target(v1::HOST);
    device.set_arch(HostArch());
    device.set_uuid(HostUuid());
    return device;
  }
  if (options.build_only) {
    device.set_target(v1::CUDA);
    device.set_arch("sm_90");
    return device;
  }
  auto described = RunnerProcess().Outline();
  if (!described.ok()) return described.status();
  if (described->devices().empty())
    return absl::NotFoundError(described->notes().empty() ? "no CUDA device" : described->notes(0));
  return described->devices(0);
}

int Run(const Options& options) {
  const v1::Target target = options.target == "cuda" ? v1::CUDA : v1::HOST;
  auto device = FindDevice(options);
  if (!device.ok()) {
    std::cout << "SKIP: " << device.status().message() << "\n";
    return kNoDevice;
  }
  auto builder = target == v1::CUDA ? IsolatedBuilder::Create(v1::CUDA) : MakeBuilder(v1::HOST);
  if (!builder.ok()) {
    std::cout << "SKIP: " << builder.status().message() << "\n";
    return kNoDevice;
  }
  auto subjects = MakeSubjects(options.subjects);
  if (!subjects.ok()) {
    std::cerr << subjects.status() << "\n";
    return kFailed;
  }
  TrialOptions trial_options{.device = *device,
                             .builder = builder->get(),
                             .at_once = options.parallel,
                             .together = options.together,
                             .data_sets = options.data_sets,
                             .examples = options.examples,
                             .compare_seconds = target == v1::CUDA ? 60.0 : 300.0,
                             .seed = options.seed};
  std::vector<std::unique_ptr<Trial>> trials;
  for (const std::string& row : RowNames()) {
    if (!options.rows.empty() && options.rows != row) continue;
    std::vector<const Subject*> of_row;
    for (const Subject& subject : *subjects)
      if (subject.row == row) of_row.push_back(&subject);
    std::vector<std::vector<Mutation>> chosen = Choose(of_row, target, options);
    for (size_t s = 0; s < of_row.size(); ++s)
      if (!chosen[s].empty())
        trials.push_back(std::make_unique<Trial>(*of_row[s], std::move(chosen[s]), trial_options));
  }
  if (options.list) {
    for (const auto& trial : trials)
      for (const Mutation& mutation : trial->mutations())
        std::cout << trial->subject().row << "  " << NameOf(mutation.kind) << "  " << mutation.what << "\n";
    return 0;
  }
  Table table(options.target, target);
  RunnerProcess runner;
  // The next kernel's mutants are built while those of this one run.
  const auto start = std::chrono::steady_clock::now();
  std::future<absl::Status> built;
  const auto build = [&](size_t trial) {
    return std::async(std::launch::async, [&trials, trial] { return trials[trial]->Build(); });
  };
  if (!trials.empty()) built = build(0);
  bool failed = false;
  for (size_t t = 0; t < trials.size(); ++t) {
    absl::Status status = built.get();
    if (t + 1 < trials.size()) built = build(t + 1);
    if (status.ok() && !options.build_only) status = trials[t]->Verify(&runner);
    if (status.ok() && !options.build_only) status = trials[t]->Compare();
    if (status.ok() && !options.build_only) status = trials[t]->TryExamples();
    const Subject& subject = trials[t]->subject();
    std::cerr << absl::StrFormat(
                     "%4.0f s  %d of %d  %s  %s",
                     std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(), t + 1,
                     trials.size(), subject.row, Describe(*subject.graph, subject.implementation))
              << std::endl;
    if (!status.ok()) {
      std::cout << "FAILED " << subject.row << " " << Describe(*subject.graph, subject.implementation) << ": "
                << status << "\n";
      failed = true;
      continue;
    }
    table.Add(*trials[t]);
    if (!options.json.empty()) table.WriteJson(options.json);
  }
  table.Print();
  if (options.build_only) return failed ? kFailed : 0;
  if (table.misses()) return 1;
  return failed || !table.is_complete() ? kFailed : 0;
}

}  // namespace
}  // namespace fusion::testing

int main(int argc, char** argv) {
  // Threads of OpenMP that wait shall not keep others from running, in runners neither. It is read when the
  // program starts.
  if (getenv("OMP_WAIT_POLICY") == nullptr) {
    setenv("OMP_WAIT_POLICY", "passive", 1);
    execv("/proc/self/exe", argv);
  }
  fusion::testing::Options options;
  CLI::App app("Mutation test of the verification");
  app.add_option("--target", options.target, "host or cuda")->check(CLI::IsMember({"host", "cuda"}));
  app.add_option("--per-kind", options.per_kind, "mutants of each kind for each skeleton");
  app.add_option("--subjects", options.subjects, "kernels of each skeleton that they are made of, at most");
  app.add_option("--row", options.rows, "of this row of the table alone: \"row_panel warp\"");
  app.add_option("--seed", options.seed, "of the choice and of the data");
  app.add_option("--together", options.together, "mutants that are compiled and verified together");
  app.add_option("--data-sets", options.data_sets, "on which those that pass are compared with the original");
  app.add_option("--parallel", options.parallel, "builds, comparisons and examples at once");
  app.add_option("--json", options.json, "file for each mutant and what became of it");
  app.add_flag("--build-only", options.build_only, "only compile them; CUDA: for sm_90, without a device");
  app.add_flag("--examples", options.examples,
               "what the worker refuses must be refused by the examples of exported folders too");
  app.add_flag("--list", options.list, "only say what is made");
  CLI11_PARSE(app, argc, argv);
  return fusion::testing::Run(options);
}
