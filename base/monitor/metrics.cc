#include "base/monitor/metrics.h"

#include <algorithm>
#include <cassert>
#include <charconv>
#include <cmath>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace fusion {
namespace {

std::string Number(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  char text[64];
  const std::to_chars_result end = std::to_chars(text, text + sizeof text, value);
  return std::string(text, end.ptr);
}

std::string EscapedHelp(const std::string& help) {
  return absl::StrReplaceAll(help, {{"\\", "\\\\"}, {"\n", "\\n"}});
}

// `{kind="BUILD",le="0.5"}`; "" without labels. extra_name: one label more, at the end.
std::string Labels(const std::vector<std::string>& names, const std::vector<std::string>& values,
                   const std::string& extra_name = "", const std::string& extra_value = "") {
  std::string text;
  const auto append = [&](const std::string& name, const std::string& value) {
    absl::StrAppend(&text, text.empty() ? "{" : ",", name, "=\"",
                    absl::StrReplaceAll(value, {{"\\", "\\\\"}, {"\n", "\\n"}, {"\"", "\\\""}}), "\"");
  };
  for (size_t i = 0; i < names.size() && i < values.size(); ++i) append(names[i], values[i]);
  if (!extra_name.empty()) append(extra_name, extra_value);
  return text.empty() ? "" : text + "}";
}

[[maybe_unused]] bool IsName(const std::string& name) {
  return !name.empty() && !absl::ascii_isdigit(name[0]) &&
         std::all_of(name.begin(), name.end(), [](char c) { return absl::ascii_isalnum(c) || c == '_'; });
}

}  // namespace

Histogram::Histogram(std::vector<double> bounds)
    : bounds_(std::move(bounds)), counts_(new std::atomic<uint64_t>[bounds_.size() + 1]()) {
  assert(std::is_sorted(bounds_.begin(), bounds_.end()));
}

void Histogram::Observe(double value) {
  if (std::isnan(value)) return;
  const size_t bucket = std::lower_bound(bounds_.begin(), bounds_.end(), value) - bounds_.begin();
  counts_[bucket].fetch_add(1, std::memory_order_relaxed);
  sum_.fetch_add(value, std::memory_order_relaxed);
}

std::vector<uint64_t> Histogram::counts() const {
  std::vector<uint64_t> counts(bounds_.size() + 1);
  for (size_t i = 0; i < counts.size(); ++i) counts[i] = counts_[i].load(std::memory_order_relaxed);
  return counts;
}

template <typename Metric, typename Print>
MetricFamily<Metric>& Metrics::Add(const std::string& name, const std::string& help, const char* type,
                                   const std::vector<std::string>& labels,
                                   std::function<std::unique_ptr<Metric>()> make, Print print) {
  assert(IsName(name) && std::all_of(labels.begin(), labels.end(), IsName));
  auto family = std::make_shared<MetricFamily<Metric>>(labels, std::move(make));
  if (labels.empty()) family->With({});
  const std::string head =
      absl::StrCat("# HELP ", name, " ", EscapedHelp(help), "\n# TYPE ", name, " ", type, "\n");
  std::lock_guard lock(mutex_);
  printers_.push_back([family, head, print](std::string* text) {
    absl::StrAppend(text, head);
    family->ForEach([&](const std::vector<std::string>& values, const Metric& metric) {
      print(family->labels(), values, metric, text);
    });
  });
  return *family;
}

MetricFamily<Counter>& Metrics::AddCounter(const std::string& name, const std::string& help,
                                           const std::vector<std::string>& labels) {
  return Add<Counter>(
      name, help, "counter", labels, [] { return std::make_unique<Counter>(); },
      [name](const auto& names, const auto& values, const Counter& counter, std::string* text) {
        absl::StrAppend(text, name, Labels(names, values), " ", Number(counter.value()), "\n");
      });
}

MetricFamily<Gauge>& Metrics::AddGauge(const std::string& name, const std::string& help,
                                       const std::vector<std::string>& labels) {
  return Add<Gauge>(
      name, help, "gauge", labels, [] { return std::make_unique<Gauge>(); },
      [name](const auto& names, const auto& values, const Gauge& gauge, std::string* text) {
        absl::StrAppend(text, name, Labels(names, values), " ", Number(gauge.value()), "\n");
      });
}

MetricFamily<Histogram>& Metrics::AddHistogram(const std::string& name, const std::string& help,
                                               const std::vector<double>& bounds,
                                               const std::vector<std::string>& labels) {
  return Add<Histogram>(
      name, help, "histogram", labels, [bounds] { return std::make_unique<Histogram>(bounds); },
      [name](const auto& names, const auto& values, const Histogram& histogram, std::string* text) {
        const std::vector<uint64_t> counts = histogram.counts();
        uint64_t below = 0;
        for (size_t i = 0; i < counts.size(); ++i) {
          below += counts[i];
          const std::string bound = i < histogram.bounds().size() ? Number(histogram.bounds()[i]) : "+Inf";
          absl::StrAppend(text, name, "_bucket", Labels(names, values, "le", bound), " ", below, "\n");
        }
        absl::StrAppend(text, name, "_sum", Labels(names, values), " ", Number(histogram.sum()), "\n", name,
                        "_count", Labels(names, values), " ", below, "\n");
      });
}

void Metrics::OnCollect(std::function<void()> collect) {
  std::lock_guard lock(mutex_);
  collectors_.push_back(std::move(collect));
}

std::string Metrics::Text() {
  std::lock_guard one_at_a_time(collect_mutex_);
  std::vector<std::function<void()>> collectors;
  std::vector<Printer> printers;
  {
    std::lock_guard lock(mutex_);
    collectors = collectors_;
    printers = printers_;
  }
  for (const std::function<void()>& collect : collectors) collect();
  std::string text;
  for (const Printer& print : printers) print(&text);
  return text;
}

std::vector<double> DurationBounds() {
  return {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600};
}

}  // namespace fusion
