// gemm, gesummv and syrk of PolyBench/C as partitioned loops, measured: sequential, on the processors alone,
// on the GPU alone, and split as the tuner finds. Prints one JSON object; what it is doing goes to stderr.
#include <omp.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "client/tuner/partitioned_for.h"
#include "parts.h"
#include "routines.h"

namespace polybench {
namespace {

using fusion::Partition;
using fusion::PartitionCode;
using fusion::PartitionedLoop;
using fusion::PartitionedRun;

constexpr char kUsage[] = R"(polybench_tuned gemm NI NJ NK | gesummv N | syrk N M   [options]

  --ratio R         only runs with this share of the iterations on the GPU (0 to 1), checks the result and prints the times
  --chunks C        in how many pieces then (default 4)
  --rounds N        runs of each kind that are measured (default 15)
  --evaluations N   the loop settles after so many runs that explored at the latest (default 300)
  --search S        what is known after so many seconds is measured (default 20)
  --server ADDRESS  of a fusion-server; "embedded" (the default): in this process
  --data DIR        where an embedded server keeps what it learns (default: a folder of its own, removed afterwards)
  --strategy NAME   of the search (default: the server's)
  --sequential S    the sequential loop is repeated for so many seconds (default 10), once at least

Without --ratio: sequential, CPU alone, GPU alone, tuned, and the ratios 0, 0.1 ... 1. Exit status: 0 done, 1 failed or a wrong result,
2 bad usage. Without a GPU the loops run on the host alone, and there is nothing to tune.
)";

struct Options {
  std::string routine;
  std::vector<int64_t> sizes;
  double ratio = -1;
  int chunks = 4, rounds = 15, evaluations = 300;
  std::string server = "embedded", data, strategy;
  double sequential_seconds = 10, search_seconds = 20;
};

// Best speed-ups of Baier 2016 and where it has them; 0 for other sizes.
struct SeedResult {
  const char* routine;
  std::vector<int64_t> sizes;
  double speedup, ratio;
  const char* source;
};
const std::vector<SeedResult>& SeedResults() {
  static const auto* results = new std::vector<SeedResult>{
      {"gemm", {2000, 2300, 2600}, 0.46556106, 0.1, "Baier 2016, table 6.1"},
      {"gemm", {1000000, 100, 100}, 0.37598232, 0.4, "Baier 2016, table 6.1"},
      {"gesummv", {2000}, 0.39007105, 0, "Baier 2016, table 6.2"},
      {"gesummv", {10000}, 0.39052280, 0, "Baier 2016, table 6.2"},
      {"syrk", {2600, 2000}, 1.22742361, 0.6, "Baier 2016, table 6.3"},
      {"syrk", {10000, 100}, 1.57920408, 0.8, "Baier 2016, table 6.3"},
  };
  return *results;
}

// Splits as the tuner says, or as the measurement says.
class Split : public fusion::PartitionChooser {
 public:
  Partition Next(int64_t n) override { return tuned != nullptr ? tuned->Next(n) : fixed.Next(n); }
  void Done(double seconds) override {
    if (tuned != nullptr) tuned->Done(seconds);
  }
  void Failed() override {
    if (tuned != nullptr) tuned->Failed();
  }
  fusion::FixedPartition fixed;
  fusion::PartitionChooser* tuned = nullptr;
};

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

std::string Json(const std::vector<double>& values) {
  std::string text = "[";
  for (double value : values) {
    char number[32];
    std::snprintf(number, sizeof number, "%s%.6g", text.size() > 1 ? ", " : "", value);
    text += number;
  }
  return text + "]";
}

std::string JsonTimes(const std::vector<double>& seconds) {
  char median[64];
  std::snprintf(median, sizeof median, "{\"median_seconds\": %.6g, \"samples\": ", Median(seconds));
  return median + Json(seconds) + "}";
}

[[noreturn]] void Fail(const std::string& message) {
  std::fprintf(stderr, "polybench_tuned: %s\n", message.c_str());
  std::_Exit(1);  // threads of the tuner may run
}

// Short loops are measured for so long, but not more often.
constexpr double kRoundsSeconds = 1;
constexpr int kMostRounds = 501;

class Measurement {
 public:
  explicit Measurement(const Options& options)
      : options_(options),
        routine_(Routine::Make(options.routine, options.sizes)),
        loop_(&device_, &split_, LoopOptions()) {
    if (routine_ == nullptr) {
      std::fputs(kUsage, stderr);
      std::exit(2);
    }
    routine_->AddTo(loop_);
    without_gpu_ = loop_.Prepare();
    if (!without_gpu_.empty()) std::fprintf(stderr, "On the host alone: %s\n", without_gpu_.c_str());
    // Arrays that go through memory of the loop are small.
    for (int array : loop_.staged())
      std::fprintf(stderr, "Array %d goes through memory of the loop\n", array);
  }

