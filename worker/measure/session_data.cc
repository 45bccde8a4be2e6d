#include "worker/measure/session_data.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/sha256.h"
#include "base/status_macros.h"
#include "worker/measure/host_data.h"

namespace fusion {
namespace {

// Outputs of which rounding leaves fewer digits are remarked on.
constexpr double kFewDigits = 4.5;

using NamedBytes = std::vector<std::pair<std::string, int64_t>>;

// Temporaries and workspace of a program, as GuardedMemory cuts them.
NamedBytes ScratchLayout(const v1::Program& program) {
  NamedBytes layout;
  for (const v1::Buffer& buffer : program.temporaries())
    layout.emplace_back(buffer.name(), BufferBytes(buffer));
  if (program.workspace_bytes() > 0) layout.emplace_back("the workspace", program.workspace_bytes());
  return layout;
}

std::string Megabytes(int64_t bytes) { return absl::StrFormat("%.1f MB", static_cast<double>(bytes) * 1e-6); }

// Bytes that can be allocated: the driver and the kernel need a little themselves.
int64_t Usable(const MemoryInfo& memory) {
  return memory.free_bytes - std::max<int64_t>(memory.free_bytes / 20, 64 << 20);
}

uint64_t ScalarBits(double value, v1::DataType type) {
  uint64_t bits = 0;
  if (type == v1::F64) {
    std::memcpy(&bits, &value, sizeof value);
  } else {
    const float narrow = static_cast<float>(value);
    std::memcpy(&bits, &narrow, sizeof narrow);
  }
  return bits;
}

// Counts the entries: what lies between the rows of a matrix is none.
int64_t Entries(const v1::Buffer& buffer) {
  const int64_t padding = buffer.row_stride() - buffer.columns();
  return buffer.rows() > 0 && padding > 0 ? buffer.rows() * buffer.columns() : buffer.count();
}

int64_t EntryBytes(const v1::Buffer& buffer) { return buffer.data_type() == v1::F64 ? 8 : 4; }

// The rows of a file, which has them one right behind the other, as they lie in the buffer; NaN lies between.
std::string WithPadding(const std::string& rows, const v1::Buffer& buffer) {
  if (Entries(buffer) == buffer.count()) return rows;
  std::string padded(buffer.count() * EntryBytes(buffer), '\xff');
  const int64_t row_bytes = buffer.columns() * EntryBytes(buffer);
  for (int64_t row = 0; row < buffer.rows(); ++row)
    padded.replace(row * buffer.row_stride() * EntryBytes(buffer), row_bytes, rows, row * row_bytes,
                   row_bytes);
  return padded;
}

}  // namespace

int64_t BufferBytes(const v1::Buffer& buffer) { return buffer.count() * EntryBytes(buffer); }

std::string SessionData::Key(const v1::Session& session) {
  v1::Session data = session;
  data.clear_unfused();
  data.clear_floor_bytes();
  return data.SerializeAsString();
}

absl::StatusOr<std::unique_ptr<SessionData>> SessionData::Create(ExecutionBackend* backend,
                                                                 const v1::Session& session,
                                                                 const BinaryMap& binaries,
                                                                 ActivityPage* activity, PhaseTimes* phases) {
  for (const auto* buffers : {&session.inputs(), &session.outputs()})
    for (const v1::Buffer& buffer : *buffers)
      if (buffer.count() < 0 || (buffer.data_type() != v1::F32 && buffer.data_type() != v1::F64 &&
                                 (buffer.data_type() != v1::I32 || buffer.by_value())))
        return absl::InvalidArgumentError(
            absl::StrCat("buffer ", buffer.name(), " has no type or a negative size"));
  if (session.outputs_size() == 0) return absl::InvalidArgumentError("a session without outputs");
  for (const v1::Buffer& output : session.outputs()) {
    if (!output.has_memory_of()) continue;
    const auto input = std::find_if(session.inputs().begin(), session.inputs().end(), [&](const auto& each) {
      return each.id() == output.memory_of() && !each.by_value() && BufferBytes(each) == BufferBytes(output);
    });
    if (input == session.inputs().end())
      return absl::InvalidArgumentError(
          absl::StrCat("the output ", output.name(), " takes the memory of no input of its size"));
  }
  std::unique_ptr<SessionData> data(new SessionData(backend, session, phases));
  FUSION_RETURN_IF_ERROR(data->Build(binaries, activity));
  return data;
}

absl::Status SessionData::Build(const BinaryMap& binaries, ActivityPage* activity) {
  const InPhase inputs(phases_, v1::TIMING_INPUTS);
  NamedBytes layout, reference_layout, reference_scratch = ScratchLayout(session_.reference());
  for (const v1::Buffer& buffer : session_.inputs()) {
    layout.emplace_back(buffer.name(), BufferBytes(buffer));
    reference_scratch.emplace_back(buffer.name(), buffer.count() * 8);
  }
  for (const v1::Buffer& buffer : session_.outputs()) {
    layout.emplace_back(buffer.name(), BufferBytes(buffer));
    reference_layout.emplace_back(buffer.name(), buffer.count() * 8);
  }
  const int64_t needed = GuardedMemory::Capacity(layout) + GuardedMemory::Capacity(reference_layout) +
                         GuardedMemory::Capacity(reference_scratch);
  FUSION_ASSIGN_OR_RETURN(const MemoryInfo memory, backend_->Memory());
  if (needed > Usable(memory))
    return absl::ResourceExhaustedError(
        absl::StrCat("inputs, outputs and their f64 reference need ", Megabytes(needed), ", the device has ",
                     Megabytes(memory.free_bytes), " free of ", Megabytes(memory.total_bytes)));
  activity->Set(Activity::kSetUp);
  FUSION_ASSIGN_OR_RETURN(memory_, GuardedMemory::Create(backend_, GuardedMemory::Capacity(layout)));
  FUSION_RETURN_IF_ERROR(memory_->Cut(layout));
  FUSION_ASSIGN_OR_RETURN(references_,
                          GuardedMemory::Create(backend_, GuardedMemory::Capacity(reference_layout)));
  FUSION_RETURN_IF_ERROR(references_->Cut(reference_layout));
  size_t position = 0;
  for (const v1::Buffer& buffer : session_.inputs()) {
    Place place;
    place.buffer = buffer;
    place.range = memory_->buffers()[position++].range;
    place.key = MixBits(session_.seed()) ^ MixBits(static_cast<uint64_t>(buffer.id()) + 1);
    if (buffer.values().kind() == v1::InputValues::FILE) {
      const auto found = binaries.find(buffer.values().blob());
      const int64_t bytes = Entries(buffer) * EntryBytes(buffer);
      if (found == binaries.end() || static_cast<int64_t>(found->second.size()) != bytes)
        return absl::InvalidArgumentError(absl::StrCat("the entries of the input ", buffer.name(),
                                                       " are missing, or not ", bytes, " bytes"));
      place.content = WithPadding(found->second, buffer);
    }
    FUSION_RETURN_IF_ERROR(FillInput(&place));
    if (buffer.by_value()) {
      float narrow = 0;
      const bool is_f32 = buffer.data_type() == v1::F32;
      FUSION_RETURN_IF_ERROR(is_f32
                                 ? backend_->CopyOut(&narrow, place.range.address, sizeof narrow)
                                 : backend_->CopyOut(&place.value, place.range.address, sizeof place.value));
      if (is_f32) place.value = narrow;
    }
    FUSION_ASSIGN_OR_RETURN(place.hash, backend_->Hash(place.range.address, place.range.bytes));
    inputs_.push_back(place);
  }
  for (const v1::Buffer& buffer : session_.outputs()) {
    Place place;
    place.buffer = buffer;
    place.range = memory_->buffers()[position++].range;
    place.reference = references_->buffers()[outputs_.size()].range.address;
    outputs_.push_back(place);
  }
  return RunReference(binaries, activity);
}

absl::StatusOr<bool> SessionData::Renew(const DataPattern& pattern, const BinaryMap& binaries,
                                        ActivityPage* activity) {
  const InPhase inputs(phases_, v1::TIMING_INPUTS);
  activity->Set(Activity::kSetUp);
  excused_.reset();
  rounding_estimated_ = false;
  pattern_ = pattern;
  ++renewals_;
  for (Place& output : outputs_) output.is_exact = false;
  for (Place& place : inputs_) {
    if (place.buffer.by_value() || !place.content.empty()) continue;
    place.key = MixBits(place.key + renewals_);
    FUSION_RETURN_IF_ERROR(FillInput(&place));
    FUSION_ASSIGN_OR_RETURN(place.hash, backend_->Hash(place.range.address, place.range.bytes));
  }
  const absl::Status computed = RunReference(binaries, activity);
  if (!absl::IsResourceExhausted(computed) || scratch_ == nullptr) {
    FUSION_RETURN_IF_ERROR(computed);
    return true;
  }
  scratch_.reset();
  scratch_bytes_ = 0;
  FUSION_RETURN_IF_ERROR(RunReference(binaries, activity));
  return false;
}

absl::Status SessionData::FillInput(Place* place) {
  if (!place->content.empty())
    return backend_->CopyIn(place->range.address, place->content.data(),
                            static_cast<int64_t>(place->content.size()));
  return backend_->Fill(place->range.address, place->buffer.data_type(), place->buffer.count(),
                        RuleOf(place->buffer, place->buffer.by_value() ? DataPattern{} : pattern_),
                        place->key);
}

absl::Status SessionData::RunReference(const BinaryMap& binaries, ActivityPage* activity) {
  const InPhase running(phases_, v1::TIMING_REFERENCE);
  FUSION_RETURN_IF_ERROR(ComputeReference(binaries, activity, references_.get(), 0));
  for (Place& output : outputs_) {
    FUSION_ASSIGN_OR_RETURN(output.hash, backend_->Hash(output.reference, output.buffer.count() * 8));
    FUSION_ASSIGN_OR_RETURN(
        const ReferenceFigures figures,
        backend_->Figures(output.reference, output.buffer.data_type(), output.buffer.count()));
    output.scale = figures.scale;
    output.largest = figures.largest;
    const int64_t entries = Entries(output.buffer);
    if (entries > figures.finite && pattern_.kind == DataPattern::Kind::kAsked)
      Remark(figures.finite == 0
                 ? absl::StrCat("no entry of ", output.buffer.name(),
                                " is finite on these data: that it is as in f64 says nothing of the code")
                 : absl::StrCat(entries - figures.finite, " of the ", entries, " entries of ",
                                output.buffer.name(), " are not finite on these data"));
  }
  return absl::OkStatus();
}

absl::Status SessionData::ComputeReference(const BinaryMap& binaries, ActivityPage* activity,
                                           GuardedMemory* results, int trial) {
  const v1::Program& program = session_.reference();
  NamedBytes layout = ScratchLayout(program);
  const size_t first_input = layout.size();
  for (const Place& input : inputs_) layout.emplace_back(input.buffer.name(), input.buffer.count() * 8);
  FUSION_ASSIGN_OR_RETURN(std::unique_ptr<GuardedMemory> scratch,
                          GuardedMemory::Create(backend_, GuardedMemory::Capacity(layout)));
  FUSION_RETURN_IF_ERROR(scratch->Cut(layout));
  PreparedProgram prepared;
  std::map<int, MemoryRange> ranges;
  for (size_t i = 0; i < first_input; ++i) prepared.poison.push_back(scratch->buffers()[i].range);
  for (int i = 0; i < program.temporaries_size(); ++i)
    ranges[program.temporaries(i).id()] = scratch->buffers()[i].range;
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const MemoryRange range = scratch->buffers()[first_input + i].range;
    ranges[inputs_[i].buffer.id()] = range;
    FUSION_RETURN_IF_ERROR(backend_->Widen(range.address, inputs_[i].range.address,
                                           inputs_[i].buffer.data_type(), inputs_[i].buffer.count()));
  }
  for (size_t i = 0; i < outputs_.size(); ++i) {
    ranges[outputs_[i].buffer.id()] = results->buffers()[i].range;
    prepared.poison.push_back(results->buffers()[i].range);
  }
  const DeviceAddress workspace =
      program.workspace_bytes() > 0 ? scratch->buffers()[first_input - 1].range.address : 0;
  std::map<int, DeviceAddress> addresses;
  for (const auto& [id, range] : ranges) addresses[id] = range.address;
  FUSION_RETURN_IF_ERROR(
      ResolveLaunches(program, binaries, addresses, workspace, /*reference=*/true, &prepared));
  reference_binaries_ = prepared.binaries;  // it runs again with other inputs
  RunOptions options;
  options.poison = prepared.poison;
  options.before_launch = [&] { activity->Set(Activity::kReference); };
  // After a fault the activity stays kReference: the parent reads who was at fault.
  if (trial == 0) {
    FUSION_RETURN_IF_ERROR(backend_->Run(prepared.launches, options).status());
  } else {
    const bool is_f32 = std::any_of(outputs_.begin(), outputs_.end(),
                                    [](const Place& output) { return output.buffer.data_type() == v1::F32; });
    const double most = kChangedUnits * (is_f32 ? 0x1p-24 : 0x1p-53);
    const auto change = [&](int id) {
      const auto found = ranges.find(id);
      if (found == ranges.end()) return absl::OkStatus();
      return backend_->Perturb(found->second.address, found->second.bytes / 8, most,
                               MixBits(session_.seed() + trial) ^ MixBits(id + 1));
    };
    for (int i = 0; i < program.launches_size(); ++i) {
      const v1::Launch& launch = program.launches(i);
      std::vector<const Place*> changed;
      for (const Place& input : inputs_) {
        const auto reads = [&](const v1::LaunchArgument& argument) {
          return argument.has_buffer() && argument.buffer() == input.buffer.id();
        };
        if (launch.results().empty() || input.buffer.data_type() == v1::I32 ||  // nothing rounds it
            std::none_of(launch.arguments().begin(), launch.arguments().end(), reads))
          continue;
        FUSION_RETURN_IF_ERROR(change(input.buffer.id()));
        changed.push_back(&input);
      }
      std::vector<PreparedLaunch> one;
      one.push_back(std::move(prepared.launches[i]));
      FUSION_RETURN_IF_ERROR(backend_->Run(one, options).status());
      options.poison = {};
      for (int id : launch.results()) FUSION_RETURN_IF_ERROR(change(id));
      // Functions that do not round have the inputs as they are.
      for (const Place* input : changed)
        FUSION_RETURN_IF_ERROR(backend_->Widen(ranges.at(input->buffer.id()).address, input->range.address,
                                               input->buffer.data_type(), input->buffer.count()));
    }
  }
  activity->Set(Activity::kSetUp);
  for (GuardedMemory* guarded : {scratch.get(), results, memory_.get()}) {
    FUSION_ASSIGN_OR_RETURN(const std::string damage, guarded->Check());
    if (!damage.empty()) return absl::InvalidArgumentError(absl::StrCat("the reference ", damage));
  }
  return absl::OkStatus();
}

