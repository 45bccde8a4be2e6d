// Options and errors that commands about a graph share.
#pragma once

#include "client/cli/invocation.h"
#include "client/cli/source_file.h"
#include "fusion/v1/device.pb.h"

namespace fusion {

// --target auto|cuda|host.
void AddTargetOption(CLI::App* command, v1::Target* target);

// Invocation::Report, with the lines of the source that the errors point at.
ExitCode ReportWithSource(const Invocation& invocation, const absl::Status& status, const SourceFile& file);

}  // namespace fusion
