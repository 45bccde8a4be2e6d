// Plans and code as text, for people: explain and --dump-dir.
#pragma once

#include <string>

#include "server/service/job_stages.h"

namespace fusion {

// Every fusion implementation with its estimate, one per line.
std::string PrintFusions(const Graph& graph, const SearchSpace& space);
// The search: fusions by size, the best covers, the terms of the best one's estimate.
std::string PrintPlans(const Graph& graph, const Plans& plans);
// The kernels of a candidate, one text.
std::string PrintCandidateSource(const PlannedCandidate& candidate, v1::Target target);
// Kernel IR and sources of every unit into the dump directory.
void DumpCode(const PipelineContext& context, const GeneratedCode& code);

}  // namespace fusion