absl::Status SessionData::EstimateRounding(ActivityPage* activity) {
  const InPhase running(phases_, v1::TIMING_REFERENCE);
  rounding_estimated_ = true;
  NamedBytes layout;
  for (const Place& output : outputs_) layout.emplace_back(output.buffer.name(), output.buffer.count() * 8);
  const int64_t capacity = GuardedMemory::Capacity(layout);
  absl::StatusOr<std::unique_ptr<GuardedMemory>> excused = GuardedMemory::Create(backend_, capacity),
                                                 results = GuardedMemory::Create(backend_, capacity);
  for (const absl::Status& created : {excused.status(), results.status()}) {
    if (absl::IsResourceExhausted(created)) return absl::OkStatus();
    FUSION_RETURN_IF_ERROR(created);
  }
  FUSION_RETURN_IF_ERROR((*excused)->Cut(layout));
  FUSION_RETURN_IF_ERROR((*results)->Cut(layout));
  std::vector<double> moved(outputs_.size(), 0);
  for (int trial = 1; trial <= kRoundingTrials; ++trial) {
    const absl::Status computed = ComputeReference({}, activity, results->get(), trial);
    if (absl::IsResourceExhausted(computed)) return absl::OkStatus();
    FUSION_RETURN_IF_ERROR(computed);
    for (size_t i = 0; i < outputs_.size(); ++i) {
      const Place& output = outputs_[i];
      const DeviceAddress other = (*results)->buffers()[i].range.address;
      FUSION_RETURN_IF_ERROR(backend_->Excuse((*excused)->buffers()[i].range.address, output.reference, other,
                                              output.buffer.data_type(), output.buffer.count(), kExcused,
                                              trial == 1));
      FUSION_ASSIGN_OR_RETURN(
          const Comparison comparison,
          backend_->Compare(other, v1::F64, output.reference, output.buffer.count(), output.scale, 0));
      moved[i] = std::max(moved[i], comparison.max_relative_error);
    }
  }
  excused_ = *std::move(excused);
  for (size_t i = 0; i < outputs_.size(); ++i) {
    const MemoryRange& range = excused_->buffers()[i].range;
    FUSION_ASSIGN_OR_RETURN(outputs_[i].excused_hash, backend_->Hash(range.address, range.bytes));
  }
  for (size_t i = 0; i < outputs_.size() && pattern_.kind == DataPattern::Kind::kAsked; ++i) {
    const double digits = moved[i] > 0 ? std::max(0.0, -std::log10(moved[i] / kChangedUnits)) : kFewDigits;
    if (digits < kFewDigits)
      Remark(absl::StrFormat("%s is ill-conditioned on these data: %s keeps %.0f digits of its worst entry",
                             outputs_[i].buffer.name(),
                             outputs_[i].buffer.data_type() == v1::F64 ? "f64" : "f32", std::floor(digits)));
  }
  return absl::OkStatus();
}

