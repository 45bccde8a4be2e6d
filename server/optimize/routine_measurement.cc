// Small programs of one function each, in which a block loads or computes its elements a few times or many
// times. The difference is what the routine takes (Fousek 2010, section 4.4.3). How often is found in rounds:
// see routine_repeats.h.
#include "server/optimize/routine_measurement.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <iterator>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "server/optimize/build_stage.h"
#include "server/optimize/code_stage.h"
#include "server/optimize/measure_stage.h"
#include "server/optimize/plans.h"
#include "server/optimize/reported_times.h"
#include "server/optimize/routine_repeats.h"
#include "server/skeletons/element/element.h"
#include "server/skeletons/skeletons.h"

namespace fusion {
namespace {

constexpr int kProgramsAtOnce = 32;  // timed by one task
constexpr int kTimings = 3;          // of a program whose time is not steady

v1::MeasurementMethod Method(const v1::TargetProfile::Measuring& measuring) {
  v1::MeasurementMethod method;
  method.set_version(kMethodVersion);
  method.set_cold_alone(true);
  method.set_minimum_samples(measuring.routine_samples());
  method.set_maximum_samples(measuring.most_routine_samples());
  method.set_relative_half_width(0.01);
  method.set_seconds_limit(0.03);
  method.set_run_deadline_seconds(20);
  return method;
}

// A kernel, built to repeat its routine few and many times.
struct Variant {
  RoutineKernel kernel;
  // These fields are set for each round.
  std::vector<int> resident;  // numbers of blocks that are to be measured
  v1::Program few, many;
};

// One program at one number of resident blocks.
struct Trial {
  const Variant* variant = nullptr;
  bool many = false;
  int resident = 1;
  int64_t extra_shared_bytes = 0;
};

using Point = std::pair<const Variant*, int>;  // of a table: with so many resident blocks

// The times of both programs at a point, 0 while they are not known.
struct Times {
  double few = 0, many = 0;
  Repeats repeats;
  bool counts = false;  // they stand out, or there are no better ones
  int64_t extra_shared_bytes = 0;
};

// One function alone, with all kernels that are timed on it.
struct Bench {
  bool transfers = false;
  Submission submission;
  std::unique_ptr<CostModel> model;
  GeneratedCode code;
  Repeats repeats, most_repeats;  // of this round, and of the last that there can be
  std::vector<Variant> variants;
  std::map<Point, Times> times;
};

class RoutineMeasurement {
 public:
  RoutineMeasurement(const DeviceDescription& device, const PipelineContext& context)
      : device_(WithDefaults(device)),
        simt_(TargetOf(device.target()).simt()),
        measuring_(TargetOf(device.target()).profile().measuring()),
        context_(context) {}

  // Adds what measures the routines of `source` that are not known.
  absl::Status Add(const RoutineSource& source, const RoutineTables& tables) {
    v1::GraphSource text;
    text.set_fuse(source.text);
    FUSION_ASSIGN_OR_RETURN(auto submission, CheckSource(text, context_.catalog));
    const Graph& graph = *submission.graph;
    const CostModel model(device_);
    std::map<Likes, std::vector<Variant>> variants;
    for (const RoutineKernel& kernel : RoutineKernels(graph, submission.sizes, model, source.transfers)) {
      const bool known =
          tables.Has(kernel.routine) && (!source.transfers || tables.Has(StoreName(graph, kernel)));
      if (known) {
        known_.insert(kernel.routine);
        continue;
      }
      std::map<Likes, std::vector<int>> residents;
      for (int resident : ResidentBlocksOf(graph, kernel.implementation))
        residents[LikesOf(source, kernel, resident)].push_back(resident);
      for (auto& [likes, resident] : residents) variants[likes].push_back({kernel, std::move(resident)});
    }
    std::vector<std::unique_ptr<Bench>> benches;
    for (auto& [likes, those] : variants) {
      auto bench = std::make_unique<Bench>();
      bench->transfers = source.transfers;
      bench->submission = submission;
      bench->model = std::make_unique<CostModel>(device_);
      bench->variants = std::move(those);
      SetSizes(bench.get());
      FUSION_RETURN_IF_ERROR(CheckDeviceMemory(bench->submission, device_));
      FUSION_RETURN_IF_ERROR(Generate(bench.get()));
      benches.push_back(std::move(bench));
    }
    std::move(benches.begin(), benches.end(), std::back_inserter(benches_));
    return absl::OkStatus();
  }

