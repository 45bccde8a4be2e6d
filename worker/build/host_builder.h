// Host C++ to a shared object with the system's compiler, in a private folder, in a process group that is
// killed at the deadline.
#pragma once

#include "base/sandbox/policy.h"
#include "worker/build/builder.h"
#include "worker/build/host_arch.h"

namespace fusion {

class HostBuilder : public Builder {
 public:
  // Uses $CXX, else the first of g++, c++, clang++. NotFound when there is none. The compiler is confined as
  // the machine permits (base/sandbox): it reads the system's folders and its own, writes the folder of the
  // build, and has 2 GiB of memory. A compiler that does not work in bubblewrap is confined without it.
  static absl::StatusOr<std::unique_ptr<Builder>> Create();

  BuildOutput Build(const v1::BuildTask& task, std::stop_token stop) override;
  std::string CompilerVersion() const override { return version_; }
  std::string Confinement() const override;

 private:
  HostBuilder(std::vector<std::string> compiler, std::string version, SandboxPolicy policy)
      : compiler_(std::move(compiler)), version_(std::move(version)), policy_(std::move(policy)) {}
  const std::vector<std::string> compiler_;  // program and arguments: CXX="ccache g++" works
  const std::string version_;                // first line of --version
  const SandboxPolicy policy_;               // without the folder of a build
};

}  // namespace fusion