void SessionData::Remark(std::string remark) {
  if (std::find(remarks_.begin(), remarks_.end(), remark) == remarks_.end())
    remarks_.push_back(std::move(remark));
}

absl::Status SessionData::Reserve(const std::vector<const v1::Program*>& programs) {
  FUSION_ASSIGN_OR_RETURN(const MemoryInfo memory, backend_->Memory());
  const int64_t usable = Usable(memory) + scratch_bytes_;
  int64_t capacity = kGuardBytes;
  for (const v1::Program* program : programs) {
    const int64_t needed = GuardedMemory::Capacity(ScratchLayout(*program));
    if (needed <= usable) capacity = std::max(capacity, needed);
  }
  if (scratch_ != nullptr && capacity <= scratch_bytes_) return absl::OkStatus();
  scratch_.reset();
  scratch_bytes_ = 0;
  FUSION_ASSIGN_OR_RETURN(scratch_, GuardedMemory::Create(backend_, capacity));
  scratch_bytes_ = capacity;
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<LoadedBinary>> SessionData::LoadBinary(const std::string& digest,
                                                                      const BinaryMap& binaries) {
  if (std::shared_ptr<LoadedBinary> loaded = loaded_[digest].lock()) return loaded;
  const auto found = binaries.find(digest);
  if (found == binaries.end())
    return absl::InvalidArgumentError(absl::StrCat("the binary ", digest, " is missing"));
  if (const std::string computed = absl::StrCat("sha256:", Sha256Hex(found->second)); computed != digest)
    return absl::DataLossError(
        absl::StrCat("the bytes of the binary ", digest, " are damaged: they have the digest ", computed));
  FUSION_ASSIGN_OR_RETURN(std::unique_ptr<LoadedBinary> loaded, backend_->Load(found->second));
  std::shared_ptr<LoadedBinary> shared = std::move(loaded);
  loaded_[digest] = shared;
  return shared;
}

absl::Status SessionData::ResolveLaunches(const v1::Program& program, const BinaryMap& binaries,
                                          const std::map<int, DeviceAddress>& addresses,
                                          DeviceAddress workspace, bool reference,
                                          PreparedProgram* prepared) {
  std::set<std::pair<std::string, std::string>> seen;
  for (const v1::Launch& launch : program.launches()) {
    FUSION_ASSIGN_OR_RETURN(std::shared_ptr<LoadedBinary> binary, LoadBinary(launch.binary(), binaries));
    PreparedLaunch resolved;
    FUSION_ASSIGN_OR_RETURN(resolved.kernel, binary->FindKernel(launch.kernel()));
    prepared->binaries.push_back(std::move(binary));
    if (std::find(prepared->digests.begin(), prepared->digests.end(), launch.binary()) ==
        prepared->digests.end())
      prepared->digests.push_back(launch.binary());
    resolved.name = launch.kernel();
    resolved.order = prepared->binaries.back()->FindOrder(launch.kernel());
    resolved.grid = launch.grid();
    resolved.threads = launch.threads();
    resolved.shared_bytes = launch.shared_bytes();
    resolved.cooperative = launch.cooperative();
    resolved.programmatic = launch.programmatic();
    for (const v1::LaunchArgument& argument : launch.arguments()) {
      uint64_t bits = 0;
      if (argument.has_buffer()) {
        const auto found = addresses.find(argument.buffer());
        if (found == addresses.end())
          return absl::InvalidArgumentError(
              absl::StrCat("kernel ", launch.kernel(), ": no buffer ", argument.buffer()));
        bits = found->second;
      } else if (argument.has_scalar_buffer()) {
        const auto found = std::find_if(inputs_.begin(), inputs_.end(), [&](const Place& input) {
          return input.buffer.id() == argument.scalar_buffer();
        });
        if (found == inputs_.end())
          return absl::InvalidArgumentError(
              absl::StrCat("kernel ", launch.kernel(), ": no input scalar ", argument.scalar_buffer()));
        bits = ScalarBits(found->value, reference ? v1::F64 : found->buffer.data_type());
      } else if (argument.has_integer()) {
        bits = static_cast<uint64_t>(argument.integer());
      } else if (argument.has_workspace_offset()) {
        if (argument.workspace_offset() < 0 || argument.workspace_offset() > program.workspace_bytes())
          return absl::InvalidArgumentError(
              absl::StrCat("kernel ", launch.kernel(), ": outside the workspace"));
        bits = workspace + static_cast<uint64_t>(argument.workspace_offset());
      } else {
        return absl::InvalidArgumentError(
            absl::StrCat("kernel ", launch.kernel(), ": an argument of no kind"));
      }
      resolved.values.push_back(bits);
    }
    for (uint64_t& value : resolved.values) resolved.arguments.push_back(&value);
    FUSION_ASSIGN_OR_RETURN(v1::KernelAttributes attributes, backend_->Prepare(resolved));
    if (seen.emplace(launch.binary(), launch.kernel()).second)
      prepared->kernels.push_back(std::move(attributes));
    prepared->launches.push_back(std::move(resolved));
  }
  return absl::OkStatus();
}

const SessionData::Place& SessionData::InputOf(const Place& output) const {
  return *std::find_if(inputs_.begin(), inputs_.end(),
                       [&](const Place& input) { return input.buffer.id() == output.buffer.memory_of(); });
}

absl::StatusOr<std::unique_ptr<PreparedProgram>> SessionData::Prepare(const v1::Program& program,
                                                                      const BinaryMap& binaries) {
  const InPhase loading(phases_, v1::TIMING_LOAD);
  auto prepared = std::make_unique<PreparedProgram>();
  prepared->temporaries = ScratchLayout(program);
  const int64_t needed = GuardedMemory::Capacity(prepared->temporaries);
  if (needed > scratch_bytes_)
    return absl::ResourceExhaustedError(absl::StrCat("temporaries and workspace need ", Megabytes(needed),
                                                     ", more than the device has left"));
  scratch_->Lay(prepared->temporaries);
  std::map<int, DeviceAddress> addresses;
  for (const Place& input : inputs_) addresses[input.buffer.id()] = input.range.address;
  for (const Place& output : outputs_) {
    addresses[output.buffer.id()] = output.range.address;
    if (!output.buffer.has_memory_of()) {
      prepared->poison.push_back(output.range);
      continue;
    }
    // The input stays as it is, for the next run: what programs read and overwrite is a copy of it.
    addresses[output.buffer.memory_of()] = output.range.address;
    prepared->restore.push_back({output.range.address, InputOf(output).range});
  }
  for (size_t i = 0; i < scratch_->buffers().size(); ++i) {
    const MemoryRange range = scratch_->buffers()[i].range;
    if (static_cast<int>(i) < program.temporaries_size())
      addresses[program.temporaries(i).id()] = range.address;
    prepared->poison.push_back(range);
  }
  const DeviceAddress workspace =
      program.workspace_bytes() > 0 ? scratch_->buffers().back().range.address : 0;
  FUSION_RETURN_IF_ERROR(
      ResolveLaunches(program, binaries, addresses, workspace, /*reference=*/false, prepared.get()));
  return prepared;
}

}  // namespace fusion