  bool empty() const { return benches_.empty(); }
  int known() const { return static_cast<int>(known_.size()); }  // routines that need no measuring

  // Builds and times all, and makes the tables. Routines that could not be measured have none.
  absl::StatusOr<std::vector<v1::RoutineTable>> Run(std::vector<std::string>* notes) {
    for (bool more = true; more;) {
      FUSION_RETURN_IF_ERROR(Build());
      FUSION_RETURN_IF_ERROR(Time());
      FUSION_ASSIGN_OR_RETURN(auto prepared, RepeatMore());
      more = prepared;
    }
    const int failed = static_cast<int>(tried_.size() - built_.binaries().size());
    if (failed > 0)
      notes->push_back(
          absl::StrFormat("%d of %d benchmark programs of routines were not built", failed, tried_.size()));
    if (!failure_.empty()) notes->push_back(absl::StrCat("routines: ", failure_));
    if (wrong_ > 0)
      notes->push_back(absl::StrCat(
          wrong_, " benchmark programs of routines gave wrong results and count for nothing; the first: ",
          first_wrong_));
    return Tables(notes);
  }

 private:
  // Kernels that are alike in these are timed on the same elements, which are as many as the largest grid
  // takes: grids that are much smaller would pass over them a hundred times.
  using Likes = std::pair<bool, int>;

  Likes LikesOf(const RoutineSource& source, const RoutineKernel& kernel, int resident) const {
    if (source.transfers || !simt_) return {};
    const auto elements =
        static_cast<unsigned>(kernel.implementation.As<ElementParameters>().elements_per_block);
    return {resident > 4, static_cast<int>(std::bit_width(elements)) / 2};
  }

  static std::string StoreName(const Graph& graph, const RoutineKernel& kernel) {
    return StoreRoutine(graph.value(graph.outputs().front()),
                        kernel.implementation.As<ElementParameters>().load_path);
  }

  // Blocks on a multiprocessor that points are made for. Registers may permit fewer than is assumed here;
  // then the largest are left out.
  std::vector<int> ResidentBlocksOf(const Graph& graph, const FusionImplementation& implementation) const {
    if (!simt_) return {1};
    const auto& parameters = implementation.As<ElementParameters>();
    int64_t entry_bytes = 4;
    for (const Value& value : graph.values())
      entry_bytes = std::max<int64_t>(entry_bytes, DataTypeBytes(value.type.data_type));
    const int64_t shared_bytes = parameters.shared_entries * parameters.elements_per_block * entry_bytes;
    const int most = std::max(1, ResidentBlocks(device_, parameters.threads, 32, shared_bytes));
    std::vector<int> resident;
    const bool single =
        parameters.threads == parameters.elements_per_block;  // the fewer tiles, the more numbers of blocks
    for (int blocks : {1, 2, 4, 6, 8, 12, 16, 24, 32})
      if (blocks <= most && (single || (blocks & (blocks - 1)) == 0)) resident.push_back(blocks);
    return resident;
  }

  static int64_t Powers(int64_t number) { return std::bit_ceil(static_cast<uint64_t>(number)); }

