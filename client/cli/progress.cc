#include "client/cli/progress.h"

#include "absl/strings/str_cat.h"
#include "client/cli/number_format.h"

namespace fusion {
namespace {

constexpr std::chrono::seconds kBetweenLines{5};

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
    case v1::JobEvent::kNote:
      return event.note();
    default:
      return "";
  }
}

ProgressPrinter::ProgressPrinter(std::ostream& out, bool terminal, int width)
    : out_(out), terminal_(terminal), width_(width) {}

void ProgressPrinter::Show(const v1::JobEvent& event) {
  const std::string text = ProgressText(event);
  if (text.empty()) return;
  const bool new_stage = event.kind_case() != stage_;
  stage_ = event.kind_case();
  if (event.has_note()) {
    Clear();
    out_ << text << std::endl;
    return;
  }
  ShowLine(text, new_stage || Complete(event));
}

void ProgressPrinter::ShowLine(const std::string& text, bool important) {
  const auto now = std::chrono::steady_clock::now();
  if (terminal_) {
    const std::string cut =
        width_ > 1 && static_cast<int>(text.size()) >= width_ ? text.substr(0, width_ - 1) : text;
    out_ << "\r\033[K" << cut << std::flush;
    shown_ = cut;
  } else if (text != shown_ && (important || now - last_ >= kBetweenLines)) {
    out_ << text << std::endl;
    shown_ = text;
    last_ = now;
  }
}

void ProgressPrinter::Clear() {
  if (terminal_ && !shown_.empty()) out_ << "\r\033[K" << std::flush;
  if (terminal_) shown_.clear();
}

}  // namespace fusion
