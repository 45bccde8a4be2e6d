// Loops in C that were submitted, checked, with everything that a job needs to know of them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "fusion/v1/optimizer.pb.h"
#include "server/loop_kernels/interface.h"
#include "server/loops/mapping.h"
#include "server/optimize/input_files.h"
#include "server/target/device_description.h"

namespace fusion {

struct LoopSubmission {
  std::string file_name, text;
  CProgram program;    // as it was written
  MappedLoops mapped;  // its kernels
  // These run in parallel only what is proved to be parallel: as it was written; and with the loops turned as
  // those of `mapped` are, which takes less time.
  MappedLoops reference, turned_reference;
  LoopInterface interface;  // of `mapped`, without parameters
  IntegerValues sizes;      // all that the interface needs
  // A job chooses these: parameters of the text that were not given, and shapes of blocks.
  std::vector<CParameter> parameters, reference_parameters, turned_parameters;
  std::vector<double> tolerances;  // by array that is written
  std::vector<InputFile> files;    // with values of arrays and scalars
  v1::GraphSummary summary;
  std::string code_name;
};

// Checks a request whose source is loops. InvalidArgument has all errors of the text, or else all of the
// sizes, or names the field that loops have no use for.
absl::StatusOr<std::shared_ptr<const LoopSubmission>> CheckLoopSubmission(const v1::SubmitRequest& request);

// Returns the arrays and scalars of loops as inputs of a graph, with their extents.
v1::Graph InputsOf(const LoopSubmission& submission);

// Returns the data of the loops: arrays are inputs, those that are written outputs in the same memory.
v1::Session LoopSession(const LoopSubmission& submission);

// Ids of buffers.
int InputId(const LoopSubmission& submission, const std::string& name);
int OutputId(const LoopSubmission& submission, const std::string& array);
int TemporaryId(const LoopSubmission& submission, int number);

// Returns the description of an array at these values of integers.
v1::Buffer BufferOf(const CVariable& array, const IntegerValues& values, int id);

// Returns InvalidArgument when the arrays and their f64 reference do not fit the device; it says what is
// needed.
absl::Status CheckDeviceMemory(const LoopSubmission& submission, const DeviceDescription& device);

}  // namespace fusion
