#include "worker/measure/session_data.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "library/catalog/sha256.h"
#include "worker/measure/host_data.h"
#include "worker/measure/status_macros.h"

namespace fusion {
namespace {

// SampleScales: outputs of fewer entries, of inputs with as many in all at most, by so many references.
constexpr int64_t kFewEntries = 64, kSmallInputs = 4096;
constexpr int kScaleSamples = 16;

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

// What can be allocated: the driver and the kernel need a little themselves.
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

}  // namespace

int64_t BufferBytes(const v1::Buffer& buffer) {
  return buffer.count() * (buffer.data_type() == v1::F64 ? 8 : 4);
}

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
      if (buffer.count() < 0 || (buffer.data_type() != v1::F32 && buffer.data_type() != v1::F64))
        return absl::InvalidArgumentError(
            absl::StrCat("buffer ", buffer.name(), " has no type or a negative size"));
  if (session.outputs_size() == 0) return absl::InvalidArgumentError("a session without outputs");
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
    const double value = InputEntry(place.key, 0, buffer.domain() == v1::REAL, InputBits(buffer.data_type()));
    place.value = buffer.data_type() == v1::F32 ? static_cast<float>(value) : value;
    FUSION_RETURN_IF_ERROR(FillInput(&place));
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
  FUSION_RETURN_IF_ERROR(SampleScales(binaries, activity));
  return RunReference(binaries, activity);
}

absl::Status SessionData::SampleScales(const BinaryMap& binaries, ActivityPage* activity) {
  int64_t input_entries = 0;
  for (const Place& input : inputs_) input_entries += input.buffer.count();
  const auto has_few = [](const Place& output) { return output.buffer.count() < kFewEntries; };
  if (input_entries > kSmallInputs || std::none_of(outputs_.begin(), outputs_.end(), has_few))
    return absl::OkStatus();
  std::vector<double> squares(outputs_.size(), 0);
  for (int sample = 1; sample <= kScaleSamples; ++sample) {
    for (Place other : inputs_) {
      if (other.buffer.by_value()) continue;
      other.key ^= MixBits(sample);
      FUSION_RETURN_IF_ERROR(FillInput(&other));
    }
    FUSION_RETURN_IF_ERROR(RunReference(binaries, activity));
    for (size_t i = 0; i < outputs_.size(); ++i) squares[i] += outputs_[i].scale * outputs_[i].scale;
  }
  for (Place& input : inputs_) FUSION_RETURN_IF_ERROR(FillInput(&input));
  for (size_t i = 0; i < outputs_.size(); ++i) {
    const double scale = std::sqrt(squares[i] / kScaleSamples);
    if (has_few(outputs_[i]) && std::isfinite(scale)) outputs_[i].least_scale = scale;
  }
  return absl::OkStatus();
}

absl::Status SessionData::Renew(const BinaryMap& binaries, ActivityPage* activity) {
  const InPhase inputs(phases_, v1::TIMING_INPUTS);
  activity->Set(Activity::kSetUp);
  // The reference needs the room.
  scratch_.reset();
  scratch_bytes_ = 0;
  ++renewals_;
  for (Place& place : inputs_) {
    if (place.buffer.by_value()) continue;
    place.key = MixBits(place.key + renewals_);
    FUSION_RETURN_IF_ERROR(FillInput(&place));
    FUSION_ASSIGN_OR_RETURN(place.hash, backend_->Hash(place.range.address, place.range.bytes));
  }
  return RunReference(binaries, activity);
}

absl::Status SessionData::FillInput(Place* place) {
  return backend_->Fill(place->range.address, place->buffer.data_type(), place->buffer.count(),
                        place->buffer.domain(), place->key);
}

absl::Status SessionData::RunReference(const BinaryMap& binaries, ActivityPage* activity) {
  const InPhase running(phases_, v1::TIMING_REFERENCE);
  const v1::Program& program = session_.reference();
  NamedBytes layout = ScratchLayout(program);
  const size_t first_input = layout.size();
  for (const Place& input : inputs_) layout.emplace_back(input.buffer.name(), input.buffer.count() * 8);
  FUSION_ASSIGN_OR_RETURN(std::unique_ptr<GuardedMemory> scratch,
                          GuardedMemory::Create(backend_, GuardedMemory::Capacity(layout)));
  FUSION_RETURN_IF_ERROR(scratch->Cut(layout));
  PreparedProgram prepared;
  std::map<int, DeviceAddress> addresses;
  for (size_t i = 0; i < first_input; ++i) prepared.poison.push_back(scratch->buffers()[i].range);
  for (int i = 0; i < program.temporaries_size(); ++i)
    addresses[program.temporaries(i).id()] = scratch->buffers()[i].range.address;
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const DeviceAddress address = scratch->buffers()[first_input + i].range.address;
    addresses[inputs_[i].buffer.id()] = address;
    FUSION_RETURN_IF_ERROR(backend_->Widen(address, inputs_[i].range.address, inputs_[i].buffer.data_type(),
                                           inputs_[i].buffer.count()));
  }
  for (size_t i = 0; i < outputs_.size(); ++i) {
    addresses[outputs_[i].buffer.id()] = outputs_[i].reference;
    prepared.poison.push_back(references_->buffers()[i].range);
  }
  const DeviceAddress workspace =
      program.workspace_bytes() > 0 ? scratch->buffers()[first_input - 1].range.address : 0;
  FUSION_RETURN_IF_ERROR(
      ResolveLaunches(program, binaries, addresses, workspace, /*reference=*/true, &prepared));
  reference_binaries_ = prepared.binaries;  // it runs again with other inputs
  RunOptions options;
  options.poison = prepared.poison;
  options.before_launch = [&] { activity->Set(Activity::kReference); };
  absl::StatusOr<double> seconds = backend_->Run(prepared.launches, options);
  FUSION_RETURN_IF_ERROR(
      seconds.status());  // the activity stays kReference: the parent reads who was at fault
  activity->Set(Activity::kSetUp);
  for (GuardedMemory* guarded : {scratch.get(), references_.get(), memory_.get()}) {
    FUSION_ASSIGN_OR_RETURN(const std::string damage, guarded->Check());
    if (!damage.empty()) return absl::InvalidArgumentError(absl::StrCat("the reference ", damage));
  }
  for (Place& output : outputs_) {
    FUSION_ASSIGN_OR_RETURN(output.hash, backend_->Hash(output.reference, output.buffer.count() * 8));
    FUSION_ASSIGN_OR_RETURN(
        output.scale,
        backend_->ReferenceScale(output.reference, output.buffer.data_type(), output.buffer.count()));
    output.scale = std::max(output.scale, output.least_scale);
  }
  return absl::OkStatus();
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
    prepared->poison.push_back(output.range);
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