  // Elements: a few times as many as all blocks of the largest grid have at once, in powers of two, so that
  // grids divide them alike, or nearly; for loads so many that caches hold no part to speak of.
  void SetSizes(Bench* bench) const {
    int64_t largest = 1;
    for (const Variant& variant : bench->variants)
      largest = std::max(
          largest, Powers(variant.resident.back()) *
                       Powers(variant.kernel.implementation.As<ElementParameters>().elements_per_block));
    int64_t elements = 3 * largest * device_.multiprocessors();
    const Graph& graph = *bench->submission.graph;
    const Value& input = graph.value(graph.inputs().front());
    if (bench->transfers) {
      const int64_t wanted = std::min<int64_t>(3 * device_.l2_bytes(), measuring_.routine_bytes());
      const int64_t bytes = elements * input.type.element_entries() * DataTypeBytes(input.type.data_type);
      elements *= std::max<int64_t>(1, (wanted + bytes - 1) / bytes);
    }
    bench->submission.sizes[kElementsSize] = elements;
  }

  absl::Status Generate(Bench* bench) const {
    const Graph& graph = *bench->submission.graph;
    FUSION_ASSIGN_OR_RETURN(auto plans, PlanCovers(bench->submission, *bench->model, 1, false));
    FUSION_ASSIGN_OR_RETURN(auto code, GenerateCode(bench->submission, *bench->model, plans));
    bench->code = std::move(code);
    // Repeated at most so often that even at the peak rate computation takes longer than loads and stores,
    // which must not hide a part of it: on a GPU, where most never come to that, longer than slow ones.
    const double bytes = static_cast<double>(graph.FloorBytes(bench->submission.sizes));
    const double flops = std::max(NodeFlops(graph, graph.nodes().front(), bench->submission.sizes), 1.0);
    const double once = flops / device_.peak_flops(), hidden = bytes / device_.copy_bytes_per_second();
    const double least = measuring_.routine_seconds();  // to stand out from what starting takes
    if (bench->transfers) {
      bench->repeats = bench->most_repeats = {.few = kFewestRepeats, .many = 3 * kFewestRepeats};
    } else {
      const double longer = measuring_.slow_transfers() * std::max(hidden, least);
      const int few = static_cast<int>(std::clamp(longer / once, 1.0 * kFewestRepeats, 4000.0));
      bench->most_repeats = {.few = few, .many = 2 * few};
      // On the host a compiler that runs again takes longer than many repeats do.
      bench->repeats = measuring_.quick_rounds() ? FirstRepeats(bench->most_repeats) : bench->most_repeats;
    }
    for (Variant& variant : bench->variants) FUSION_RETURN_IF_ERROR(GenerateKernels(bench, &variant));
    return absl::OkStatus();
  }

  // Generates the kernels of this round.
  static absl::Status GenerateKernels(Bench* bench, Variant* variant) {
    for (bool many : {false, true}) {
      FusionImplementation implementation = variant->kernel.implementation;
      auto& parameters = implementation.As<ElementParameters>();
      (bench->transfers ? parameters.load_repeats : parameters.compute_repeats) =
          many ? bench->repeats.many : bench->repeats.few;
      FUSION_ASSIGN_OR_RETURN(auto unit, bench->code.library->Add(implementation, false));
      (many ? variant->many : variant->few) =
          bench->code.library->ProgramOf({unit}, many ? "many" : "few", false);
    }
    return absl::OkStatus();
  }

  // Prepares another round for what did not stand out and can be repeated more often. False: there is none.
  absl::StatusOr<bool> RepeatMore() {
    bool any = false;
    for (const auto& bench : benches_) {
      const bool last = bench->repeats.few >= bench->most_repeats.few;
      bench->repeats = NextRepeats(bench->repeats, bench->most_repeats);
      for (Variant& variant : bench->variants) {
        std::vector<int> again;
        for (int resident : variant.resident)
          if (const auto times = bench->times.find({&variant, resident});
              !last && times != bench->times.end() && !times->second.counts &&
              !left_out_.count(variant.kernel.routine))
            again.push_back(resident);
        variant.resident = std::move(again);
        if (variant.resident.empty()) continue;
        any = true;
        FUSION_RETURN_IF_ERROR(GenerateKernels(bench.get(), &variant));
      }
    }
    return any;
  }

