#include "worker/build/nvrtc_builder.h"

#include <algorithm>
#include <chrono>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "library/catalog/sha256.h"
#include "worker/build/child_process.h"

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

// "" when NVRTC can build for the architecture, else what is wrong.
std::string CheckArch(const Nvrtc& nvrtc, const std::string& arch) {
  absl::string_view digits = arch;
  if (!absl::ConsumePrefix(&digits, "sm_")) return absl::StrCat("arch '", arch, "' is not of the form sm_90");
  while (!digits.empty() && (digits.back() == 'a' || digits.back() == 'f')) digits.remove_suffix(1);
  int wanted = 0, count = 0;
  if (!absl::SimpleAtoi(digits, &wanted)) return absl::StrCat("arch '", arch, "' is not of the form sm_90");
  if (nvrtc.GetNumSupportedArchs(&count) != Nvrtc::kSuccess || count <= 0) return "";
  std::vector<int> archs(count);
  if (nvrtc.GetSupportedArchs(archs.data()) != Nvrtc::kSuccess) return "";
  if (std::find(archs.begin(), archs.end(), wanted) != archs.end()) return "";
  return absl::StrCat("NVRTC ", nvrtc.major, ".", nvrtc.minor, " cannot build for ", arch, ", only for ",
                      absl::StrJoin(archs, ", "));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Builder>> NvrtcBuilder::Create() {
  absl::StatusOr<const Nvrtc*> nvrtc = Nvrtc::Load();
  if (!nvrtc.ok()) return nvrtc.status();
  return std::unique_ptr<Builder>(new NvrtcBuilder(*nvrtc));
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
  if (std::string problem = CheckArch(*nvrtc_, task.arch()); !problem.empty())
    return finish(v1::COMPILE_ERROR, problem);

  Nvrtc::Program program = nullptr;
  int error = nvrtc_->CreateProgram(&program, task.source().c_str(), "fused.cu", 0, nullptr, nullptr);
  if (error != Nvrtc::kSuccess) return finish(v1::COMPILE_ERROR, nvrtc_->GetErrorString(error));
  std::vector<std::string> options = {absl::StrCat("--gpu-architecture=", task.arch()), "--std=c++17"};
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
  if (error == Nvrtc::kSuccess) {
    size_t size = 0;
    error = nvrtc_->GetCUBINSize(program, &size);
    if (error == Nvrtc::kSuccess && size > 0) {
      output.binary.resize(size);
      error = nvrtc_->GetCUBIN(program, output.binary.data());
    }
    if (error == Nvrtc::kSuccess && size == 0) absl::StrAppend(&log, "NVRTC gave no device code");
  }
  const std::string description = error == Nvrtc::kSuccess ? "" : nvrtc_->GetErrorString(error);
  nvrtc_->DestroyProgram(&program);
  if (error != Nvrtc::kSuccess || output.binary.empty()) {
    output.binary.clear();
    return finish(v1::COMPILE_ERROR, log.empty() ? description : log);
  }
  output.result.set_binary(absl::StrCat("sha256:", Sha256Hex(output.binary)));
  return finish(v1::OK, log);
}

}  // namespace fusion
