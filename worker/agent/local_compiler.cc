#include "worker/agent/local_compiler.h"

#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "worker/build/builder.h"
#include "worker/build/cubin.h"

namespace fusion {

absl::StatusOr<std::map<std::string, int>> CompiledRegisters(const std::string& source,
                                                             const std::string& arch) {
  FUSION_ASSIGN_OR_RETURN(const std::unique_ptr<Builder> builder, MakeBuilder(v1::CUDA));
  v1::BuildTask task;
  task.set_target(v1::CUDA);
  task.set_arch(arch);
  task.set_source(source);
  const BuildOutput built = builder->Build(task);
  if (built.result.outcome() != v1::OK)
    return absl::InvalidArgumentError(
        absl::StrCat("the kernels do not compile for ", arch, ": ", built.result.log()));
  FUSION_ASSIGN_OR_RETURN(const std::vector<CubinKernel> kernels, ReadCubin(built.binary));
  std::map<std::string, int> registers;
  for (const CubinKernel& kernel : kernels) registers[kernel.name] = kernel.registers;
  return registers;
}

}  // namespace fusion
