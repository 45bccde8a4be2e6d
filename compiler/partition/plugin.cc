// The entry point that clang-19 calls in a plugin (-fpass-plugin).
#include <llvm/Config/llvm-config.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Passes/PassPlugin.h>

#include <memory>

#include "compiler/partition/device_code.h"
#include "compiler/partition/partition_pass.h"

static_assert(LLVM_VERSION_MAJOR == 19,
              "the plugin is written for LLVM 19: its interfaces change with every version");

extern "C" LLVM_ATTRIBUTE_VISIBILITY_DEFAULT llvm::PassPluginLibraryInfo llvmGetPassPluginInfo() {
  return {LLVM_PLUGIN_API_VERSION, "fusion-partition", "1", [](llvm::PassBuilder& builder) {
            // Before all of -O3: later passes take loops apart, and they shall see the functions that are
            // made here.
            const auto device_code = std::make_shared<fusion::DeviceCompile>();
            builder.registerPipelineEarlySimplificationEPCallback(
                [device_code](llvm::ModulePassManager& passes, llvm::OptimizationLevel level) {
                  if (level != llvm::OptimizationLevel::O0)
                    passes.addPass(fusion::PartitionPass(device_code));
                });
            builder.registerOptimizerLastEPCallback(
                [device_code](llvm::ModulePassManager& passes, llvm::OptimizationLevel level) {
                  if (level != llvm::OptimizationLevel::O0)
                    passes.addPass(fusion::DeviceTextPass(device_code));
                });
          }};
}