  ~Measurement() {
    tuned_.reset();
    tuner_.reset();
    if (options_.data.empty() && !data_.empty()) std::filesystem::remove_all(data_);
  }

  void RunRatio() {
    routine_->RunSequential();
    Verify(options_.ratio, options_.chunks);
    std::vector<double> seconds;
    PartitionedRun run;
    for (int i = 0; i < options_.rounds; ++i) {
      run = RunFixed(options_.ratio, options_.chunks);
      seconds.push_back(run.seconds);
    }
    PrintHead();
    std::printf(" \"device_iterations\": %lld, \"chunks\": %d, \"times\": %s,\n \"verified\": %s}\n",
                static_cast<long long>(run.partition.device_iterations), run.partition.chunks,
                JsonTimes(seconds).c_str(), JsonVerified().c_str());
  }

  void Bench() {
    Say("sequential");
    std::vector<double> sequential;
    double spent = 0;
    while (sequential.size() < 15 &&
           (sequential.empty() || spent + sequential.back() < options_.sequential_seconds)) {
      sequential.push_back(routine_->RunSequential());
      spent += sequential.back();
    }
    Say("checking");
    Verify(0, 1);
    if (!without_gpu_.empty()) return BenchHostAlone(sequential);
    for (int chunks : {1, 4, 16}) Verify(1, chunks);
    Verify(0.37, 4);

    Say("chunks for the GPU alone");
    int gpu_chunks = 1;
    double best = HUGE_VAL;
    for (int chunks : {1, 2, 4, 8, 16}) {
      const double median = MedianOf(5, 1, chunks);
      if (median < best) best = median, gpu_chunks = chunks;
    }
    const Search search = Tune();

    Say("CPU alone, GPU alone and tuned, in turn");
    std::vector<double> cpu, gpu, tuned;
    // Times of a loop of 0.2 ms on all processors vary by a tenth: 31 of them tell 3 % from nothing only by
    // chance.
    const auto start = std::chrono::steady_clock::now();
    const auto go_on = [&](int round) {
      const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
      return round < options_.rounds || (round < kMostRounds && spent.count() < kRoundsSeconds);
    };
    for (int round = 0; go_on(round); ++round) {
      for (int kind = 0; kind < 3; ++kind) {
        // The second of two runs is timed: a program's loop follows itself. The GPU alone behind the
        // processors takes 8 % longer.
        for (bool timed : {false, true}) {
          switch ((round + kind) % 3) {
            case 0:
              Add(RunFixed(0, 1), timed, &cpu);
              break;
            case 1:
              Add(RunFixed(1, gpu_chunks), timed, &gpu);
              break;
            case 2:
              Add(RunTuned(), timed, &tuned);
              break;
          }
        }
      }
    }
    const Partition found = tuned_->Best(routine_->iterations);
    const double ratio =
        static_cast<double>(found.device_iterations) / static_cast<double>(routine_->iterations);
    Verify(ratio, found.chunks);

    Say("ratios from 0 to 1");
    std::string sweep;
    for (int tenth = 0; tenth <= 10; ++tenth) {
      const int chunks = tenth == 10 ? gpu_chunks : ratio > 0 ? found.chunks : 4;
      Verify(tenth / 10.0, chunks);
      char line[128];
      std::snprintf(line, sizeof line, "%s\n  {\"ratio\": %.1f, \"chunks\": %d, \"median_seconds\": %.6g}",
                    tenth > 0 ? "," : "", tenth / 10.0, chunks, MedianOf(7, tenth / 10.0, chunks));
      sweep += line;
    }

    const double one = Median(sequential), faster = std::min(Median(cpu), Median(gpu));
    PrintHead();
    std::printf(
        " \"sequential\": %s,\n \"cpu_alone\": %s,\n \"gpu_alone\": %s,\n \"gpu_alone_chunks\": %d,\n "
        "\"tuned\": %s,\n",
        JsonTimes(sequential).c_str(), JsonTimes(cpu).c_str(), JsonTimes(gpu).c_str(), gpu_chunks,
        JsonTimes(tuned).c_str());
    std::printf(" \"found\": {\"ratio\": %.4f, \"device_iterations\": %lld, \"chunks\": %d},\n", ratio,
                static_cast<long long>(found.device_iterations), found.chunks);
    std::printf(
        " \"search\": {\"server\": \"%s\", \"evaluations\": %llu, \"runs\": %d, \"settled\": %s, "
        "\"converged\": %s, \"seconds\": %.4g},\n",
        options_.server.c_str(), static_cast<unsigned long long>(search.evaluations), search.runs,
        search.settled ? "true" : "false", search.converged ? "true" : "false", search.seconds);
    std::printf(" \"sweep\": [%s],\n \"verified\": %s,\n", sweep.c_str(), JsonVerified().c_str());
    std::printf(" \"speedup\": {\"cpu_alone\": %.4g, \"gpu_alone\": %.4g, \"tuned\": %.4g},\n",
                one / Median(cpu), one / Median(gpu), one / Median(tuned));
    PrintSeed();
    std::printf(" \"tuned_over_faster_end\": %.4f}\n", Median(tuned) / faster);
  }