  absl::Status Build() {
    std::vector<v1::BuildTask> tasks;
    for (const auto& bench : benches_)
      for (const auto& unit : bench->code.library->units())
        if (tried_.insert(unit->build.key()).second) tasks.push_back(unit->build);
    const v1::BuildProgress before = builds_;  // of the rounds before
    auto outcomes = context_.dispatcher.Build(context_.job, tasks, context_.cancellation,
                                              [&](int done, int total, int reused, int failed) {
                                                builds_.set_done(before.done() + done);
                                                builds_.set_total(before.total() + total);
                                                builds_.set_reused(before.reused() + reused);
                                                builds_.set_failed(before.failed() + failed);
                                                v1::JobEvent event;
                                                *event.mutable_build() = builds_;
                                                if (context_.emit) context_.emit(std::move(event));
                                              });
    if (!outcomes.ok()) return outcomes.status();
    for (const BuildOutcome& outcome : *outcomes) CountBuild(outcome, context_.metrics);
    for (size_t i = 0; i < tasks.size(); ++i) {
      const v1::BuildResult& result = (*outcomes)[i].result;
      if (result.outcome() == v1::OK) (*built_.mutable_binaries())[tasks[i].key()] = result.binary();
      if (result.outcome() == v1::WORKER_LOST) lost_.insert(tasks[i].key());
    }
    return absl::OkStatus();
  }

  std::vector<Trial> TrialsOf(const Bench& bench) const {
    std::vector<Trial> trials;
    for (const Variant& variant : bench.variants) {
      if (!IsBuilt(variant.few, built_) || !IsBuilt(variant.many, built_)) continue;
      const int64_t own = variant.few.launches(0).shared_bytes();
      for (int resident : variant.resident) {
        // So much that one block more does not fit. 1 KiB of each block's belongs to the system.
        int64_t extra = 0;
        if (simt_)
          extra = std::min(device_.shared_bytes_per_multiprocessor() / resident - 1024,
                           device_.shared_bytes_per_block()) -
                  own;
        if (extra < 0) continue;
        for (bool many : {false, true}) trials.push_back({&variant, many, resident, extra / 128 * 128});
      }
    }
    return trials;
  }

  // Trials on one bench that are timed by one task.
  struct Part {
    Bench* bench;
    std::vector<Trial> trials;
  };

  static void AddParts(Bench* bench, const std::vector<Trial>& trials, std::vector<Part>* parts) {
    for (size_t first = 0; first < trials.size(); first += kProgramsAtOnce) {
      const size_t end = std::min(first + kProgramsAtOnce, trials.size());
      parts->push_back({bench, {trials.begin() + first, trials.begin() + end}});
    }
  }

  // Times all that was built. A table is kept for good, so what is not steady is timed again, and in the end
  // its routine waits for a quieter machine.
  absl::Status Time() {
    std::vector<Part> parts;
    for (const auto& bench : benches_) {
      LeaveOutLost(*bench);
      const v1::CandidateSet& set = bench->code.set;
      if (IsBuilt(set.reference(), built_) && IsBuilt(set.unfused(0), built_))
        AddParts(bench.get(), TrialsOf(*bench), &parts);
    }
    Found found;
    for (int timed = 0; timed < kTimings && !parts.empty(); ++timed) {
      FUSION_ASSIGN_OR_RETURN(auto unsteady, TimeParts(parts, &found));
      parts.clear();
      for (const auto& [bench, trials] : unsteady) AddParts(bench, trials, &parts);
    }
    for (const Part& part : parts)
      for (const Trial& trial : part.trials) left_out_.insert(trial.variant->kernel.routine);
    for (auto& [bench, points] : found)
      for (auto& [point, times] : points) {
        if (times.few <= 0 || times.many <= 0) continue;
        times.counts = bench->transfers || bench->repeats.few >= bench->most_repeats.few ||
                       RoutineStandsOut(times.few, times.many);
        bench->times[point] = times;
      }
    return absl::OkStatus();
  }

