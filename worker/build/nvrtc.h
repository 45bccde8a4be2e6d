// The part of NVRTC that we use, loaded with dlopen: neither the CUDA Toolkit nor its headers are needed to
// build. Prototypes as in nvrtc.h of the CUDA Toolkit 12 and 13.
#pragma once

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"

namespace fusion {

struct Nvrtc {
  using Program = struct _nvrtcProgram*;
  static constexpr int kSuccess = 0;
  static constexpr int kErrorOutOfMemory = 1;
  static constexpr int kErrorInvalidOption = 5;
  static constexpr int kErrorCompilation = 6;
  static constexpr int kErrorCancelled = 16;

  int (*Version)(int* major, int* minor);
  const char* (*GetErrorString)(int result);
  int (*GetNumSupportedArchs)(int* count);
  int (*GetSupportedArchs)(int* archs);
  int (*CreateProgram)(Program* program, const char* source, const char* name, int header_count,
                       const char* const* headers, const char* const* include_names);
  int (*DestroyProgram)(Program* program);
  int (*CompileProgram)(Program program, int option_count, const char* const* options);
  int (*GetCUBINSize)(Program program, size_t* size);
  int (*GetCUBIN)(Program program, char* cubin);
  int (*GetPTXSize)(Program program, size_t* size);  // with the terminating zero
  int (*GetPTX)(Program program, char* ptx);
  int (*GetProgramLogSize)(Program program, size_t* size);
  int (*GetProgramLog)(Program program, char* log);
  // Null before 12.9: a compilation cannot be interrupted then.
  int (*SetFlowCallback)(Program program, int (*callback)(void* payload, void* reserved), void* payload);

  std::string path;  // of the library that was found
  int major = 0;
  int minor = 0;

  // The library, loaded once for the life of the process. Looked for in this order: $FUSION_NVRTC_LIBRARY (a
  // file); the loader's own paths; the folders in $FUSION_NVRTC_PATH (':' between them);
  // /usr/local/cuda/lib64; pip's nvidia/cu13/lib and nvidia/cuda_nvrtc/lib below the site-packages folders of
  // $VIRTUAL_ENV and the system. NotFound says all that was tried.
  static absl::StatusOr<const Nvrtc*> Load();
};

}  // namespace fusion
