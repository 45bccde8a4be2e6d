// Online tuning for C++17: the C functions of fusion_tuner.h as objects. Header alone; links what C programs link.
//
//   fusion::tuner::Tuner tuner;
//   fusion::tuner::Section section = tuner.Declare(
//       "transpose", {fusion::tuner::PowerOfTwo("tile", 4, 256).Default(16),
//                     fusion::tuner::Enumeration("order", {"rows", "columns"})},
//       {.constraints = {"tile * tile <= 16384"}, .sizes = {{"n", n}}});
//   section.Measure([&](const fusion::tuner::Values& values) {
//     Transpose(values.Integer(0), values.Index(1) == 0 ? kRows : kColumns);
//   });
//
// (Names of members as above are C++20; in C++17 fill a SectionOptions.)
//
// Errors: what cannot work (a declaration that makes no sense, a data directory in use) throws Error, whose what() is
// fusion_tuner_message(). What runs all the time (Measure, Run, Next) throws nothing of its own.
// Threads: as fusion_tuner.h. A Tuner must outlive its sections and runs.
#ifndef FUSION_TUNER_HPP_
#define FUSION_TUNER_HPP_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "fusion_tuner.h"

namespace fusion::tuner {

// The code of a call, and what was wrong.
class Status {
 public:
  Status() = default;
  // The status of a call that just returned in this thread.
  static Status Of(int code) {
    Status status;
    status.code_ = static_cast<fusion_tuner_code>(code);
    if (code != FUSION_TUNER_OK) status.message_ = fusion_tuner_message();
    return status;
  }
  bool ok() const { return code_ == FUSION_TUNER_OK; }
  fusion_tuner_code code() const { return code_; }
  const std::string& message() const { return message_; }

 private:
  fusion_tuner_code code_ = FUSION_TUNER_OK;
  std::string message_;
};

class Error : public std::runtime_error {
 public:
  explicit Error(const Status& status) : std::runtime_error(status.message()), code_(status.code()) {}
  fusion_tuner_code code() const { return code_; }

 private:
  fusion_tuner_code code_;
};

inline void ThrowUnlessOk(int code) {
  if (code != FUSION_TUNER_OK) throw Error(Status::Of(code));
}

// ---- Parameters, as they are written in a declaration

class Parameter {
 public:
  // Sets the value while nothing is known; for an enumeration it is the index.
  Parameter&& Default(double value) && {
    has_default_ = true;
    default_ = value;
    return std::move(*this);
  }
  // The parameter has a meaning only where the expression over earlier parameters and sizes holds.
  Parameter&& Where(std::string condition) && {
    condition_ = std::move(condition);
    return std::move(*this);
  }

 private:
  friend class Tuner;
  friend Parameter Integer(std::string name, int64_t lower, int64_t upper, int64_t step);
  friend Parameter PowerOfTwo(std::string name, int64_t lower, int64_t upper);
  friend Parameter Enumeration(std::string name, std::vector<std::string> values);
  friend Parameter Real(std::string name, double lower, double upper);
  friend Parameter Logarithmic(std::string name, double lower, double upper);

  using Make = std::function<int(fusion_tuner*, fusion_tuner_parameter**)>;
  explicit Parameter(Make make) : make_(std::move(make)) {}
  Make make_;
  bool has_default_ = false;
  double default_ = 0;
  std::string condition_;
};

// lower, lower + step, ... up to upper.
inline Parameter Integer(std::string name, int64_t lower, int64_t upper, int64_t step = 1) {
  return Parameter([=](fusion_tuner* tuner, fusion_tuner_parameter** made) {
    return fusion_tuner_integer_range(tuner, name.c_str(), lower, upper, step, made);
  });
}
inline Parameter PowerOfTwo(std::string name, int64_t lower, int64_t upper) {
  return Parameter([=](fusion_tuner* tuner, fusion_tuner_parameter** made) {
    return fusion_tuner_power_of_two(tuner, name.c_str(), lower, upper, made);
  });
}
inline Parameter Enumeration(std::string name, std::vector<std::string> values) {
  return Parameter([=](fusion_tuner* tuner, fusion_tuner_parameter** made) {
    std::vector<const char*> texts;
    for (const std::string& value : values) texts.push_back(value.c_str());
    return fusion_tuner_enumeration(tuner, name.c_str(), texts.data(), texts.size(), made);
  });
}
inline Parameter Real(std::string name, double lower, double upper) {
  return Parameter([=](fusion_tuner* tuner, fusion_tuner_parameter** made) {
    return fusion_tuner_real_range(tuner, name.c_str(), lower, upper, 0, made);
  });
}
// Equal ratios are equal steps.
inline Parameter Logarithmic(std::string name, double lower, double upper) {
  return Parameter([=](fusion_tuner* tuner, fusion_tuner_parameter** made) {
    return fusion_tuner_real_range(tuner, name.c_str(), lower, upper, 1, made);
  });
}

// ---- Runs

// The values of a run, in the order of the declaration. Not longer than the run.
class Values {
 public:
  explicit Values(const fusion_tuner_value* values) : values_(values) {}
  int64_t Integer(size_t parameter) const { return values_[parameter].integer; }  // also of a power of two
  size_t Index(size_t parameter) const { return static_cast<size_t>(values_[parameter].integer); }  // of an enumeration
  double Real(size_t parameter) const { return values_[parameter].real; }

