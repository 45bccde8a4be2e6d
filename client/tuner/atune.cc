// The three calls of AtuneRT (Baier 2016, figure 5.2): a loop is partitioned by one integer.
#include <pthread.h>

#include <cstdlib>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/similar_name.h"
#include "client/tuner/fusion_tuner.h"
#include "client/tuner/handles.h"
#include "client/tuner/message.h"
#include "client/tuner/process.h"
#include "client/tuner/thread_state.h"

using namespace fusion::tuning;  // NOLINT: these functions are the C face of that namespace
namespace v1 = fusion::v1;

namespace {

using Bounds = LoopOfThread::Bounds;

constexpr char kParameter[] = "partition";

// The tuner of all loops of the process. Created at the first call, and then left to the end of the process,
// when what was measured last is sent.
class Loops {
 public:
  static Loops& Get() {
    static Loops* const loops = new Loops;
    return *loops;
  }
  // Forks take this mutex before those that are taken while it is held: what is registered last comes first.
  Loops() {
    Process::Get();
    pthread_atfork([] { Get().mutex_.lock(); }, [] { Get().mutex_.unlock(); }, [] { Get().mutex_.unlock(); });
  }

  absl::StatusOr<Section*> SectionOf(const std::string& name, const Bounds& bounds) {
    std::lock_guard lock(mutex_);
    if (!created_) Create();
    if (!failure_.ok()) return failure_;
    Section*& section = sections_[{name, bounds}];
    if (section == nullptr) {
      absl::StatusOr<Section*> declared = Declare(name, bounds);
      if (!declared.ok()) {
        sections_.erase({name, bounds});
        return declared.status();
      }
      section = *declared;
    }
    return section;
  }

  absl::Status Unknown(const std::string& name) {
    std::lock_guard lock(mutex_);
    std::vector<absl::string_view> names;
    for (const auto& [known, base] : bases_) names.push_back(known);
    return absl::NotFoundError(
        absl::StrCat("section ", fusion::Shown(name),
                     " was not asked for in this thread: call fusion_get_partition_parameter first",
                     fusion::DidYouMean(fusion::SimilarName(name, names))));
  }

 private:
  void Create() {
    created_ = true;
    fusion_tuner* tuner = nullptr;
    const int code = fusion_tuner_create(nullptr, &tuner);
    if (code != FUSION_TUNER_OK) {
      failure_ = absl::Status(static_cast<absl::StatusCode>(code), LastMessage());
      return;
    }
    tuner_ = Of(tuner);
    // The memory stays: other threads may still run loops.
    std::atexit([] {
      if (!Get().tuner_->forked()) Get().tuner_->Finish();
    });
  }

  // Guarded by mutex_.
  absl::StatusOr<Section*> Declare(const std::string& name, const Bounds& bounds) {
    const auto [lower, upper, step] = bounds;
    if (auto base = bases_.find(name); base != bases_.end()) {
      v1::SectionDeclaration declaration = base->second->declaration;
      SetBounds(bounds, declaration);
      return tuner_->AddSizes(*base->second, {lower, upper, step}, std::move(declaration));
    }
    absl::StatusOr<Section*> section = tuner_->CreateSection(name);
    // An earlier try may have failed with bounds that were wrong.
    if (absl::IsAlreadyExists(section.status())) section = tuner_->Find(name);
    if (!section.ok()) return section.status();
    absl::Status status = tuner_->ChangeSection(**section, [&](v1::SectionDeclaration& declaration) {
      declaration.clear_parameters();
      declaration.clear_context();
      declaration.add_parameters()->set_name(kParameter);
      for (const char* size : {"lower", "upper", "step"}) declaration.add_context()->set_name(size);
      SetBounds(bounds, declaration);
      return absl::OkStatus();
    });
    if (status.ok()) status = tuner_->Declare(**section);
    if (!status.ok()) return status;
    bases_[name] = *section;
    return *section;
  }

  static void SetBounds(const Bounds& bounds, v1::SectionDeclaration& declaration) {
    const auto [lower, upper, step] = bounds;
    v1::IntegerRange& range = *declaration.mutable_parameters(0)->mutable_integer();
    range.set_lower(lower);
    range.set_upper(upper);
    range.set_step(step);
    declaration.mutable_context(0)->set_value(lower);
    declaration.mutable_context(1)->set_value(upper);
    declaration.mutable_context(2)->set_value(step);
  }

  std::mutex mutex_;
  // Guarded by mutex_.
  bool created_ = false;
  absl::Status failure_;
  Tuner* tuner_ = nullptr;
  std::map<std::string, Section*> bases_;
  std::map<std::pair<std::string, Bounds>, Section*> sections_;
};

int64_t MiddleOf(int64_t lower, int64_t upper, int64_t step) {
  if (step <= 0 || upper <= lower) return lower;
  // Unsigned: the distance may be larger than an int64_t.
  const uint64_t steps =
      (static_cast<uint64_t>(upper) - static_cast<uint64_t>(lower)) / static_cast<uint64_t>(step);
  return static_cast<int64_t>(static_cast<uint64_t>(lower) + steps / 2 * static_cast<uint64_t>(step));
}

// Null, with a message.
Section* CurrentOf(const char* name) {
  if (name == nullptr) {
    Fail(absl::InvalidArgumentError("the section is NULL"));
    return nullptr;
  }
  auto& loops = ThreadState::Current().loops;
  auto loop = loops.find(std::string_view(name));
  if (loop != loops.end() && loop->second.current != nullptr) return loop->second.current;
  return nullptr;
}

int Unknown(const char* name) {
  return name == nullptr ? static_cast<int>(FUSION_TUNER_INVALID_ARGUMENT) : Fail(Loops::Get().Unknown(name));
}

}  // namespace

int64_t fusion_get_partition_parameter(const char* name, int64_t lower, int64_t upper, int64_t step) {
  if (name == nullptr) {
    Fail(absl::InvalidArgumentError("the section is NULL"));
    return MiddleOf(lower, upper, step);
  }
  auto& loops = ThreadState::Current().loops;
  auto loop = loops.find(std::string_view(name));
  if (loop == loops.end()) loop = loops.emplace(name, LoopOfThread()).first;
  Section*& section = loop->second.sections[{lower, upper, step}];
  if (section == nullptr) {
    absl::StatusOr<Section*> found = Loops::Get().SectionOf(name, {lower, upper, step});
    if (!found.ok()) {
      loop->second.sections.erase({lower, upper, step});
      loop->second.current = nullptr;
      Fail(found.status());
      return MiddleOf(lower, upper, step);
    }
    section = *found;
  }
  loop->second.current = section;
  return fusion_tuner_next(HandleOf(section))->integer;
}

int fusion_start_measurements(const char* name) {
  Section* section = CurrentOf(name);
  return section == nullptr ? Unknown(name) : fusion_tuner_start(HandleOf(section));
}

int fusion_stop_measurements(const char* name) {
  Section* section = CurrentOf(name);
  return section == nullptr ? Unknown(name) : fusion_tuner_stop(HandleOf(section));
}
