#include "server/optimize/stage_log.h"

#include <spdlog/spdlog.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "server/metrics/server_metrics.h"

namespace fusion {

StageLog::~StageLog() { End(); }

void StageLog::Begin(const std::string& name, int round) {
  End();
  if (context_.job.empty()) return;
  stage_ = name;
  start_ = std::chrono::steady_clock::now();
  v1::JobEvent event;
  event.set_stage(round > 0 ? absl::StrCat(name, " round ", round) : name);
  absl::StatusOr<int64_t> number = context_.store.BeginStage(context_.job, event.stage(), TimeOfDay());
  if (context_.emit) context_.emit(std::move(event));
  if (!number.ok()) spdlog::warn("{}: a stage was not noted: {}", context_.job, number.status().ToString());
  number_ = number.value_or(0);
}

void StageLog::End() {
  if (stage_.empty()) return;
  if (number_ > 0)
    if (absl::Status ended = context_.store.EndStage(number_, TimeOfDay()); !ended.ok())
      spdlog::warn("{}: the end of a stage was not noted: {}", context_.job, ended.ToString());
  if (context_.metrics != nullptr)
    context_.metrics->stage_seconds.With({stage_}).Observe(
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count());
  stage_.clear();
  number_ = 0;
}

}  // namespace fusion