 private:
  const fusion_tuner_value* values_;
};

// A run that has begun. Ended by Stop, Report or Fail, else cancelled by the destructor: what an exception leaves says nothing
// about the values. May be ended in another thread. Moved, not copied.
class Run {
 public:
  explicit Run(fusion_tuner_section* section) { ThrowUnlessOk(fusion_tuner_run_begin(section, &run_)); }
  ~Run() { Cancel(); }
  Run(Run&& other) noexcept : run_(std::exchange(other.run_, fusion_tuner_run{})) {}
  Run& operator=(Run&& other) noexcept {
    if (this != &other) {
      Cancel();
      run_ = std::exchange(other.run_, fusion_tuner_run{});
    }
    return *this;
  }
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  Values values() const { return Values(run_.values); }
  // Each of these ends the run; after that they return FAILED_PRECONDITION.
  Status Stop() { return Status::Of(fusion_tuner_run_stop(&run_)); }
  Status Report(double value) { return Status::Of(fusion_tuner_run_report(&run_, value)); }
  Status Fail() { return Status::Of(fusion_tuner_run_fail(&run_)); }
  void Cancel() {
    if (run_.values != nullptr) fusion_tuner_run_cancel(&run_);
  }

 private:
  fusion_tuner_run run_{};
};

// ---- Sections

// A handle: copies are the same section.
class Section {
 public:
  explicit Section(fusion_tuner_section* section) : section_(section) {}

  // Runs the function once with the values of the next run and reports what it took. What the function returns is returned; when
  // it throws, the run is cancelled. Functions may run sections, also this one.
  template <typename Function>
  auto Measure(Function&& function) const -> std::invoke_result_t<Function, const Values&> {
    Run run(section_);
    const Values values = run.values();
    if constexpr (std::is_void_v<std::invoke_result_t<Function, const Values&>>) {
      std::forward<Function>(function)(values);
      run.Stop();
    } else {
      auto result = std::forward<Function>(function)(values);
      run.Stop();
      return result;
    }
  }
  // For other objectives than time, and runs that end elsewhere.
  Run Begin() const { return Run(section_); }

  // The three calls of the C API, of this thread.
  Values Next() const { return Values(fusion_tuner_next(section_)); }
  Status Start() const { return Status::Of(fusion_tuner_start(section_)); }
  Status Stop() const { return Status::Of(fusion_tuner_stop(section_)); }

  // The best known values of `parameters` parameters.
  std::vector<fusion_tuner_value> Best(size_t parameters) const {
    std::vector<fusion_tuner_value> values(parameters);
    ThrowUnlessOk(fusion_tuner_best(section_, values.data(), values.size()));
    return values;
  }
  bool Converged() const { return fusion_tuner_converged(section_) == 1; }
  // Returns what the server said of the section.
  Status ServerStatus() const { return Status::Of(fusion_tuner_section_status(section_)); }
  // The same section for other sizes, for all names in the order in which they were declared.
  Section WithSizes(const std::vector<int64_t>& sizes) const {
    fusion_tuner_section* section = nullptr;
    ThrowUnlessOk(fusion_tuner_section_with_sizes(section_, sizes.data(), sizes.size(), &section));
    return Section(section);
  }
  fusion_tuner_section* handle() const { return section_; }

