// Numbers that say how a program is doing, and their text for Prometheus (exposition format 0.0.4).
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace fusion {

// A counter only grows. It is thread safe, as all values here are: one atomic operation.
class Counter {
 public:
  // `by` is not negative.
  void Add(double by = 1) { value_.fetch_add(by, std::memory_order_relaxed); }
  double value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<double> value_{0};
};

class Gauge {
 public:
  void Set(double value) { value_.store(value, std::memory_order_relaxed); }
  void Add(double by) { value_.fetch_add(by, std::memory_order_relaxed); }
  double value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<double> value_{0};
};

class Histogram {
 public:
  // Upper ends of the buckets, ascending; the one to infinity is added.
  explicit Histogram(std::vector<double> bounds);
  // NaN is left out.
  void Observe(double value);

  const std::vector<double>& bounds() const { return bounds_; }
  // Counts per bucket, not cumulative; one more than bounds.
  std::vector<uint64_t> counts() const;
  double sum() const { return sum_.load(std::memory_order_relaxed); }

 private:
  const std::vector<double> bounds_;
  const std::unique_ptr<std::atomic<uint64_t>[]> counts_;
  std::atomic<double> sum_{0};
};

// Metrics of one name that differ by the values of their labels. Thread safe.
template <typename Metric>
class MetricFamily {
 public:
  MetricFamily(std::vector<std::string> labels, std::function<std::unique_ptr<Metric>()> make)
      : labels_(std::move(labels)), make_(std::move(make)) {}

  // Returns the metric with these values, in the order of the labels; made when first asked for, it lives as
  // long as the family. In a family with kMostSeries series, new values are counted together under "other".
  static constexpr size_t kMostSeries = 500;
  Metric& With(const std::vector<std::string>& values) {
    std::lock_guard lock(mutex_);
    auto found = series_.find(values);
    if (found == series_.end()) {
      const std::vector<std::string>& key =
          series_.size() < kMostSeries ? values : std::vector<std::string>(labels_.size(), "other");
      found = series_.try_emplace(key).first;
      if (!found->second) found->second = make_();
    }
    return *found->second;
  }
  // The one metric of a family without labels.
  Metric& operator*() { return With({}); }
  Metric* operator->() { return &With({}); }

  const std::vector<std::string>& labels() const { return labels_; }
  // Calls `call` for each series, in the order of the values.
  void ForEach(const std::function<void(const std::vector<std::string>&, const Metric&)>& call) const {
    std::lock_guard lock(mutex_);
    for (const auto& [values, metric] : series_) call(values, *metric);
  }

 private:
  const std::vector<std::string> labels_;
  const std::function<std::unique_ptr<Metric>()> make_;
  mutable std::mutex mutex_;
  std::map<std::vector<std::string>, std::unique_ptr<Metric>> series_;  // guarded by mutex_
};

// All metrics of a program. Thread safe. Families live as long as this object.
class Metrics {
 public:
  // Names and labels are [a-zA-Z_][a-zA-Z0-9_]*; a name is added once. A family without labels has its one
  // series from the start.
  MetricFamily<Counter>& AddCounter(const std::string& name, const std::string& help,
                                    const std::vector<std::string>& labels = {});
  MetricFamily<Gauge>& AddGauge(const std::string& name, const std::string& help,
                                const std::vector<std::string>& labels = {});
  MetricFamily<Histogram>& AddHistogram(const std::string& name, const std::string& help,
                                        const std::vector<double>& bounds,
                                        const std::vector<std::string>& labels = {});
  // `collect` is called, one at a time, before each Text(): it sets what is looked up and not counted.
  void OnCollect(std::function<void()> collect);

  // Returns the families in the order in which they were added, their series by labels.
  std::string Text();

 private:
  // Appends the family to the text.
  using Printer = std::function<void(std::string* text)>;
  template <typename Metric, typename Print>
  MetricFamily<Metric>& Add(const std::string& name, const std::string& help, const char* type,
                            const std::vector<std::string>& labels,
                            std::function<std::unique_ptr<Metric>()> make, Print print);

  std::mutex collect_mutex_;
  std::mutex mutex_;
  std::vector<Printer> printers_;                  // guarded by mutex_
  std::vector<std::function<void()>> collectors_;  // guarded by mutex_
};

// Bounds, in seconds, for what takes milliseconds to minutes.
std::vector<double> DurationBounds();

}  // namespace fusion
