// Reads from a cubin what device code takes, without a GPU.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace fusion {

struct CubinKernel {
  std::string name;
  int registers = 0;    // of a thread
  int stack_bytes = 0;  // of a thread, in local memory: spilled registers, and arrays with indices
};

// Reads a cubin as NVRTC and ptxas make it: an ELF file of 64 bits with a section .nv.info, whose attributes
// are a format, a number and a value (EIATTR_REGCOUNT 0x2f, EIATTR_FRAME_SIZE 0x11: a symbol and a number).
// The bytes may be anything. InvalidArgument: they are no such file.
absl::StatusOr<std::vector<CubinKernel>> ReadCubin(absl::string_view bytes);

}  // namespace fusion
