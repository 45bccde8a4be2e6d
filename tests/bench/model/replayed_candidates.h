// Measured candidates as files keep them, predicted by the model of this program. Only model_replay uses it.
#pragma once

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "server/accuracy/accuracy.h"
#include "server/model/kernel_memory.h"
#include "server/parse/parse.h"
#include "server/search/kernel_identity.h"
#include "server/search/search.h"
#include "server/skeletons/skeletons.h"
#include "tests/example_source.h"

namespace fusion::replay {

// A kernel of a measured candidate as the model of this program makes it, without corrections.
struct ReplayedKernel {
  KernelIdentity identity;
  FusionImplementation implementation;
  double seconds = 0;
  ResidualFeatures features{};
};
struct ReplayedCandidate {
  std::string description;
  std::vector<const ReplayedKernel*> kernels;
  double measured = 0, low = 0, high = 0;
  double predicted = 0;  // by the service, when it was measured
};
struct ReplayedGraph {
  std::string example, sizes;
  std::vector<ReplayedCandidate> candidates;
  std::vector<ResidualObservation> Observations(double start_seconds) const {
    std::vector<ResidualObservation> observations;
    for (const ReplayedCandidate& candidate : candidates) {
      ResidualObservation& observation = observations.emplace_back();
      observation.measured_seconds = std::max(candidate.measured - start_seconds, candidate.measured / 4);
      observation.deviation = IntervalDeviation(candidate.low, candidate.high);
      for (const ReplayedKernel* kernel : candidate.kernels) {
        observation.kernels.push_back(kernel->features);
        observation.predicted_seconds.push_back(kernel->seconds);
      }
    }
    return observations;
  }
};

// The kernels of the example at some sizes, by their descriptions.
class KernelsOfExample {
 public:
  KernelsOfExample(std::shared_ptr<const Graph> graph, SizeValues sizes, const CostModel& model)
      : graph_(std::move(graph)), sizes_(std::move(sizes)), model_(model), names_(*graph_, sizes_) {}

  // Null: the search does not make the kernel any more.
  const ReplayedKernel* Find(const std::string& description) {
    const NodeSet nodes = NodesOf(description);
    if (searched_.insert(nodes).second) {
      std::string reason;
      ImplementationOptions all;
      all.keep = 1 << 30;
      for (FusionImplementation& implementation :
           ImplementFusion(*graph_, nodes, sizes_, model_, all, &reason)) {
        const std::string name = Describe(*graph_, implementation);
        ReplayedKernel kernel;
        kernel.identity = names_.Of(implementation);
        kernel.seconds = implementation.estimate.total_seconds;
        kernel.features = FeaturesOf(implementation);
        kernel.implementation = std::move(implementation);
        kernels_.try_emplace(name, std::move(kernel));
      }
    }
    const auto found = kernels_.find(description);
    return found == kernels_.end() ? nullptr : &found->second;
  }

 private:
  // "{a b} row_panel ..." or "cooperative ({a} ... | {b} ...)".
  NodeSet NodesOf(const std::string& description) const {
    NodeSet nodes(graph_->node_count());
    for (size_t open = description.find('{'); open != std::string::npos;
         open = description.find('{', open + 1)) {
      const size_t close = description.find('}', open);
      for (absl::string_view name : absl::StrSplit(description.substr(open + 1, close - open - 1), ' '))
        for (const Node& node : graph_->nodes())
          if (graph_->value(node.result).name == name) nodes.Add(node.id.value);
    }
    return nodes;
  }

  std::shared_ptr<const Graph> graph_;
  SizeValues sizes_;
  const CostModel& model_;
  KernelNames names_;
  std::set<NodeSet> searched_;
  std::map<std::string, ReplayedKernel> kernels_;
};

// Kernels remembered in this process.
class Kernels final : public KernelMemory {
 public:
  std::vector<RememberedKernel> Find(const std::string& family) const override {
    std::vector<RememberedKernel> found;
    if (const auto it = kernels_.find(family); it != kernels_.end())
      for (const auto& [identity, known] : it->second) {
        found.push_back(known.kernel);
        found.back().seconds = known.belief.seconds;
        found.back().deviation = known.belief.deviation;
      }
    return found;
  }
  std::vector<std::string> Families() const override {
    std::vector<std::string> families;
    for (const auto& [family, kernels] : kernels_) families.push_back(family);
    return families;
  }
  // Learns as the service does.
  void Learn(const ReplayedGraph& graph, const Residual& residual, double start_seconds) {
    std::vector<const ReplayedCandidate*> covers;
    for (const ReplayedCandidate& candidate : graph.candidates) covers.push_back(&candidate);
    std::stable_sort(covers.begin(), covers.end(),
                     [](const auto* a, const auto* b) { return a->kernels.size() < b->kernels.size(); });
    for (const ReplayedCandidate* cover : covers) {
      std::vector<KernelBelief*> beliefs;
      for (const ReplayedKernel* kernel : cover->kernels) {
        const KernelIdentity& identity = kernel->identity;
        auto [it, is_new] = kernels_[identity.family].try_emplace({identity.sizes, identity.variant});
        if (is_new)
          it->second = {{.sizes = identity.sizes,
                         .variant = identity.variant,
                         .predicted_seconds = kernel->seconds,
                         .features = kernel->features},
                        {kernel->seconds * residual.Correction(kernel->features), kUnmeasuredDeviation}};
        beliefs.push_back(&it->second.belief);
      }
      LearnFromCover(std::max(cover->measured - start_seconds, cover->measured / 4),
                     IntervalDeviation(cover->low, cover->high), beliefs);
    }
  }