  using Found = std::map<Bench*, std::map<Point, Times>>;

  // Adds the times of trials, and returns those that were not steady.
  absl::StatusOr<std::map<Bench*, std::vector<Trial>>> TimeParts(const std::vector<Part>& parts,
                                                                 Found* found) {
    std::vector<v1::TimeTask> tasks;
    for (const Part& part : parts) {
      const v1::CandidateSet& set = part.bench->code.set;
      v1::TimeTask task;
      *task.mutable_session() = SessionOf(set.session(), BuiltProgram(set.reference(), built_),
                                          BuiltProgram(set.unfused(0), built_), context_.job);
      *task.mutable_method() = Method(measuring_);
      task.set_device_uuid(device_.uuid());
      for (const Trial& trial : part.trials) {
        v1::Program timed = BuiltProgram(trial.many ? trial.variant->many : trial.variant->few, built_);
        v1::Launch* launch = timed.mutable_launches(0);
        launch->set_grid(int64_t{device_.multiprocessors()} * trial.resident);
        launch->set_shared_bytes(launch->shared_bytes() + trial.extra_shared_bytes);
        *task.add_programs() = std::move(timed);
      }
      tasks.push_back(std::move(task));
    }
    std::map<Bench*, std::vector<Trial>> unsteady;
    timings_.set_total(timings_.total() + static_cast<int>(tasks.size()));
    auto status = context_.dispatcher.Time(
        context_.job, tasks, device_, context_.cancellation,
        [&](int index, const v1::TimeResult& reported, bool) {
          const Part& part = parts[index];
          const v1::TimeResult result = ReportedTimes(reported, tasks[index], context_.metrics);
          if (!result.failure().empty()) failure_ = result.failure();
          for (int i = 0; i < result.programs_size(); ++i) {
            const v1::ProgramMeasurement& measurement = result.programs(i);
            const Trial& trial = part.trials[i];
            if (measurement.outcome() == v1::WRONG_RESULT && ++wrong_ == 1)
              first_wrong_ = measurement.message();
            if (measurement.outcome() == v1::WORKER_LOST) left_out_.insert(trial.variant->kernel.routine);
            if (measurement.outcome() != v1::OK) continue;
            if (!measurement.steady()) {
              unsteady[part.bench].push_back(trial);
              continue;
            }
            // Registers may leave room for fewer blocks than were wanted.
            if (measurement.kernels_size() == 0 ||
                (simt_ && measurement.kernels(0).blocks_per_multiprocessor() < trial.resident))
              continue;
            Times& times = (*found)[part.bench][{trial.variant, trial.resident}];
            (trial.many ? times.many : times.few) = measurement.cold().median();
            times.repeats = part.bench->repeats;
            times.extra_shared_bytes = trial.extra_shared_bytes;
          }
          timings_.set_done(timings_.done() + 1);
          timings_.set_last(part.trials.front().variant->kernel.routine);
          v1::JobEvent event;
          *event.mutable_timing() = timings_;
          if (context_.emit) context_.emit(std::move(event));
        });
    if (!status.ok()) return status;
    return unsteady;
  }

  // A routine of which something was lost with a worker has no table: it would be taken for a whole one for
  // ever. What cannot be built or run does not change that: it would be tried again by every job.
  void LeaveOutLost(const Bench& bench) {
    const auto lost = [&](const v1::Program& program) {
      return std::any_of(program.launches().begin(), program.launches().end(),
                         [&](const v1::Launch& launch) { return lost_.contains(launch.binary()); });
    };
    const bool all = lost(bench.code.set.reference()) || lost(bench.code.set.unfused(0));
    for (const Variant& variant : bench.variants)
      if (!variant.resident.empty() && (all || lost(variant.few) || lost(variant.many)))
        left_out_.insert(variant.kernel.routine);
  }

