#include "server/tuner/tuning_registry.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "server/tuner/declared_section.h"
#include "server/tuner/tuning_messages.h"
#include "server/tuner/tuning_registry_parts.h"
#include "server/tuner/warm_start.h"

namespace fusion {
namespace {

constexpr size_t kMostProcessBytes = 128;

}  // namespace

uint64_t TuningProgram::unacknowledged() const {
  std::lock_guard lock(state_->mutex);
  return state_->accepted - std::min(state_->accepted, state_->stored);
}

TuningRegistry::TuningRegistry(TuningStore& store, boost::asio::thread_pool& pool,
                               const TunerOptions& options, TunerMetrics* metrics,
                               std::function<void(const std::string&)> changed)
    : store_(store), pool_(pool), options_(options), metrics_(metrics), changed_(std::move(changed)) {
  committer_ = std::make_unique<TuningCommitter>(
      store_, [this](const auto& done, const auto& progress) { OnCommitted(done, progress); }, metrics_);
}

TuningRegistry::~TuningRegistry() { Stop(); }

void TuningRegistry::Stop() {
  std::vector<std::shared_ptr<TuningProgram>> programs;
  {
    std::lock_guard lock(mutex_);
    if (std::exchange(stopped_, true)) return;
    for (const auto& [name, process] : processes_) {
      std::lock_guard process_lock(process->mutex);
      if (auto program = process->program.lock()) programs.push_back(std::move(program));
    }
  }
  committer_->Stop();
  for (const auto& program : programs)
    program->outbox().End(absl::UnavailableError("the server is going down; connect again later"));
}

// ---- Programs

absl::StatusOr<std::shared_ptr<TuningRegistry::Process>> TuningRegistry::FindProcess(
    const std::string& name) {
  {
    std::lock_guard lock(mutex_);
    if (auto found = processes_.find(name); found != processes_.end()) return found->second;
  }
  FUSION_ASSIGN_OR_RETURN(int64_t sequence, store_.TuningSequence(name));
  auto process = std::make_shared<Process>();
  process->name = name;
  process->accepted = process->stored = static_cast<uint64_t>(sequence);
  std::lock_guard lock(mutex_);
  return processes_.try_emplace(name, std::move(process)).first->second;
}

absl::StatusOr<std::shared_ptr<TuningProgram>> TuningRegistry::Connect(
    const v1::Hello& hello, std::shared_ptr<ProgramOutbox> outbox) {
  if (hello.process().empty() || hello.process().size() > kMostProcessBytes)
    return absl::InvalidArgumentError(
        absl::StrCat("hello.process: a name of 1 to ", kMostProcessBytes, " bytes, chosen at random"));
  {
    std::lock_guard lock(mutex_);
    if (stopped_) return absl::UnavailableError("the server is going down; connect again later");
    if (connected_ >= options_.programs)
      return absl::ResourceExhaustedError(
          absl::StrCat(connected_, " programs are connected, which is as many as may be; try again later"));
    ++connected_;
  }
  if (metrics_ != nullptr) metrics_->programs->Add(1);
  auto disconnected = [this] {
    std::lock_guard lock(mutex_);
    --connected_;
    if (metrics_ != nullptr) metrics_->programs->Add(-1);
  };
  absl::StatusOr<std::shared_ptr<Process>> process = FindProcess(hello.process());
  if (!process.ok()) {
    disconnected();
    return process.status();
  }
  auto program = std::make_shared<TuningProgram>();
  program->process_ = hello.process();
  program->outbox_ = std::move(outbox);
  {
    std::lock_guard lock(mutex_);
    program->number_ = next_program_++;
    // It may have been dropped meanwhile; whoever is connected is in the table.
    *process = processes_.try_emplace(hello.process(), *process).first->second;
    program->state_ = *process;
  }
  std::shared_ptr<TuningProgram> earlier;
  uint64_t stored = 0;
  {
    std::lock_guard lock((*process)->mutex);
    earlier = std::exchange((*process)->program, program).lock();
    stored = (*process)->stored;
  }
  if (earlier) {
    Detach(*earlier);
    earlier->outbox().End(absl::AbortedError("the process has connected again"));
  }
  program->outbox().AddWelcome(stored);
  return program;
}

absl::Status TuningRegistry::Declare(TuningProgram& program, const v1::DeclareSection& declare) {
  const uint32_t handle = declare.section();
  const std::string text = declare.declaration().SerializeAsString();
  std::lock_guard lock(program.mutex_);
  if (program.detached_) return absl::AbortedError("the process has connected again");
  if (auto known = program.sections_.find(handle); known != program.sections_.end()) {
    if (known->second.declaration == text) {
      program.outbox().AddDeclared(known->second.answer);
      return absl::OkStatus();
    }
    return absl::InvalidArgumentError(absl::StrCat(
        "section ", handle, " is declared already, and differently; each section has a number of its own"));
  }
  if (program.sections_.size() >= options_.sections_of_program)
    return absl::ResourceExhaustedError(
        absl::StrCat("a program may declare ", options_.sections_of_program, " sections"));
  TuningProgram::Section& section = program.sections_[handle];
  absl::StatusOr<TuningProgram::Section> joined =
      text.size() <= options_.declaration_bytes
          ? Join(program, declare.declaration(), handle)
          : absl::ResourceExhaustedError(absl::StrCat("the declaration has ", text.size(), " bytes; at most ",
                                                      options_.declaration_bytes));
  if (joined.ok()) {
    section = *std::move(joined);
  } else {
    section.answer = DeclaredMessage(handle, joined.status());
  }
  section.declaration = text.size() <= options_.declaration_bytes ? text : "";
  program.outbox().AddDeclared(section.answer);
  // After Declared: the first choice.
  if (section.live) section.live->Join({program.number_, handle}, program.outbox_);
  return absl::OkStatus();
}

absl::Status TuningRegistry::RefuseDeclaration(TuningProgram& program, uint32_t section,
                                               const absl::Status& why) {
  std::lock_guard lock(program.mutex_);
  if (program.detached_) return absl::AbortedError("the process has connected again");
  Refuse(program, section, why);
  return absl::OkStatus();
}

absl::StatusOr<TuningProgram::Section> TuningRegistry::Join(TuningProgram& program,
                                                            const v1::SectionDeclaration& declaration,
                                                            uint32_t handle) {
  FUSION_ASSIGN_OR_RETURN(TuningKey key, KeyOf(declaration));
  FUSION_ASSIGN_OR_RETURN(std::shared_ptr<const ParameterSpace> space, ParameterSpace::Create(declaration));
  FUSION_ASSIGN_OR_RETURN(std::shared_ptr<Slot> slot, SlotOf(key));
  TuningProgram::Section section;
  section.slot = slot;
  {
    std::lock_guard lock(slot->mutex);
    if (slot->live) {
      const std::string difference = SpaceDifference(slot->live->space().declaration(), declaration);
      if (!difference.empty())
        return absl::AlreadyExistsError(absl::StrCat("another program that runs now has declared ",
                                                     key.section, " of ", key.program,
                                                     " differently: ", difference));
      section.live = slot->live;
    } else {
      absl::StatusOr<std::shared_ptr<LiveTuning>> live = Load(key, std::move(space));
      if (live.ok()) {
        section.live = slot->live = *std::move(live);
        std::lock_guard registry_lock(mutex_);
        live_[section.live->id()] = section.live;
        names_[section.live->number()] = section.live->id();
        if (metrics_ != nullptr) metrics_->tunings->Add(1);
      } else {
        section.answer = DeclaredMessage(handle, live.status());
      }
    }
    if (section.live) slot->members.insert({program.number_, handle});
  }
  if (!section.live) {
    section.slot.reset();
    slot.reset();
    DropSlotIfUnused(key);
    return section;
  }
  section.answer = DeclaredMessage(handle, absl::OkStatus());
  section.answer.set_tuning(section.live->id());
  return section;
}

absl::StatusOr<std::shared_ptr<LiveTuning>> TuningRegistry::Load(
    const TuningKey& key, std::shared_ptr<const ParameterSpace> space) {
  // Programs that have just gone may have reported: that is known when it is stored.
  if (!committer_->Flush(kFlushTime)) spdlog::warn("tuning: a search begins without what is not stored yet");
  FUSION_ASSIGN_OR_RETURN(std::optional<TuningRecord> known, store_.FindTuning(key));
  const v1::SectionDeclaration& declaration = space->declaration();
  v1::SectionDeclaration before;
  const bool same = known && before.ParseFromString(known->declaration) && SameSpace(before, declaration);
  absl::StatusOr<WarmStart> start = WarmStart{};
  if (known && same) start = FromSameTuning(store_, *known, *space);
  if (known && !same) start = FromOtherTuning(store_, *known, *space);
  if (start.ok() && start->earlier.empty()) start = FromNearTuning(store_, key, *space);
  if (!start.ok()) return start.status();

  TuningSearchOptions options;
  options.strategy = declaration.strategy();
  // A declaration that cannot be searched is not stored.
  if (absl::StatusOr<std::unique_ptr<TuningSearch>> search = TuningSearch::Create(space, options);
      !search.ok())
    return search.status();
  TuningRecord opened;
  opened.key = key;
  opened.declaration = declaration.SerializeAsString();
  opened.strategy = declaration.strategy();
  opened.defaults = EncodePoint(space->defaults());
  FUSION_ASSIGN_OR_RETURN(TuningRecord record, store_.OpenTuning(opened, known && !same, TimeOfDay()));

  // Each load has numbers of its own, so that none is used twice however a server ends.
  options.first_candidate = (static_cast<uint64_t>(record.loads) << 32) + 1;
  options.generation = static_cast<uint64_t>(record.progress.generation);
  options.seed = (static_cast<uint64_t>(record.number) << 32) + static_cast<uint64_t>(record.loads);
  FUSION_ASSIGN_OR_RETURN(std::unique_ptr<TuningSearch> search,
                          TuningSearch::Create(std::move(space), options));
  if (!start->earlier.empty()) search->Remember(start->earlier, start->provenance);
  FUSION_ASSIGN_OR_RETURN(std::vector<TuningConvergenceRecord> points,
                          store_.TuningConvergence(record.number, record.progress.generation));
  LiveTuning::Parts parts;
  parts.number = record.number;
  parts.id = record.id;
  parts.search = std::move(search);
  parts.provenance_tuning = start->tuning;
  parts.first_candidate = options.first_candidate;
  parts.evaluations_before = static_cast<uint64_t>(record.progress.evaluations);
  parts.drifts_before = static_cast<uint64_t>(record.progress.drifts);
  parts.cost_before = {record.exploration_excess, record.total_value};
  parts.convergence_points = points.size();
  parts.pool = &pool_;
  parts.store = [this](TuningProgressUpdate update) { committer_->SetProgress(std::move(update)); };
  parts.metrics = metrics_;
  return std::make_shared<LiveTuning>(std::move(parts), options_.live);
}

absl::StatusOr<std::shared_ptr<TuningRegistry::Slot>> TuningRegistry::SlotOf(const TuningKey& key) {
  std::lock_guard lock(mutex_);
  if (auto found = slots_.find(key); found != slots_.end()) return found->second;
  // Some may have been looked at when their last program left, and stayed.
  if (slots_.size() >= options_.tunings)
    std::erase_if(slots_, [](const auto& slot) { return slot.second.use_count() == 1; });
  if (slots_.size() >= options_.tunings)
    return absl::ResourceExhaustedError(
        absl::StrCat(slots_.size(), " sections are tuned now, which is as many as may be"));
  auto slot = std::make_shared<Slot>();
  slot->key = key;
  return slots_.emplace(key, std::move(slot)).first->second;
}

void TuningRegistry::DropSlotIfUnused(const TuningKey& key) {
  std::lock_guard lock(mutex_);
  auto found = slots_.find(key);
  // Whoever is about to join holds the slot.
  if (found == slots_.end() || found->second.use_count() > 1) return;
  slots_.erase(found);
}

void TuningRegistry::Release(TuningProgram& program, uint32_t handle, TuningProgram::Section& section) {
  if (!section.live) return;
  const TuningKey key = section.slot->key;
  const std::string id = section.live->id();
  section.live->Leave({program.number_, handle});
  {
    std::lock_guard lock(section.slot->mutex);
    section.slot->members.erase({program.number_, handle});
    if (section.slot->members.empty() && section.slot->live) {
      std::lock_guard registry_lock(mutex_);
      live_.erase(section.live->id());
      names_.erase(section.live->number());
      section.slot->live.reset();
      if (metrics_ != nullptr) metrics_->tunings->Add(-1);
    }
  }
  section.live.reset();
  section.slot.reset();
  DropSlotIfUnused(key);
  if (changed_) changed_(id);
}

// Its sections are let go; its connection may still be there.
void TuningRegistry::Detach(TuningProgram& program) {
  std::lock_guard lock(program.mutex_);
  if (std::exchange(program.detached_, true)) return;
  for (auto& [handle, section] : program.sections_) Release(program, handle, section);
  program.sections_.clear();
  if (metrics_ != nullptr) metrics_->programs->Add(-1);
  std::lock_guard registry_lock(mutex_);
  --connected_;
}

void TuningRegistry::Disconnect(TuningProgram& program) {
  Detach(program);
  std::lock_guard lock(mutex_);
  auto found = processes_.find(program.process_);
  if (found == processes_.end() || found->second != program.state_) return;
  std::lock_guard process_lock(program.state_->mutex);
  const std::shared_ptr<TuningProgram> current = program.state_->program.lock();
  if (current && current.get() != &program) return;
  program.state_->program.reset();
  if (program.state_->accepted <= program.state_->stored) processes_.erase(found);
}

void TuningRegistry::OnCommitted(const std::vector<TuningBatch>& batches,
                                 const std::vector<TuningProgressUpdate>& progress) {
  std::map<std::string, uint64_t> sequences;
  std::set<int64_t> tunings;
  for (const TuningBatch& batch : batches) {
    uint64_t& sequence = sequences[batch.process];
    sequence = std::max(sequence, static_cast<uint64_t>(batch.sequence));
    for (const TuningReportRecord& report : batch.reports) tunings.insert(report.tuning);
  }
  for (const TuningProgressUpdate& update : progress) tunings.insert(update.tuning);
  for (const auto& [name, sequence] : sequences) {
    std::shared_ptr<TuningProgram> program;
    {
      std::lock_guard lock(mutex_);
      auto found = processes_.find(name);
      if (found == processes_.end()) continue;
      const std::shared_ptr<Process> process = found->second;  // outlives its lock
      std::lock_guard process_lock(process->mutex);
      process->stored = std::max(process->stored, sequence);
      program = process->program.lock();
      if (!program && process->accepted <= process->stored) processes_.erase(found);
    }
    if (program) program->outbox().AddAcknowledged(sequence);
  }
  std::vector<std::string> names;
  {
    std::lock_guard lock(mutex_);
    for (const int64_t tuning : tunings)
      if (auto found = names_.find(tuning); found != names_.end()) names.push_back(found->second);
  }
  if (changed_)
    for (const std::string& name : names) changed_(name);
}

}  // namespace fusion
