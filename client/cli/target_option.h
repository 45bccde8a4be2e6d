// Options and errors that commands about a graph share.
#pragma once

#include "client/cli/invocation.h"
#include "client/cli/source_file.h"
#include "fusion/v1/device.pb.h"
#include "fusion/v1/optimizer.pb.h"

namespace fusion {

// Adds --target auto|cuda|host.
void AddTargetOption(CLI::App* command, v1::Target* target);
// Adds --device NAME.
void AddDeviceOption(CLI::App* command, std::string* device);

// Options that say which candidates are wanted, and by which times the best of them is chosen.
struct RankingOptions {
  v1::CacheState cache = v1::COLD;
  bool deterministic = false;
  v1::FusionHints hints;
  int64_t most_fusions = 0;  // 0: the server's own limit
};
// Adds --cache cold|warm, --deterministic, --max-fusions N, --together A,B, --apart A,B, --make A=TEXT.
void AddRankingOptions(CLI::App* command, RankingOptions* options);

// Invocation::Report, with the lines of the source that the errors point at.
ExitCode ReportWithSource(const Invocation& invocation, const absl::Status& status, const SourceFile& file);

}  // namespace fusion
