// Exported folders on the user's disk.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "fusion/v1/artifact.pb.h"

namespace fusion {

// The file that lists what was written, so that a later export into the same folder can replace it.
inline constexpr char kManifestName[] = ".fusion-files";

// The help text of --force.
inline constexpr char kForceHelp[] =
    "Write into a folder that fusion-client did not write, or over files that were changed since";

// Ok when WriteArtifact(directory, ...) may write: the folder is absent, empty, or an earlier export; with
// `force`, any folder. InvalidArgument otherwise; the message says what to do.
absl::Status CheckArtifactFolder(const std::string& directory, bool force);

// Writes the files of the artifact into the folder, which is created with its parents; files of an earlier
// export are removed first, others are left alone. `report` is written as report.json when the artifact has
// none and `report` is not empty. InvalidArgument: the artifact names a file outside the folder (nothing is
// written then), or as CheckArtifactFolder. Unavailable: the disk refuses; the message names the file.
absl::Status WriteArtifact(const v1::Artifact& artifact, const std::string& report,
                           const std::string& directory, bool force);

}  // namespace fusion
