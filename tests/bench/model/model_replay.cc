// Predicts stored measurements anew, without a GPU: what a change of the model, of its corrections or of the
// memory of kernels would have predicted for candidates that were measured before, and how well that agrees.
//
//   model_replay FILE... [--details] [--passes] [--output JSON] [--plots PREFIX] [--dump TABLE]
//
// FILE: of `model_accuracy.py --candidates-output`, one for each pass over the graphs or some of them, in
// their order; the last one is predicted. Of each it also says how well the service predicted it when it was
// measured (--passes: that alone). Exit status: 0 done, 1 a file cannot be used or written, 2 bad usage.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/accuracy/accuracy.h"
#include "server/accuracy/plots.h"
#include "tests/bench/model/replayed_candidates.h"

namespace fusion::replay {
namespace {

constexpr int kDraws = 3;

// One way to predict, and how well it agrees.
nlohmann::ordered_json Assess(const std::string& name, const std::vector<PredictedGraph>& graphs,
                              bool details) {
  nlohmann::ordered_json json = {{"name", name}};
  const auto accuracy = AssessPredictions(graphs);
  if (!accuracy.ok()) {
    std::printf("%-52s %s\n", name.c_str(), accuracy.status().ToString().c_str());
    return json;
  }
  const AccuracySummary& s = accuracy->summary;
  std::printf(
      "%-52s %2d graphs  error %4.1f %%  tau %.2f (mean %.2f, least %.2f)  first 5: %5.1f %%  first 3 within "
      "2 %%: %5.1f %%  "
      "loss of 1, 3: %.1f, %.1f %% (most %.0f, %.0f)\n",
      name.c_str(), s.graphs, 100 * s.median_absolute_error, s.median_tau.value_or(0), s.mean_tau.value_or(0),
      s.min_tau.value_or(0), 100 * s.best_in_first_5_with_ties, 100 * s.first_3_within_2_percent,
      100 * s.median_regret.first, 100 * s.median_regret.first_3, 100 * s.max_regret.first,
      100 * s.max_regret.first_3);
  json.update({{"graph_count", s.graphs},
               {"candidates", s.candidates},
               {"median_absolute_error", s.median_absolute_error},
               {"median_kendall_tau", s.median_tau.value_or(0)},
               {"least_kendall_tau", s.min_tau.value_or(0)},
               {"best_in_first_5_with_ties", s.best_in_first_5_with_ties},
               {"first_3_within_2_percent", s.first_3_within_2_percent},
               {"median_regret", {{"first", s.median_regret.first}, {"first_3", s.median_regret.first_3}}},
               {"largest_regret", {{"first", s.max_regret.first}, {"first_3", s.max_regret.first_3}}}});
  for (size_t i = 0; i < graphs.size(); ++i) {
    const GraphAccuracy& graph = accuracy->graphs[i];
    json["graphs"].push_back({{"graph", graphs[i].name},
                              {"sizes", graphs[i].sizes},
                              {"candidates", graph.candidates},
                              {"median_absolute_error", graph.median_absolute_error},
                              {"kendall_tau", graph.kendall_tau.value_or(0)},
                              {"best_position_with_ties", graph.best_position_with_ties},
                              {"first_3_regret", graph.regret.first_3}});
    if (details)
      std::printf(
          "    %-20s %-20s %3d  error %5.1f %%  bias %.2f  tau %5.2f  best at %2d  first 3 lose %4.1f %%\n",
          graphs[i].name.c_str(), graphs[i].sizes.c_str(), graph.candidates,
          100 * graph.median_absolute_error, graph.bias, graph.kendall_tau.value_or(0),
          graph.best_position_with_ties, 100 * graph.regret.first_3);
  }
  return json;
}

// One line for each kernel of each candidate.
void Dump(const Pass& pass, const std::string& path) {
  std::ofstream table(path);
  table << "graph\tcandidate\tmeasured\tkernels\tpredicted\tdescription\tvariant\tmemory\tcompute\twaiting\tb"
           "arrier\tl"
           "aunch\tbytes\tflops\t"
           "occupancy\tregisters\tshared\t"
        << absl::StrJoin(kResidualFeatureNames, "\t") << "\n";
  for (const ReplayedGraph& graph : pass.graphs)
    for (size_t i = 0; i < graph.candidates.size(); ++i)
      for (const ReplayedKernel* kernel : graph.candidates[i].kernels) {
        const RunTimeEstimate& e = kernel->implementation.estimate;
        table << graph.example << graph.sizes << "\t" << i << "\t" << graph.candidates[i].measured << "\t"
              << graph.candidates[i].kernels.size() << "\t" << kernel->seconds << "\t"
              << graph.candidates[i].description << "\t" << kernel->identity.variant << "\t"
              << e.memory_seconds << "\t" << e.compute_seconds << "\t" << e.waiting_seconds << "\t"
              << e.barrier_seconds << "\t" << e.launch_seconds << "\t" << e.bytes << "\t" << e.flops << "\t"
              << e.occupancy << "\t" << e.registers << "\t" << e.shared_bytes << "\t"
              << absl::StrJoin(kernel->features, "\t") << "\n";
      }
}

bool Write(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  if (!file) std::fprintf(stderr, "%s: cannot be written\n", path.c_str());
  return bool(file);
}

// The exit status. Nothing is written under an empty name.
int WriteAll(const std::string& output, const nlohmann::ordered_json& json, const std::string& plots,
             const std::vector<PredictedGraph>& plotted) {
  if (!output.empty() && !Write(output, json.dump(1) + "\n")) return 1;
  if (plots.empty()) return 0;
  const auto measured_plot = PlotPredictedAgainstMeasured(plotted);
  const auto convergence_plot = PlotConvergence(plotted);
  for (const absl::Status& status : {measured_plot.status(), convergence_plot.status()})
    if (!status.ok()) {
      std::fprintf(stderr, "%s\n", status.ToString().c_str());
      return 1;
    }
  return Write(plots + "-predicted.svg", *measured_plot) &&
                 Write(plots + "-convergence.svg", *convergence_plot)
             ? 0
             : 1;
}

int Run(int argc, char** argv) {
  CLI::App app("Predicts stored measurements anew");
  std::vector<std::string> files;
  std::string dump, output, plots;
  bool details = false, passes = false;
  app.add_option("files", files, "Measured candidates, a pass each")->required();
  app.add_flag("--details", details, "A line for each graph");
  app.add_flag("--passes", passes, "How each pass was predicted when it was measured, and nothing else");
  app.add_option("--output", output, "JSON of all figures");
  app.add_option(
      "--plots", plots,
      "Beginning of the names of plots, of predictions as corrected by the same measurements (with "
      "--passes: of the last pass as it was predicted then)");
  app.add_option("--dump", dump, "Table of all kernels of the last pass");
  CLI11_PARSE(app, argc, argv);
  Replay replay;
  for (const std::string& file : files)
    if (!replay.Read(file)) return 1;
  const Pass& last = replay.passes().back();
  if (!dump.empty()) Dump(last, dump);
  int candidates = 0;
  for (const ReplayedGraph& graph : last.graphs) candidates += static_cast<int>(graph.candidates.size());
  std::printf("%zu graphs, %d candidates; %d of all files are no longer made\n", last.graphs.size(),
              candidates, replay.missing());

  const double start = replay.start_seconds();
  nlohmann::ordered_json json = {{"schema", "fusion.model_replay/1"},
                                 {"date", replay.date()},
                                 {"device", replay.device().name()},
                                 {"model_version", kCostModelVersion},
                                 {"command", absl::StrJoin(std::vector<std::string>(argv, argv + argc), " ")},
                                 {"ways", nlohmann::ordered_json::array()}};
  // `each`: of each graph too.
  const auto assess = [&](const std::string& name, const std::vector<PredictedGraph>& graphs,
                          bool each = true) {
    json["ways"].push_back(Assess(name, graphs, details && each));
    if (!each) json["ways"].back().erase("graphs");
  };
  const auto all = [&](const auto& predict) {
    std::vector<PredictedGraph> predicted;
    for (const ReplayedGraph& graph : last.graphs) predicted.push_back(predict(graph));
    return predicted;
  };
  // What is learned from the last pass without some graphs.
  const auto learned = [&](const auto& left_out) {
    v1::ResidualStatistics statistics;
    for (const ReplayedGraph& graph : last.graphs)
      if (!left_out(graph)) AddJob(graph.Observations(start), &statistics);
    return Residual(statistics, replay.device().target());
  };
  const auto remembered = [&](const Residual& residual, const auto& left_out) {
    Kernels memory;
    for (const ReplayedGraph& graph : last.graphs)
      if (!left_out(graph)) memory.Learn(graph, residual, start);
    return memory;
  };
  // Each pass as the service predicted it then, and how many of its candidates no pass before it had.
  std::set<std::string> known_candidates;
  std::vector<PredictedGraph> then;
  for (size_t i = 0; i < replay.passes().size(); ++i) {
    then.clear();
    int unknown = 0;
    for (const ReplayedGraph& graph : replay.passes()[i].graphs) {
      then.push_back(
          Predicted(graph, [](const ReplayedCandidate& candidate) { return candidate.predicted; }));
      for (const ReplayedCandidate& candidate : graph.candidates)
        unknown +=
            known_candidates.insert(absl::StrCat(graph.example, graph.sizes, candidate.description)).second;
    }
    json["passes"].push_back(Assess(absl::StrCat("pass ", i + 1, ", as it was predicted then"), then, false));
    json["passes"].back().erase("graphs");
    json["passes"].back()["new"] = unknown;
  }
  if (passes) return WriteAll(output, json, plots, then);
  assess("the model alone",
         all([&](const ReplayedGraph& graph) { return replay.Predict(graph, Residual(), nullptr); }));
  const auto without_example = [&](const ReplayedGraph& graph, bool with_memory) {
    const auto left_out = [&](const ReplayedGraph& other) { return other.example == graph.example; };
    const Residual residual = learned(left_out);
    const Kernels memory = remembered(residual, left_out);
    return replay.Predict(graph, residual, with_memory ? &memory : nullptr);
  };
  assess("the example left out",
         all([&](const ReplayedGraph& graph) { return without_example(graph, false); }));
  assess("the example left out, others' kernels remembered",
         all([&](const ReplayedGraph& graph) { return without_example(graph, true); }));
  // While a device is new, little is known of it: a few graphs of other examples, drawn at random.
  for (const int known : {2, 5, 10, 20}) {
    std::vector<PredictedGraph> predicted;
    for (int draw = 0; draw < kDraws; ++draw)
      for (size_t i = 0; i < last.graphs.size(); ++i) {
        std::vector<const ReplayedGraph*> others;
        for (const ReplayedGraph& other : last.graphs)
          if (other.example != last.graphs[i].example) others.push_back(&other);
        std::mt19937 dice(static_cast<unsigned>(draw * 1000) + static_cast<unsigned>(i));
        std::shuffle(others.begin(), others.end(), dice);
        others.resize(std::min<size_t>(others.size(), static_cast<size_t>(known)));
        v1::ResidualStatistics statistics;
        for (const ReplayedGraph* other : others) AddJob(other->Observations(start), &statistics);
        predicted.push_back(
            replay.Predict(last.graphs[i], Residual(statistics, replay.device().target()), nullptr));
      }
    assess(absl::StrCat(known, " graphs of other examples known, ", kDraws, " draws"), predicted, false);
  }
  const auto without_sizes = [&](const ReplayedGraph& graph, bool with_memory) {
    const auto left_out = [&](const ReplayedGraph& other) {
      return other.example == graph.example && other.sizes == graph.sizes;
    };
    const Residual residual = learned(left_out);
    const Kernels memory = remembered(residual, left_out);
    return replay.Predict(graph, residual, with_memory ? &memory : nullptr);
  };
  assess("the example known at the other sizes",
         all([&](const ReplayedGraph& graph) { return without_sizes(graph, false); }));
  assess("the same, kernels remembered",
         all([&](const ReplayedGraph& graph) { return without_sizes(graph, true); }));
  const Residual in_sample = learned([](const ReplayedGraph&) { return false; });
  const std::vector<PredictedGraph> known =
      all([&](const ReplayedGraph& graph) { return replay.Predict(graph, in_sample, nullptr); });
  assess("nothing left out", known);
  // Every second candidate was measured before: how well those foretell the others.
  const auto half = [&](bool with_memory) {
    return all([&](const ReplayedGraph& graph) {
      const Residual residual =
          learned([&](const ReplayedGraph& other) { return other.example == graph.example; });
      ReplayedGraph measured = graph, others = graph;
      measured.candidates.clear(), others.candidates.clear();
      for (size_t i = 0; i < graph.candidates.size(); ++i)
        (i % 2 == 0 ? measured : others).candidates.push_back(graph.candidates[i]);
      Kernels memory;
      memory.Learn(measured, residual, start);
      return replay.Predict(others, residual, with_memory ? &memory : nullptr);
    });
  };
  assess("every second candidate, the example left out", half(false));
  assess("every second candidate, the others remembered", half(true));

  // Graphs that were measured in an earlier pass too, predicted from all but what they were measured with
  // here.
  const auto key = [](const ReplayedGraph& graph) { return graph.example + " " + graph.sizes; };
  std::map<std::string, const ReplayedGraph*> before;
  for (size_t i = 0; i + 1 < replay.passes().size(); ++i)
    for (const ReplayedGraph& graph : replay.passes()[i].graphs) before[key(graph)] = &graph;
  if (!before.empty()) {
    v1::ResidualStatistics statistics;
    for (const ReplayedGraph& graph : last.graphs)
      AddJob((before.contains(key(graph)) ? *before[key(graph)] : graph).Observations(start), &statistics);
    const Residual residual(statistics, replay.device().target());
    Kernels memory;
    for (const ReplayedGraph& graph : last.graphs)
      memory.Learn(before.contains(key(graph)) ? *before[key(graph)] : graph, residual, start);
    std::vector<PredictedGraph> corrected, recalled, again;
    for (const ReplayedGraph& graph : last.graphs) {
      if (!before.contains(key(graph))) continue;
      corrected.push_back(replay.Predict(graph, residual, nullptr));
      recalled.push_back(replay.Predict(graph, residual, &memory));
      // Its earlier measurement as the prediction of each candidate that was measured twice: the most that
      // can be reached.
      std::map<std::string, double> earlier;
      for (const ReplayedCandidate& candidate : before[key(graph)]->candidates)
        earlier[candidate.description] = candidate.measured;
      PredictedGraph& twice = again.emplace_back(recalled.back());
      std::erase_if(twice.candidates,
                    [&](const PredictedCandidate& candidate) { return !earlier.contains(candidate.key); });
      std::stable_sort(twice.candidates.begin(), twice.candidates.end(),
                       [&](const PredictedCandidate& a, const PredictedCandidate& b) {
                         return earlier[a.key] < earlier[b.key];
                       });
      for (size_t i = 0; i < twice.candidates.size(); ++i) {
        twice.candidates[i].predicted_seconds = earlier[twice.candidates[i].key];
        twice.candidates[i].predicted_rank = static_cast<int>(i) + 1;
      }
      if (twice.candidates.empty()) again.pop_back();
    }
    assess("measured before, corrections alone", corrected);
    assess("measured before, kernels remembered", recalled);
    assess("measured twice, one by the other", again);
  }
  return WriteAll(output, json, plots, known);
}

}  // namespace
}  // namespace fusion::replay

int main(int argc, char** argv) { return fusion::replay::Run(argc, argv); }
