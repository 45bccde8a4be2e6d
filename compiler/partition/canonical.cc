#include "compiler/partition/canonical.h"

#include <llvm/Analysis/InlineCost.h>
#include <llvm/Analysis/LoopNestAnalysis.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Transforms/IPO/Inliner.h>
#include <llvm/Transforms/InstCombine/InstCombine.h>
#include <llvm/Transforms/Scalar/EarlyCSE.h>
#include <llvm/Transforms/Scalar/LICM.h>
#include <llvm/Transforms/Scalar/LoopPassManager.h>
#include <llvm/Transforms/Scalar/LoopRotation.h>
#include <llvm/Transforms/Scalar/SROA.h>
#include <llvm/Transforms/Scalar/SimplifyCFG.h>
#include <llvm/Transforms/Utils/LCSSA.h>
#include <llvm/Transforms/Utils/LoopSimplify.h>
#include <llvm/Transforms/Utils/Mem2Reg.h>

namespace fusion {

using namespace llvm;

namespace {

// Moves what does not change in a nest before it, from any depth at once. LICM goes from the innermost loop
// outwards: a load that only some iterations make loses its type metadata at the first step, and then a
// store of another type seems to change it at the next.
struct InvariantsBeforeNests : PassInfoMixin<InvariantsBeforeNests> {
  PreservedAnalyses run(Loop& loop, LoopAnalysisManager& analyses, LoopStandardAnalysisResults& results,
                        LPMUpdater& updater) {
    if (!loop.isOutermost()) return PreservedAnalyses::all();
    LNICMPass move_before{LICMOptions()};
    PreservedAnalyses preserved = PreservedAnalyses::all();
    for (Loop* nest : loop.getLoopsInPreorder()) {
      LoopNest all(*nest, results.SE);
      preserved.intersect(move_before.run(all, analyses, results, updater));
    }
    return preserved;
  }
};

}  // namespace

Analyses::Analyses() {
  PassBuilder builder;
  builder.registerModuleAnalyses(of_module);
  builder.registerCGSCCAnalyses(of_calls);
  builder.registerFunctionAnalyses(of_functions);
  builder.registerLoopAnalyses(of_loops);
  builder.crossRegisterProxies(of_loops, of_functions, of_calls, of_module);
}

void Canonicalise(Module& module, ModuleAnalysisManager& analyses) {
  ModulePassManager passes;
  ModuleInlinerWrapperPass inliner(getInlineParams(/*Threshold=*/225));  // as clang -O2 has it
  FunctionPassManager between;
  between.addPass(SROAPass(SROAOptions::ModifyCFG));
  between.addPass(EarlyCSEPass(/*UseMemorySSA=*/true));
  between.addPass(SimplifyCFGPass());
  between.addPass(InstCombinePass());
  inliner.getPM().addPass(createCGSCCToFunctionPassAdaptor(std::move(between)));
  passes.addPass(std::move(inliner));
  FunctionPassManager of_function;
  of_function.addPass(PromotePass());
  of_function.addPass(SROAPass(SROAOptions::ModifyCFG));
  of_function.addPass(EarlyCSEPass(true));
  of_function.addPass(InstCombinePass());
  of_function.addPass(SimplifyCFGPass());
  of_function.addPass(LoopSimplifyPass());
  of_function.addPass(LCSSAPass());
  of_function.addPass(createFunctionToLoopPassAdaptor(LoopRotatePass(/*EnableHeaderDuplication=*/true)));
  of_function.addPass(InstCombinePass());
  of_function.addPass(SimplifyCFGPass());
  of_function.addPass(createFunctionToLoopPassAdaptor(InvariantsBeforeNests(), /*UseMemorySSA=*/true));
  of_function.addPass(createFunctionToLoopPassAdaptor(LICMPass(LICMOptions()), /*UseMemorySSA=*/true));
  of_function.addPass(InstCombinePass());
  of_function.addPass(EarlyCSEPass(true));
  of_function.addPass(LoopSimplifyPass());
  of_function.addPass(LCSSAPass());
  passes.addPass(createModuleToFunctionPassAdaptor(std::move(of_function)));
  passes.run(module, analyses);
}

}  // namespace fusion
