// A policy says what a child process is for, and with that what it may touch. It is a plain value that
// travels from the worker to its runner as arguments, so that both sides confine by the same text.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace fusion {

enum class SandboxKind {
  kHostCode,        // a runner that executes shared objects of candidates
  kDeviceCode,      // a runner that loads the CUDA driver and launches kernels of candidates
  kDeviceCompiler,  // a runner that compiles with NVRTC
  kHostCompiler,    // the system's compiler: starts programs of its own
};

struct SandboxPolicy {
  SandboxKind kind = SandboxKind::kDeviceCode;
  std::vector<std::string> read;   // files and folders beyond those of ReadablePlaces
  std::vector<std::string> write;  // folders; there is no other place to write but a small private /tmp
  std::string device_uuid;         // the one GPU of kDeviceCode; "": all
  bool use_bubblewrap = true;      // where the machine offers it
  bool use_landlock = true;        // where the machine offers it
};

// "host-code", "device-code", "device-compiler", "host-compiler".
const char* SandboxKindName(SandboxKind kind);

// The policy as arguments of fusion-runner, and back: without `write`, which is the parent's business, and
// with `use_bubblewrap` saying what has been done (ActualPolicy). InvalidArgument names an argument that is
// not understood.
std::vector<std::string> PolicyArguments(const SandboxPolicy& policy);
absl::StatusOr<SandboxPolicy> PolicyFromArguments(const std::vector<std::string>& arguments);

// Places on this machine that a process of this kind must read and that exist: libraries, the loader's cache,
// folders of /sys, policy.read; without /proc and /dev. Absolute, sorted, none inside another. Symbolic links
// of the root folder (/lib -> usr/lib) are listed as they are named.
std::vector<std::string> ReadablePlaces(const SandboxPolicy& policy);

// Files and folders of /proc that a process of this kind reads: none for compilers, but the processor's.
std::vector<std::string> ReadableProcessFiles(const SandboxPolicy& policy);

// Device nodes that exist here and that such a process may open: /dev/null, /dev/urandom and the like; for
// kDeviceCode those of the driver and of the one GPU (all GPUs when the driver does not say which is which).
std::vector<std::string> DeviceNodes(const SandboxPolicy& policy);

}  // namespace fusion