 private:
  struct Known {
    RememberedKernel kernel;  // without times
    KernelBelief belief;
  };
  std::map<std::string, std::map<std::pair<std::string, std::string>, Known>> kernels_;
};

struct Pass {
  std::vector<ReplayedGraph> graphs;
};

// `seconds` predicts a ReplayedCandidate. Equal predictions are ranked as they stand in the file.
template <class Seconds>
PredictedGraph Predicted(const ReplayedGraph& graph, const Seconds& seconds) {
  PredictedGraph predicted{.name = graph.example, .sizes = graph.sizes};
  for (const ReplayedCandidate& candidate : graph.candidates)
    predicted.candidates.push_back({.key = candidate.description,
                                    .predicted_seconds = seconds(candidate),
                                    .measured_seconds = candidate.measured,
                                    .low_seconds = candidate.low,
                                    .high_seconds = candidate.high});
  std::vector<PredictedCandidate*> order;
  for (PredictedCandidate& candidate : predicted.candidates) order.push_back(&candidate);
  std::stable_sort(order.begin(), order.end(),
                   [](auto* a, auto* b) { return a->predicted_seconds < b->predicted_seconds; });
  for (size_t i = 0; i < order.size(); ++i) order[i]->predicted_rank = static_cast<int>(i) + 1;
  return predicted;
}

class Replay {
 public:
  // Reads a file of candidates. The device and the tables are those of the first file.
  bool Read(const std::string& path) {
    std::ifstream file(path);
    const nlohmann::json document = nlohmann::json::parse(file, nullptr, false);
    if (document.is_discarded() || document.value("schema", "") != "fusion.measured_candidates/1") {
      std::fprintf(stderr, "%s: no measured candidates\n", path.c_str());
      return false;
    }
    if (!model_) {
      DeviceDescription device;
      RoutineTables tables;
      std::string bytes;
      if (!absl::Base64Unescape(document["device"].get<std::string>(), &bytes) ||
          !device.ParseFromString(bytes))
        return false;
      for (const auto& text : document["routine_tables"]) {
        v1::RoutineTable table;
        if (!absl::Base64Unescape(text.get<std::string>(), &bytes) || !table.ParseFromString(bytes) ||
            !tables.Add(table).ok())
          return false;
      }
      model_.emplace(device, 0, Residual(), std::move(tables));
    }
    Pass& pass = passes_.emplace_back();
    date_ = document.value("date", "");
    for (const auto& measured : document["graphs"]) {
      const SizeValues values = measured["sizes"].get<SizeValues>();
      ReplayedGraph graph{.example = measured["example"],
                          .sizes = absl::StrJoin(values, ",", absl::PairFormatter("="))};
      KernelsOfExample& kernels = KernelsOf(graph, values);
      for (const auto& candidate : measured["candidates"]) {
        ReplayedCandidate replayed{.description = candidate["description"],
                                   .measured = candidate["median"],
                                   .low = candidate["low"],
                                   .high = candidate["high"],
                                   .predicted = candidate["predicted"]};
        for (absl::string_view kernel : absl::StrSplit(replayed.description, "; "))
          replayed.kernels.push_back(kernels.Find(std::string(kernel)));
        if (std::count(replayed.kernels.begin(), replayed.kernels.end(), nullptr) > 0) {
          ++missing_;
          continue;
        }
        graph.candidates.push_back(std::move(replayed));
      }
      if (!graph.candidates.empty()) pass.graphs.push_back(std::move(graph));
    }
    return true;
  }

  const std::vector<Pass>& passes() const { return passes_; }
  int missing() const { return missing_; }
  double start_seconds() const { return model_->StartSeconds(); }
  const DeviceDescription& device() const { return model_->device(); }
  const std::string& date() const { return date_; }  // of the last file

  // Predicts a graph with these corrections, and this memory if there is one.
  PredictedGraph Predict(const ReplayedGraph& graph, const Residual& residual,
                         const KernelMemory* memory) const {
    std::map<const ReplayedKernel*, double> seconds;
    std::map<std::string, FamilyTimes> families;
    for (const ReplayedCandidate& candidate : graph.candidates)
      for (const ReplayedKernel* kernel : candidate.kernels) {
        double& predicted = seconds[kernel];
        if (predicted > 0) continue;
        predicted = kernel->seconds * residual.Correction(kernel->features);
        if (!memory) continue;
        auto [it, is_new] = families.try_emplace(kernel->identity.family);
        if (is_new)
          it->second = FamilyTimes(memory->Find(kernel->identity.family), kernel->identity.sizes, residual);
        if (it->second.empty()) continue;
        const FamilyTimes::Answer answer = it->second.Of(kernel->identity.variant, kernel->features);
        predicted = answer.seconds.value_or(predicted * answer.factor);
      }
    return Predicted(graph, [&](const ReplayedCandidate& candidate) {
      double total = start_seconds();
      for (const ReplayedKernel* kernel : candidate.kernels) total += seconds[kernel];
      return total;
    });
  }

 private:
  KernelsOfExample& KernelsOf(const ReplayedGraph& graph, const SizeValues& values) {
    std::unique_ptr<KernelsOfExample>& kernels = kernels_[graph.example + graph.sizes];
    if (!kernels) {
      auto parsed = ParseSource(testing::ExampleSource(graph.example), *Catalog::BuiltIn());
      if (!parsed.ok())
        std::fprintf(stderr, "%s: %s\n", graph.example.c_str(), parsed.status().ToString().c_str()),
            std::exit(1);
      kernels = std::make_unique<KernelsOfExample>(*parsed, values, *model_);
    }
    return *kernels;
  }

  std::optional<CostModel> model_;
  std::map<std::string, std::unique_ptr<KernelsOfExample>> kernels_;
  std::vector<Pass> passes_;
  std::string date_;
  int missing_ = 0;
};

}  // namespace fusion::replay