 private:
  struct Search {
    int runs = 0;              // in all
    uint64_t evaluations = 0;  // of these, with what the search wanted to know
    bool settled = false, converged = false;
    double seconds = 0;
  };

  struct DestroyTuner {
    void operator()(fusion_tuner* tuner) const { fusion_tuner_destroy(tuner); }
  };
  static std::string TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "polybench_tuned.XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr)
      Fail("no folder can be made in " + std::filesystem::temp_directory_path().string());
    return name;
  }

  static fusion::PartitionedLoopOptions LoopOptions() {
    fusion::PartitionedLoopOptions options;
    options.host_threads = 0;        // the host's parts are OpenMP
    options.device_alignment = 128;  // rows of a kernel's tile
    return options;
  }

  void Say(const char* what) { std::fprintf(stderr, "%s: %s\n", routine_->name.c_str(), what); }

  PartitionedRun Run() {
    // beta is 1.2: before numbers are so large that they are infinite.
    if (++runs_ % 500 == 0) routine_->RestoreOutputs();
    PartitionedRun run = routine_->Run(loop_);
    if (!run.status.done()) Fail(run.status.message);
    return run;
  }
  PartitionedRun RunFixed(double ratio, int chunks) {
    split_.tuned = nullptr;
    split_.fixed = fusion::FixedPartition(ratio, chunks);
    return Run();
  }
  static void Add(const PartitionedRun& run, bool timed, std::vector<double>* seconds) {
    if (timed) seconds->push_back(run.seconds);
  }
  PartitionedRun RunTuned() {
    split_.tuned = tuned_.get();
    return Run();
  }
  double MedianOf(int runs, double ratio, int chunks) {
    std::vector<double> seconds;
    for (int i = 0; i < runs; ++i) seconds.push_back(RunFixed(ratio, chunks).seconds);
    return Median(seconds);
  }

  void Verify(double ratio, int chunks) {
    routine_->RestoreOutputs();
    RunFixed(ratio, chunks);
    const double error = routine_->LargestError();
    ++verified_;
    largest_error_ = std::max(largest_error_, error);
    if (!(error <= routine_->error_bound)) {
      Fail("wrong at ratio " + std::to_string(ratio) + " in " + std::to_string(chunks) +
           " chunks: relative error " + std::to_string(error));
    }
  }

  // Runs the loop until the tuner expects nothing better.
  Search Tune();

  void BenchHostAlone(const std::vector<double>& sequential) {
    std::vector<double> cpu;
    for (int round = 0; round < options_.rounds; ++round) cpu.push_back(RunFixed(0, 1).seconds);
    PrintHead();
    std::printf(" \"sequential\": %s,\n \"cpu_alone\": %s,\n \"verified\": %s,\n",
                JsonTimes(sequential).c_str(), JsonTimes(cpu).c_str(), JsonVerified().c_str());
    PrintSeed();
    std::printf(" \"speedup\": {\"cpu_alone\": %.4g}}\n", Median(sequential) / Median(cpu));
  }

  void PrintHead() const {
    std::printf("{\"schema\": \"fusion.polybench/1\", \"routine\": \"%s\", \"sizes\": {",
                routine_->name.c_str());
    for (size_t i = 0; i < routine_->sizes.size(); ++i) {
      std::printf("%s\"%s\": %lld", i > 0 ? ", " : "", routine_->sizes[i].first.c_str(),
                  static_cast<long long>(routine_->sizes[i].second));
    }
    std::printf(
        "},\n \"device\": \"%s\", \"without_gpu\": \"%s\", \"host_threads\": %d, \"host_instructions\": "
        "\"%s\",\n",
        device_.Name().c_str(), without_gpu_.c_str(), omp_get_max_threads(), HostInstructions());
    std::printf(" \"flops\": %.6g, \"bytes_up\": %.6g, \"bytes_down\": %.6g,\n", routine_->flops,
                routine_->bytes_up, routine_->bytes_down);
  }
  void PrintSeed() const {
    for (const SeedResult& result : SeedResults()) {
      if (routine_->name != result.routine || options_.sizes != result.sizes) continue;
      std::printf(" \"seed\": {\"best_speedup\": %.8g, \"ratio\": %.1f, \"source\": \"%s\"},\n",
                  result.speedup, result.ratio, result.source);
    }
  }
  std::string JsonVerified() const {
    char text[128];
    std::snprintf(text, sizeof text, "{\"runs\": %d, \"largest_relative_error\": %.3g, \"bound\": %.3g}",
                  verified_, largest_error_, routine_->error_bound);
    return text;
  }

