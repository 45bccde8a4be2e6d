// Plans and code as text, for people: explain and --dump-dir.
#pragma once

#include <string>

#include "server/service/job_stages.h"

namespace fusion {

// Every fusion implementation with its estimate, one per line.
std::string PrintFusions(const Graph& graph, const SearchSpace& space);
// The search: fusions by size, the best covers, the terms of the best one's estimate. `start_seconds`: part
// of what each cover is predicted to take.
std::string PrintPlans(const Graph& graph, const Plans& plans, double start_seconds);
// DescribeCover with the terms of what each kernel is predicted to take.
v1::Candidate ExplainCover(const Graph& graph, const CostModel& model, const SearchSpace& space,
                           const CoverSolution& cover, int predicted_rank);
// The kernels of a candidate, one text.
std::string PrintCandidateSource(const PlannedCandidate& candidate, v1::Target target);
// Kernel IR and sources of every unit into the dump directory.
void DumpCode(const PipelineContext& context, const GeneratedCode& code);

}  // namespace fusion