  std::vector<v1::RoutineTable> Tables(std::vector<std::string>* notes) const {
    std::map<std::string, v1::RoutineTable> tables;
    const auto add = [&](const std::string& routine, const ElementParameters& parameters, int resident,
                         int64_t extra, double seconds) {
      if (!std::isfinite(seconds) || seconds <= 0) return;  // lost in the noise
      v1::RoutineTable& table = tables[routine];
      table.set_routine(routine);
      v1::RoutineTable::Point point;
      point.set_threads(parameters.threads);
      point.set_elements(parameters.elements_per_block);
      point.set_resident_blocks(resident);
      point.set_extra_shared_bytes(extra);
      point.set_seconds(seconds);
      AddPoint(point, &table);
    };
    std::set<std::string> wanted;
    for (const auto& bench : benches_) {
      for (const Variant& variant : bench->variants) wanted.insert(variant.kernel.routine);
      for (const auto& [key, times] : bench->times) {
        const Variant& variant = *key.first;
        if (!times.counts || left_out_.count(variant.kernel.routine)) continue;
        const auto& parameters = variant.kernel.implementation.As<ElementParameters>();
        const double tiles = std::ceil(static_cast<double>(bench->submission.sizes.at(kElementsSize)) /
                                       parameters.elements_per_block);
        const double passes =
            std::ceil(tiles / (double(device_.multiprocessors()) * key.second));  // of the busiest block
        const double routine = (times.many - times.few) / ((times.repeats.many - times.repeats.few) * passes);
        add(variant.kernel.routine, parameters, key.second, times.extra_shared_bytes, routine);
        // Beside its loads a tile takes an operation on each entry, which takes next to nothing, and the
        // store.
        const double started = device_.launch_seconds() + bench->model->StartSeconds();
        if (bench->transfers)
          add(StoreName(*bench->submission.graph, variant.kernel), parameters, key.second,
              times.extra_shared_bytes, (times.few - started) / passes - times.repeats.few * routine);
      }
    }
    for (const std::string& routine : wanted)
      if (!tables.count(routine))
        notes->push_back(absl::StrCat("no times of ", routine, " could be measured"));
    std::vector<v1::RoutineTable> all;
    for (auto& [routine, table] : tables) all.push_back(std::move(table));
    return all;
  }

  const DeviceDescription device_;
  const bool simt_;
  const v1::TargetProfile::Measuring& measuring_;
  const PipelineContext& context_;
  std::vector<std::unique_ptr<Bench>> benches_;
  std::set<std::string> known_;
  std::set<std::string> tried_;  // keys of builds
  v1::BuiltCode built_;
  std::set<std::string> lost_;      // keys of builds that were lost with workers
  std::set<std::string> left_out_;  // routines
  // These fields are kept over all rounds.
  v1::BuildProgress builds_;
  v1::TimeProgress timings_;
  std::string failure_;  // the last
  int wrong_ = 0;        // results
  std::string first_wrong_;
};

}  // namespace

absl::StatusOr<MeasuredRoutines> MeasureRoutineSources(const std::vector<RoutineSource>& sources,
                                                       const DeviceDescription& device,
                                                       const RoutineTables& known,
                                                       const PipelineContext& context,
                                                       std::vector<std::string>* notes) {
  RoutineMeasurement measurement(device, context);
  for (const RoutineSource& source : sources)
    if (auto status = measurement.Add(source, known); !status.ok())
      notes->push_back(absl::StrCat("routines: ", status.message()));
  MeasuredRoutines measured{.known = measurement.known()};
  if (measurement.empty()) return measured;
  v1::JobEvent event;
  event.set_note(
      "measuring routines of the graph's functions, for predictions; once for this kind of device");
  if (context.emit) context.emit(std::move(event));
  FUSION_ASSIGN_OR_RETURN(auto tables, measurement.Run(notes));
  measured.tables = std::move(tables);
  return measured;
}

}  // namespace fusion
