#include "client/tuner/tuner.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/similar_name.h"
#include "base/status_macros.h"
#include "client/tuner/clock.h"
#include "client/tuner/process.h"

namespace fusion::tuning {
namespace {

// With other sizes each. More are a program that gives every input a section of its own, and learns nothing.
constexpr size_t kMostSections = 10'000;

absl::Status DeclaredAlready(const Section& section) {
  return absl::FailedPreconditionError(
      absl::StrCat("section ", section.name(), " is declared already, and is not changed any more"));
}

std::string Plural(size_t count, absl::string_view noun) {
  return absl::StrCat(count, " ", noun, count == 1 ? "" : "s");
}

}  // namespace

Tuner::Tuner(TunerSettings settings, std::shared_ptr<void> server_in_process)
    : settings_(std::move(settings)),
      server_in_process_(std::move(server_in_process)),
      background_(*this, settings_.dial, settings_.server) {
  {
    Process& process = Process::Get();
    std::lock_guard lock(process.mutex);
    serial_ = process.NewSerial();
    process.tuners.insert(this);
    process.tuner_serials.insert(serial_);
  }
  background_.Start();
}

void Tuner::Finish() {
  if (std::exchange(finished_, true)) return;
  // Reports that cannot be sent in time are lost, as is said in the header.
  Flush(settings_.last_flush_seconds, /*unless_unreachable=*/true).IgnoreError();
  background_.Stop();
  server_in_process_.reset();
}

Tuner::~Tuner() {
  Finish();
  Process& process = Process::Get();
  std::lock_guard lock(process.mutex);
  process.tuners.erase(this);
  process.tuner_serials.erase(serial_);
  for (const std::unique_ptr<Section>& section : sections_) process.section_serials[section->slot] = 0;
}

void Tuner::Abandon() {
  Process& process = Process::Get();
  std::lock_guard lock(process.mutex);
  process.tuners.erase(this);
}

// ---- Declarations

absl::Status Tuner::CheckParameter(const v1::TuningParameter& declaration) const {
  // Alone: what the condition names is not known yet.
  v1::SectionDeclaration alone;
  alone.set_program(settings_.program);
  alone.set_section("section");
  alone.set_device_class(settings_.device_class);
  *alone.add_parameters() = declaration;
  alone.mutable_parameters(0)->clear_condition();
  return ParameterSpace::Create(alone).status();
}

absl::StatusOr<Parameter*> Tuner::AddParameter(v1::TuningParameter declaration) {
  FUSION_RETURN_IF_ERROR(CheckParameter(declaration));
  std::lock_guard lock(mutex_);
  parameters_.push_back(std::make_unique<Parameter>());
  parameters_.back()->tuner = this;
  parameters_.back()->declaration = std::move(declaration);
  return parameters_.back().get();
}

absl::Status Tuner::ChangeParameter(Parameter& parameter,
                                    const std::function<void(v1::TuningParameter&)>& change) {
  std::lock_guard lock(mutex_);
  if (parameter.section != nullptr)
    return absl::FailedPreconditionError(absl::StrCat("parameter ", parameter.declaration.name(),
                                                      " is in section ", parameter.section->name(),
                                                      " already: say this before it is added"));
  v1::TuningParameter changed = parameter.declaration;
  change(changed);
  FUSION_RETURN_IF_ERROR(CheckParameter(changed));
  parameter.declaration = std::move(changed);
  return absl::OkStatus();
}

absl::StatusOr<Section*> Tuner::NewSection() {
  if (sections_.size() >= kMostSections)
    return absl::ResourceExhaustedError(absl::StrCat(
        "there are ", kMostSections,
        " sections already, with their sizes: round the sizes, so that inputs share what is learned"));
  Process& process = Process::Get();
  const uint64_t serial = process.NewSerial();
  sections_.push_back(std::make_unique<Section>(this, serial, process.TakeSlot(serial),
                                                static_cast<uint32_t>(sections_.size() + 1)));
  return sections_.back().get();
}

absl::StatusOr<Section*> Tuner::CreateSection(const std::string& name) {
  if (!IsTuningText(name))
    return absl::InvalidArgumentError(absl::StrCat(
        "the section \"", absl::CHexEscape(name.substr(0, kLongestTuningText)),
        "\" must have a name of 1 to ", kLongestTuningText, " bytes of UTF-8 without control characters"));
  std::scoped_lock lock(Process::Get().mutex, mutex_);
  if (by_name_.contains(name))
    return absl::AlreadyExistsError(
        absl::StrCat("there is a section ", name, " already; fusion_tuner_section_find gives it"));
  absl::StatusOr<Section*> section = NewSection();
  if (!section.ok()) return section;
  v1::SectionDeclaration& declaration = (*section)->declaration;
  declaration.set_program(settings_.program);
  declaration.set_section(name);
  declaration.set_device_class(settings_.device_class);
  declaration.set_strategy(settings_.strategy);
  declaration.set_clock_seconds(ClockSeconds());
  by_name_[name] = *section;
  return section;
}

absl::Status Tuner::AddToSection(Section& section, Parameter& parameter) {
  std::lock_guard lock(mutex_);
  if (section.declared()) return DeclaredAlready(section);
  if (parameter.tuner != this)
    return absl::FailedPreconditionError(
        absl::StrCat("parameter ", parameter.declaration.name(), " was made for another tuner"));
  if (parameter.section != nullptr)
    return absl::FailedPreconditionError(absl::StrCat("parameter ", parameter.declaration.name(),
                                                      " is in section ", parameter.section->name(),
                                                      " already; make one for each section"));
  *section.declaration.add_parameters() = parameter.declaration;
  parameter.section = &section;
  return absl::OkStatus();
}

absl::Status Tuner::ChangeSection(Section& section,
                                  const std::function<absl::Status(v1::SectionDeclaration&)>& change) {
  std::lock_guard lock(mutex_);
  if (section.declared()) return DeclaredAlready(section);
  return change(section.declaration);
}

void Tuner::DeclareLocked(Section& section, std::shared_ptr<const ParameterSpace> space) {
  section.Declare(std::move(space), std::max(settings_.exploration_share, 0.0));
  declared_.push_back(&section);
}

absl::Status Tuner::Declare(Section& section) {
  v1::SectionDeclaration declaration;
  {
    std::lock_guard lock(mutex_);
    if (section.declared()) return DeclaredAlready(section);
    declaration = section.declaration;
  }
  // Without the lock: to find a configuration that satisfies the constraints may take a while.
  absl::StatusOr<std::shared_ptr<const ParameterSpace>> space = ParameterSpace::Create(declaration);
  if (!space.ok())
    return absl::Status(space.status().code(), absl::StrCat("section ", declaration.section(), ": ",
                                                            std::string(space.status().message())));
  {
    std::lock_guard lock(mutex_);
    if (section.declared()) return DeclaredAlready(section);
    DeclareLocked(section, *std::move(space));
  }
  background_.Wake();
  return absl::OkStatus();
}

absl::StatusOr<Section*> Tuner::WithSizes(Section& section, const std::vector<int64_t>& sizes) {
  Section& base = section.base != nullptr ? *section.base : section;
  v1::SectionDeclaration declaration;
  {
    std::lock_guard lock(mutex_);
    if (!base.declared())
      return absl::FailedPreconditionError(absl::StrCat("section ", base.name(), " is not declared yet"));
    if (auto known = base.by_sizes.find(sizes); known != base.by_sizes.end()) return known->second;
    declaration = base.declaration;
  }
  if (sizes.size() != static_cast<size_t>(declaration.context_size())) {
    std::vector<std::string> names;
    for (const v1::ContextSize& size : declaration.context()) names.push_back(size.name());
    return absl::InvalidArgumentError(absl::StrCat("section ", declaration.section(), " was declared with ",
                                                   Plural(names.size(), "size"), names.empty() ? "" : " (",
                                                   absl::StrJoin(names, ", "), names.empty() ? "" : ")",
                                                   "; given are ", sizes.size()));
  }
  bool same = true;
  for (size_t i = 0; i < sizes.size(); ++i) {
    v1::ContextSize& size = *declaration.mutable_context(static_cast<int>(i));
    same = same && size.value() == sizes[i];
    size.set_value(sizes[i]);
  }
  if (same) return &base;
  return AddSizes(base, sizes, std::move(declaration));
}

absl::StatusOr<Section*> Tuner::AddSizes(Section& base, const std::vector<int64_t>& sizes,
                                         v1::SectionDeclaration declaration) {
  absl::StatusOr<std::shared_ptr<const ParameterSpace>> space = ParameterSpace::Create(declaration);
  if (!space.ok())
    return absl::Status(space.status().code(), absl::StrCat("section ", declaration.section(), " with sizes ",
                                                            absl::StrJoin(sizes, ", "), ": ",
                                                            std::string(space.status().message())));
  absl::StatusOr<Section*> added;
  {
    std::scoped_lock lock(Process::Get().mutex, mutex_);
    if (auto known = base.by_sizes.find(sizes); known != base.by_sizes.end())
      return known->second;  // another thread was faster
    added = NewSection();
    if (!added.ok()) return added;
    (*added)->declaration = std::move(declaration);
    (*added)->base = &base;
    DeclareLocked(**added, *std::move(space));
    base.by_sizes[sizes] = *added;
  }
  background_.Wake();
  return added;
}

absl::StatusOr<Section*> Tuner::Find(const std::string& name) {
  std::lock_guard lock(mutex_);
  if (auto found = by_name_.find(name); found != by_name_.end()) return found->second;
  std::vector<absl::string_view> names;
  for (const auto& [known, section] : by_name_) names.push_back(known);
  std::string message =
      absl::StrCat("there is no section ", Shown(name), DidYouMean(SimilarName(name, names)));
  if (names.empty()) absl::StrAppend(&message, "; none was created yet");
  return absl::NotFoundError(message);
}

// ---- Runs

Channel* Tuner::AddChannel() {
  channels_.push_back(std::make_unique<Channel>());
  background_.Wake();
  return channels_.back().get();
}

void Tuner::DropInChild(Channel& channel, bool run) {
  if (run) Increment(channel.dropped);
  if (!told_forked_.exchange(true))
    Notice(
        "this process was forked from one that tunes: it keeps the choice of that moment, and reports "
        "nothing");
}

absl::Status Tuner::Flush(double seconds, bool unless_unreachable) {
  if (forked())
    return absl::FailedPreconditionError("this process was forked from one that tunes, and reports nothing");
  // An hour: longer ones would overflow.
  const auto deadline =
      std::chrono::steady_clock::now() + std::chrono::duration_cast<std::chrono::nanoseconds>(
                                             std::chrono::duration<double>(std::clamp(seconds, 0.0, 3600.0)));
  std::unique_lock lock(mutex_);
  const uint64_t request = ++flush_requested_;
  background_.Wake();
  const bool done = flushed_condition_.wait_until(lock, deadline, [&] {
    return flushed_ >= request || (unless_unreachable && background_.unreachable());
  });
  if (done) return absl::OkStatus();
  return absl::DeadlineExceededError(absl::StrCat(settings_.server, " did not store all reports within ",
                                                  seconds, " s",
                                                  background_.connected() ? "" : ": it cannot be reached"));
}

void Tuner::Counters(fusion_tuner_counters_t& counters) {
  std::lock_guard lock(mutex_);
  counters.reported = ended_reported_;
  counters.dropped = ended_dropped_ + background_.dropped();
  counters.explored = ended_explored_;
  for (const std::unique_ptr<Channel>& channel : channels_) {
    counters.reported += channel->reported.load(std::memory_order_relaxed);
    counters.dropped += channel->dropped.load(std::memory_order_relaxed);
    counters.explored += channel->explored.load(std::memory_order_relaxed);
  }
  counters.acknowledged = background_.acknowledged();
  counters.refused = background_.refused();
  const uint64_t connections = background_.connections();
  counters.reconnections = connections > 0 ? connections - 1 : 0;
  counters.connected = !forked() && background_.connected();
}

void Tuner::Notice(const std::string& line) const {
  if (settings_.notice) settings_.notice(line);
}

// ---- For the background thread

std::vector<Channel*> Tuner::ChannelsNow() {
  std::vector<Channel*> channels;
  std::lock_guard lock(mutex_);
  channels.reserve(channels_.size());
  for (const std::unique_ptr<Channel>& channel : channels_) channels.push_back(channel.get());
  return channels;
}

std::vector<Section*> Tuner::SectionsFrom(size_t first) {
  std::lock_guard lock(mutex_);
  return {declared_.begin() + static_cast<ptrdiff_t>(first), declared_.end()};
}

void Tuner::Retire(Channel* channel, const std::function<void(Runner&)>& each) {
  for (const std::unique_ptr<Runner>& runner : channel->runners) each(*runner);
  std::lock_guard lock(mutex_);
  for (const std::unique_ptr<Runner>& runner : channel->runners) runner->section->TakeBack(*runner);
  ended_reported_ += channel->reported.load(std::memory_order_relaxed);
  ended_dropped_ += channel->dropped.load(std::memory_order_relaxed);
  ended_explored_ += channel->explored.load(std::memory_order_relaxed);
  std::erase_if(channels_, [&](const std::unique_ptr<Channel>& held) { return held.get() == channel; });
}

uint64_t Tuner::flush_requested() {
  std::lock_guard lock(mutex_);
  return flush_requested_;
}

void Tuner::Flushed(uint64_t request) {
  {
    std::lock_guard lock(mutex_);
    flushed_ = std::max(flushed_, request);
  }
  flushed_condition_.notify_all();
}

}  // namespace fusion::tuning
