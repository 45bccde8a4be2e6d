// Options that candidates are measured with: --input A=FILE and --tolerance x=1e-2.
#pragma once

#include <string>
#include <vector>

#include "client/api/client.h"
#include "client/cli/invocation.h"
#include "fusion/v1/optimizer.pb.h"

namespace fusion {

struct MeasurementOptions {
  std::vector<std::string> inputs;      // "A=FILE"
  std::vector<std::string> tolerances;  // "x=1e-2"
};
void AddMeasurementOptions(CLI::App* command, MeasurementOptions* options);

// InvalidArgument: one is no NAME=NUMBER with a finite number above 0, or a name is given twice.
absl::Status AddTolerances(const std::vector<std::string>& tolerances, v1::SubmitRequest* request);

// Uploads the files for inputs of the graph and adds what they are to the source. The graph is checked
// before, and the type and shape of each file against the input at the sizes of the source; nothing is
// uploaded when anything is wrong. InvalidArgument says all that is the user's to mend; else errors of the
// calls.
absl::Status UploadInputs(Client& client, const std::vector<std::string>& inputs, v1::GraphSource* source);

}  // namespace fusion
