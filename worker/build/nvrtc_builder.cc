#include "worker/build/nvrtc_builder.h"

#include <algorithm>
#include <chrono>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "base/sandbox/child_process.h"
#include "base/sha256.h"
#include "base/status_macros.h"
#include "worker/build/build_options.h"

namespace fusion {
namespace {

// Tells NVRTC to give up when the deadline has passed or the build is stopped. Once true it stays true, as
// NVRTC asks.
struct Interruption {
  MonotonicTime deadline;
  std::stop_token stop;
  static int Check(void* payload, void*) {
    const auto* self = static_cast<Interruption*>(payload);
    return self->stop.stop_requested() || std::chrono::steady_clock::now() >= self->deadline ? 1 : 0;
  }
};

// The code that is built for a device of some architecture.
struct BuildTarget {
  std::string arch;     // of --gpu-architecture
  bool ptx = false;     // PTX instead of a cubin
  std::string warning;  // for the log, when it is not the architecture of the task
};

// InvalidArgument, with what is wrong, when nothing that NVRTC can build runs on the architecture.
absl::StatusOr<BuildTarget> ChooseTarget(const Nvrtc& nvrtc, const std::string& arch) {
  absl::string_view digits = arch;
  int wanted = 0, count = 0;
  const bool prefixed = absl::ConsumePrefix(&digits, "sm_");
  while (!digits.empty() && (digits.back() == 'a' || digits.back() == 'f')) digits.remove_suffix(1);
  if (!prefixed || !absl::SimpleAtoi(digits, &wanted) || wanted <= 0)
    return absl::InvalidArgumentError(absl::StrCat("arch '", arch, "' is not of the form sm_90"));
  if (nvrtc.GetNumSupportedArchs(&count) != Nvrtc::kSuccess || count <= 0) return BuildTarget{arch};
  std::vector<int> archs(count);
  if (nvrtc.GetSupportedArchs(archs.data()) != Nvrtc::kSuccess) return BuildTarget{arch};
  int nearest = 0;
  for (int known : archs)
    if (known <= wanted) nearest = std::max(nearest, known);
  if (nearest == wanted) return BuildTarget{arch};
  const std::string cannot =
      absl::StrCat("NVRTC ", nvrtc.major, ".", nvrtc.minor, " cannot build for ", arch);
  if (nearest == 0)
    return absl::InvalidArgumentError(absl::StrCat(cannot, ", only for ", absl::StrJoin(archs, ", ")));
  BuildTarget target;
  target.ptx = nearest / 10 != wanted / 10;  // the major versions
  target.arch = absl::StrCat(target.ptx ? "compute_" : "sm_", nearest);
  target.warning = absl::StrCat("warning: ", cannot, "; built ", target.ptx ? "PTX " : "", "for ",
                                target.arch, ", the nearest older one\n");
  return target;
}

// Errors that follow from the source, the options and the memory that a build may have; where the machine has
// less than that, IsolatedBuilder sees by the log that it is to blame. With others NVRTC did not find its own
// files, or is at odds with itself.
bool IsErrorOfTheSource(int error) {
  return error == Nvrtc::kErrorCompilation || error == Nvrtc::kErrorInvalidOption ||
         error == Nvrtc::kErrorOutOfMemory;
}

// The cubin or the PTX of a compiled program; what NVRTC returned is in *error.
std::string DeviceCode(const Nvrtc& nvrtc, Nvrtc::Program program, bool ptx, int* error) {
  size_t size = 0;
  *error = (ptx ? nvrtc.GetPTXSize : nvrtc.GetCUBINSize)(program, &size);
  if (*error != Nvrtc::kSuccess || size == 0) return "";
  std::string code(size, '\0');
  *error = (ptx ? nvrtc.GetPTX : nvrtc.GetCUBIN)(program, code.data());
  return *error == Nvrtc::kSuccess ? code : "";
}

}  // namespace

absl::StatusOr<std::unique_ptr<Builder>> NvrtcBuilder::Create() {
  FUSION_ASSIGN_OR_RETURN(const Nvrtc* nvrtc, Nvrtc::Load());
  return std::unique_ptr<Builder>(new NvrtcBuilder(nvrtc));
}

std::string NvrtcBuilder::CompilerVersion() const {
  return absl::StrCat("NVRTC ", nvrtc_->major, ".", nvrtc_->minor);
}

BuildOutput NvrtcBuilder::Build(const v1::BuildTask& task, std::stop_token stop) {
  const auto start = std::chrono::steady_clock::now();
  const double limit = task.deadline_seconds() > 0 ? task.deadline_seconds() : kDefaultBuildDeadlineSeconds;
  BuildOutput output;
  auto finish = [&](v1::Outcome outcome, std::string log) {
    output.result.set_outcome(outcome);
    output.result.set_log(std::move(log));
    output.result.set_seconds(
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    return output;
  };
  if (const absl::Status allowed = CheckBuildOptions(task); !allowed.ok())
    return finish(v1::COMPILE_ERROR, std::string(allowed.message()));
  const absl::StatusOr<BuildTarget> target = ChooseTarget(*nvrtc_, task.arch());
  if (!target.ok()) return finish(v1::COMPILE_ERROR, std::string(target.status().message()));

  Nvrtc::Program program = nullptr;
  int error = nvrtc_->CreateProgram(&program, task.source().c_str(), "fused.cu", 0, nullptr, nullptr);
  if (error != Nvrtc::kSuccess)
    return finish(v1::OUTCOME_UNSPECIFIED,
                  absl::StrCat("NVRTC could not begin: ", nvrtc_->GetErrorString(error)));
  std::vector<std::string> options = {absl::StrCat("--gpu-architecture=", target->arch), "--std=c++17"};
  // Without textures and the runtime API for device code, which no elementary function may use: 3 to 5 ms
  // of the 50 to 90 that a kernel takes. Known since NVRTC 12.4.
  if (nvrtc_->major > 12 || (nvrtc_->major == 12 && nvrtc_->minor >= 4)) options.push_back("--minimal");
  options.insert(options.end(), task.options().begin(), task.options().end());
  std::vector<const char*> pointers;
  for (const std::string& option : options) pointers.push_back(option.c_str());
  Interruption interruption{start + std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                                        std::chrono::duration<double>(limit)),
                            stop};
  if (nvrtc_->SetFlowCallback != nullptr)
    nvrtc_->SetFlowCallback(program, &Interruption::Check, &interruption);
  error = nvrtc_->CompileProgram(program, static_cast<int>(pointers.size()), pointers.data());

  std::string log;
  if (size_t size = 0; nvrtc_->GetProgramLogSize(program, &size) == Nvrtc::kSuccess && size > 1) {
    log.resize(size);
    nvrtc_->GetProgramLog(program, log.data());
    log.resize(size - 1);  // its terminating zero
  }
  if (Interruption::Check(&interruption, nullptr) != 0 || error == Nvrtc::kErrorCancelled) {
    nvrtc_->DestroyProgram(&program);
    return finish(v1::TIMEOUT, absl::StrCat("compilation was given up after ", limit, " s\n", log));
  }
  const bool compiled = error == Nvrtc::kSuccess;
  if (compiled) {
    output.binary = DeviceCode(*nvrtc_, program, target->ptx, &error);
    if (error == Nvrtc::kSuccess && output.binary.empty()) absl::StrAppend(&log, "NVRTC gave no device code");
  }
  const std::string description = error == Nvrtc::kSuccess ? "" : nvrtc_->GetErrorString(error);
  // In words (SaysOutOfMemory), beside whatever else it says: its name of the error is none of them.
  if (error == Nvrtc::kErrorOutOfMemory)
    log = absl::StrCat("NVRTC ran out of memory (", description, ")", log.empty() ? "" : "\n", log);
  nvrtc_->DestroyProgram(&program);
  if (error != Nvrtc::kSuccess || output.binary.empty()) {
    output.binary.clear();
    if (error != Nvrtc::kSuccess && (compiled || !IsErrorOfTheSource(error)))
      return finish(v1::OUTCOME_UNSPECIFIED,
                    absl::StrCat("NVRTC failed: ", description, log.empty() ? "" : ": ", log.substr(0, 300)));
    return finish(v1::COMPILE_ERROR, target->warning + (log.empty() ? description : log));
  }
  output.result.set_binary(absl::StrCat("sha256:", Sha256Hex(output.binary)));
  return finish(v1::OK, target->warning + log);
}

}  // namespace fusion
