// The stages of a job are noted in the store, with their times, for traces, counted, and told to whoever
// watches the job.
#pragma once

#include <chrono>
#include <string>

#include "server/optimize/optimize_pipeline.h"

namespace fusion {

// Not thread safe: the log belongs to the thread that runs the pipeline. A stage that cannot be noted is
// logged and ends no job. A context without a job notes nothing.
class StageLog {
 public:
  explicit StageLog(const PipelineContext& context) : context_(context) {}
  // Ends the current stage.
  ~StageLog();
  StageLog(const StageLog&) = delete;
  StageLog& operator=(const StageLog&) = delete;

  // Ends the current stage and begins this one. round: from 1, for a stage that is gone through several
  // times.
  void Begin(const std::string& name, int round = 0);

 private:
  void End();

  const PipelineContext& context_;
  std::string stage_;   // empty: none
  int64_t number_ = 0;  // in the store; 0: not there
  std::chrono::steady_clock::time_point start_;
};

}  // namespace fusion