 private:
  fusion_tuner_section* section_;
};

struct SectionOptions {
  std::vector<std::string> constraints;
  std::vector<std::pair<std::string, int64_t>> sizes;
  // "": time. Otherwise runs are ended with Report.
  std::string objective, unit;
  bool maximize = false;
};

// ---- The tuner

struct TunerOptions {
  // As fusion_tuner_options; "" for NULL.
  std::string program, server, device_class, data_directory, strategy;
  double exploration_share = -1;
  std::function<void(const std::string&)> notice;  // from a thread of the library; empty: stderr
};

class Tuner {
 public:
  explicit Tuner(const TunerOptions& options = {})
      : notice_(options.notice ? std::make_unique<std::function<void(const std::string&)>>(options.notice) : nullptr) {
    fusion_tuner_options c_options;
    fusion_tuner_options_init(&c_options);
    c_options.program = TextOrNull(options.program);
    c_options.server = TextOrNull(options.server);
    c_options.device_class = TextOrNull(options.device_class);
    c_options.data_directory = TextOrNull(options.data_directory);
    c_options.strategy = TextOrNull(options.strategy);
    c_options.exploration_share = options.exploration_share;
    if (notice_ != nullptr) {
      c_options.notice = [](const char* line, void* data) {
        (*static_cast<std::function<void(const std::string&)>*>(data))(line);
      };
      c_options.notice_data = notice_.get();
    }
    fusion_tuner* tuner = nullptr;
    ThrowUnlessOk(fusion_tuner_create(&c_options, &tuner));
    tuner_.reset(tuner);
  }

  Section Declare(const std::string& name, const std::vector<Parameter>& parameters,
                  const SectionOptions& options = {}) const {
    fusion_tuner_section* section = nullptr;
    ThrowUnlessOk(fusion_tuner_section_create(tuner_.get(), name.c_str(), &section));
    for (const Parameter& parameter : parameters) {
      fusion_tuner_parameter* made = nullptr;
      ThrowUnlessOk(parameter.make_(tuner_.get(), &made));
      if (parameter.has_default_) ThrowUnlessOk(fusion_tuner_parameter_default(made, parameter.default_));
      if (!parameter.condition_.empty())
        ThrowUnlessOk(fusion_tuner_parameter_condition(made, parameter.condition_.c_str()));
      ThrowUnlessOk(fusion_tuner_section_parameter(section, made));
    }
    for (const std::string& constraint : options.constraints)
      ThrowUnlessOk(fusion_tuner_section_constraint(section, constraint.c_str()));
    for (const auto& [size, value] : options.sizes)
      ThrowUnlessOk(fusion_tuner_section_size(section, size.c_str(), value));
    if (!options.objective.empty())
      ThrowUnlessOk(fusion_tuner_section_objective(section, options.objective.c_str(), options.unit.c_str(),
                                                   options.maximize ? 1 : 0));
    ThrowUnlessOk(fusion_tuner_section_declare(section));
    return Section(section);
  }
  Section Find(const std::string& name) const {
    fusion_tuner_section* section = nullptr;
    ThrowUnlessOk(fusion_tuner_section_find(tuner_.get(), name.c_str(), &section));
    return Section(section);
  }
  Status Flush(double seconds) const { return Status::Of(fusion_tuner_flush(tuner_.get(), seconds)); }
  fusion_tuner_counters_t Counters() const {
    fusion_tuner_counters_t counters{};
    counters.size = sizeof(counters);
    ThrowUnlessOk(fusion_tuner_counters(tuner_.get(), &counters));
    return counters;
  }
  fusion_tuner* handle() const { return tuner_.get(); }

 private:
  static const char* TextOrNull(const std::string& text) { return text.empty() ? nullptr : text.c_str(); }
  struct Destroy {
    void operator()(fusion_tuner* tuner) const { fusion_tuner_destroy(tuner); }
  };
  // Outlives the tuner, which calls it until its end.
  std::unique_ptr<std::function<void(const std::string&)>> notice_;
  std::unique_ptr<fusion_tuner, Destroy> tuner_;
};

}  // namespace fusion::tuner

#endif
