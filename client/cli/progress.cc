#include "client/cli/progress.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/number_format.h"

namespace fusion {
namespace {

constexpr std::chrono::seconds kBetweenLines{5}, kBetweenTicks{1};

// The last line of its stage.
bool Complete(const v1::JobEvent& event) {
  switch (event.kind_case()) {
    case v1::JobEvent::kSearch:
      return event.search().done();
    case v1::JobEvent::kBuild:
      return event.build().done() == event.build().total();
    case v1::JobEvent::kTiming:
      return event.timing().done() == event.timing().total();
    default:
      return true;
  }
}

// Returns how much is done of how much, where events count; {0, 0} elsewhere.
std::pair<int, int> Counts(const v1::JobEvent& event) {
  if (event.has_build()) return {event.build().done(), event.build().total()};
  if (event.has_timing()) return {event.timing().done(), event.timing().total()};
  return {0, 0};
}

// Stages of the pipeline that tell nothing themselves and may take some time.
std::string StageText(const std::string& stage) {
  if (stage == "check what is predicted") return "compiling and checking the best predicted candidates";
  if (stage.starts_with("measure round")) return "timing";
  if (stage == "measure the finalists") return "timing the fastest again, on all kinds of data";
  if (stage == "cases") return "discussing cases";
  if (stage.starts_with("search again")) return "searching again, by what was measured";
  if (stage == "rank and export") return "writing the code";
  return "";
}

double Seconds(std::chrono::steady_clock::duration time) {
  return std::chrono::duration<double>(time).count();
}

// "[1:05] "
std::string Elapsed(std::chrono::steady_clock::duration time) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(time).count();
  return absl::StrFormat("[%d:%02d] ", seconds / 60, seconds % 60);
}

}  // namespace

std::string ProgressText(const v1::JobEvent& event) {
  switch (event.kind_case()) {
    case v1::JobEvent::kSearch: {
      if (!event.search().done()) return "searching";
      const v1::SearchSummary& summary = event.search().summary();
      return absl::StrCat("searched ", FormatCount(summary.fusions()), " fusions, ",
                          FormatCount(summary.fusion_implementations()), " implementations, ",
                          FormatCount(summary.covers()), " covers in ", FormatSeconds(summary.seconds()));
    }
    case v1::JobEvent::kBuild: {
      const v1::BuildProgress& build = event.build();
      return absl::StrCat("building ", build.done(), " of ", build.total(), " (", build.reused(), " reused, ",
                          build.failed(), " failed)");
    }
    case v1::JobEvent::kTiming: {
      const v1::TimeProgress& timing = event.timing();
      std::string text = absl::StrCat("timing ", timing.done(), " of ", timing.total());
      if (timing.best_seconds() > 0)
        absl::StrAppend(&text, ", best so far ", FormatSeconds(timing.best_seconds()), ", ",
                        FormatSpeedup(timing.best_speedup()));
      return text;
    }
    case v1::JobEvent::kStage:
      return StageText(event.stage());
    case v1::JobEvent::kNote:
      return event.note();
    default:
      return "";
  }
}

ProgressPrinter::ProgressPrinter(std::ostream& out, bool terminal, int width, Clock clock)
    : out_(out),
      terminal_(terminal),
      width_(width),
      clock_(std::move(clock)),
      start_(clock_()),
      stage_start_(start_) {
  if (!terminal_) return;
  ticks_ = std::jthread([this](std::stop_token stop) {
    std::unique_lock lock(mutex_);
    while (!stopped_.wait_for(lock, stop, kBetweenTicks, [&] { return stop.stop_requested(); })) {
      lock.unlock();
      Tick();
      lock.lock();
    }
  });
}

ProgressPrinter::~ProgressPrinter() {
  ticks_.request_stop();
  if (ticks_.joinable()) ticks_.join();
}

void ProgressPrinter::Show(const v1::JobEvent& event) {
  std::string text = ProgressText(event);
  if (text.empty()) return;
  std::lock_guard lock(mutex_);
  const bool new_stage = event.kind_case() != stage_;
  if (new_stage) {
    stage_ = event.kind_case();
    stage_start_ = clock_();
    done_before_ = Counts(event).first;
  }
  if (event.has_note()) {
    ClearLine();
    out_ << Elapsed(clock_() - start_) << text << std::endl;
    return;
  }
  absl::StrAppend(&text, LeftText(event));
  ShowLine(text, new_stage || Complete(event));
}

void ProgressPrinter::Show(const std::string& text) {
  std::lock_guard lock(mutex_);
  ShowLine(text, /*important=*/true);
}

// It is assumed that what is left takes as long as what was done.
std::string ProgressPrinter::LeftText(const v1::JobEvent& event) {
  const auto [done, total] = Counts(event);
  const int here = done - done_before_;
  if (here <= 0 || done >= total) return "";
  const double left = Seconds(clock_() - stage_start_) / here * (total - done);
  return left < 1 ? "" : absl::StrFormat(", about %.0f s left", left);
}

void ProgressPrinter::ShowLine(const std::string& text, bool important) {
  const auto now = clock_();
  if (terminal_) {
    text_ = text;
    WriteOver();
  } else if (text != text_ && (important || now - last_ >= kBetweenLines)) {
    out_ << Elapsed(now - start_) << text << std::endl;
    text_ = text;
    last_ = now;
  }
}

void ProgressPrinter::WriteOver() {
  std::string line = Elapsed(clock_() - start_) + text_;
  if (width_ > 1 && static_cast<int>(line.size()) >= width_) line.resize(width_ - 1);
  out_ << "\r\033[K" << line << std::flush;
  shown_ = true;
}

void ProgressPrinter::Tick() {
  std::lock_guard lock(mutex_);
  if (terminal_ && shown_) WriteOver();
}

void ProgressPrinter::Clear() {
  std::lock_guard lock(mutex_);
  ClearLine();
}

void ProgressPrinter::ClearLine() {
  if (shown_) out_ << "\r\033[K" << std::flush;
  shown_ = false;
}

}  // namespace fusion