  const Options& options_;
  fusion::CudaPartitionDevice device_;
  Split split_;
  // After what they are used by: the loop lets go of the arrays first.
  std::unique_ptr<Routine> routine_;
  PartitionedLoop loop_;
  std::unique_ptr<fusion_tuner, DestroyTuner> tuner_;
  std::unique_ptr<fusion::TunedPartition> tuned_;
  std::string without_gpu_;
  std::string data_;
  int64_t runs_ = 0;
  int verified_ = 0;
  double largest_error_ = 0;
};

Measurement::Search Measurement::Tune() {
  fusion_tuner_options options;
  fusion_tuner_options_init(&options);
  options.program = "polybench_tuned";
  options.server = options_.server.c_str();
  // The results hold for this pair of processors and GPU.
  const std::string device_class =
      device_.Name() + " with " + std::to_string(omp_get_max_threads()) + " threads";
  options.device_class = device_class.c_str();
  // "without limit": what is shown is what the search comes to, not what a program pays for it.
  options.exploration_share = 1;
  data_ = options_.data.empty() ? TemporaryFolder() : options_.data;
  options.data_directory = data_.c_str();
  if (!options_.strategy.empty()) options.strategy = options_.strategy.c_str();
  fusion_tuner* tuner = nullptr;
  if (fusion_tuner_create(&options, &tuner) != FUSION_TUNER_OK) Fail(fusion_tuner_message());
  tuner_.reset(tuner);
  tuned_ = std::make_unique<fusion::TunedPartition>(tuner, routine_->name, routine_->sizes, 1000,
                                                    options_.evaluations);

  Say("tuning");
  Search search;
  const auto start = std::chrono::steady_clock::now();
  // A search that thinks longer than a run takes has some runs pass with the best known split.
  while (!search.settled && search.seconds < options_.search_seconds) {
    const PartitionedRun run = RunTuned();
    if (!tuned_->message().empty()) Fail(tuned_->message());
    ++search.runs;
    search.settled = tuned_->Settled(routine_->iterations);
    search.converged = tuned_->Converged(routine_->iterations);
    search.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    fusion_tuner_counters_t counters = {};
    counters.size = sizeof counters;
    if (fusion_tuner_counters(tuner, &counters) != FUSION_TUNER_OK) Fail(fusion_tuner_message());
    if (counters.explored > search.evaluations) {
      char line[96];
      std::snprintf(line, sizeof line, "run %d: %lld on the device in %d chunks, %.4g ms", search.runs,
                    static_cast<long long>(run.partition.device_iterations), run.partition.chunks,
                    run.seconds * 1e3);
      Say(line);
    }
    search.evaluations = counters.explored;
  }
  return search;
}

bool Parse(int argc, char** argv, Options* options) {
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    char* end = nullptr;
    if (argument.compare(0, 2, "--") != 0) {
      if (options->routine.empty()) {
        options->routine = argument;
        continue;
      }
      options->sizes.push_back(std::strtoll(argv[i], &end, 10));
      if (*end != '\0') return false;
      continue;
    }
    if (i + 1 == argc) return false;
    const char* value = argv[++i];
    const double number = std::strtod(value, &end);
    const bool is_number = end != value && *end == '\0';
    if (argument == "--ratio" && is_number && number >= 0 && number <= 1)
      options->ratio = number;
    else if (argument == "--chunks" && is_number && number >= 1)
      options->chunks = static_cast<int>(number);
    else if (argument == "--rounds" && is_number && number >= 1)
      options->rounds = static_cast<int>(number);
    else if (argument == "--evaluations" && is_number && number >= 1)
      options->evaluations = static_cast<int>(number);
    else if (argument == "--sequential" && is_number && number >= 0)
      options->sequential_seconds = number;
    else if (argument == "--search" && is_number && number >= 0)
      options->search_seconds = number;
    else if (argument == "--server")
      options->server = value;
    else if (argument == "--data")
      options->data = value;
    else if (argument == "--strategy")
      options->strategy = value;
    else
      return false;
  }
  return !options->routine.empty();
}

}  // namespace
}  // namespace polybench

int main(int argc, char** argv) {
  polybench::Options options;
  if (!polybench::Parse(argc, argv, &options)) {
    std::fputs(polybench::kUsage, stderr);
    return 2;
  }
  polybench::Measurement measurement(options);
  if (options.ratio >= 0) {
    measurement.RunRatio();
  } else {
    measurement.Bench();
  }
  return 0;
}
