#include "compiler/partition/partition_pass.h"

#include <llvm/Analysis/AliasAnalysis.h>
#include <llvm/Analysis/OptimizationRemarkEmitter.h>
#include <llvm/Demangle/Demangle.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/Path.h>
#include <llvm/TargetParser/Triple.h>
#include <llvm/Transforms/Utils/BasicBlockUtils.h>

#include <set>
#include <string>

#include "compiler/partition/annotations.h"
#include "compiler/partition/canonical.h"
#include "compiler/partition/effects.h"
#include "compiler/partition/loop_candidate.h"
#include "compiler/partition/loop_report.h"
#include "compiler/partition/originals.h"
#include "compiler/partition/selection.h"
#include "compiler/partition/site.h"
#include "compiler/partition/syncs.h"

namespace fusion {

using namespace llvm;

namespace {

constexpr char kRemarks[] = "fusion";  // -Rpass=fusion, -Rpass-missed=fusion

// Returns "", or why all loops of the function are left alone.
std::string WhyNotFunction(const Function& function, const SequentialFunctions& sequential) {
  if (sequential.Has(function)) return "it is annotated fusion_sequential";
  if (function.hasFnAttribute(Attribute::StrictFP))
    return "its function may change or ask how floating-point numbers are computed";
  if (function.hasOptNone()) return "its function is not to be optimized";
  if (function.hasFnAttribute(Attribute::Naked)) return "its function is assembly";
  if (function.hasFnAttribute(Attribute::PresplitCoroutine)) return "its function is a coroutine";
  for (Attribute::AttrKind kind : {Attribute::SanitizeAddress, Attribute::SanitizeThread,
                                   Attribute::SanitizeMemory, Attribute::SanitizeHWAddress})
    if (function.hasFnAttribute(kind)) return "a sanitizer watches it";
  if (function.hasFnAttribute(Attribute::ReturnsTwice) || function.callsFunctionThatReturnsTwice())
    return "its function calls one that may return twice, such as setjmp";
  return "";
}

// A remark that waits until it is known which nests stay reordered.
struct SaidOfLoop {
  DebugLoc place;
  BasicBlock* header;
  std::string text, where;
  int nest;  // the reordered one that the loop is in; -1: none
};

// The function of a partitioned loop.
struct PartitionedBody {
  DeviceKernel kernel;
  int nest;  // as of SaidOfLoop
};

constexpr StringLiteral kFound("loop partitioned: "), kNotFound("not partitioned: ");

// Takes the call away, and the code in another order.
void Forget(ReorderedNest& nest, Function& function) {
  for (User* user : make_early_inc_range(nest.site->users())) {
    auto* call = cast<CallInst>(user);
    if (!call->getType()->isVoidTy()) call->replaceAllUsesWith(Constant::getNullValue(call->getType()));
    call->eraseFromParent();
  }
  nest.site->eraseFromParent();
  BasicBlock* before = nest.blocks.entry->getSinglePredecessor();
  auto* branch = cast<BranchInst>(before->getTerminator());
  nest.blocks.entry->removePredecessor(before);
  IRBuilder<>(branch).CreateBr(branch->getSuccessor(branch->getSuccessor(0) == nest.blocks.entry ? 1 : 0));
  branch->eraseFromParent();
  EliminateUnreachableBlocks(function);
}

void Say(const std::vector<SaidOfLoop>& said, Function& function, FunctionAnalysisManager& analyses,
         LoopReport& report) {
  OptimizationRemarkEmitter& remarks = analyses.getResult<OptimizationRemarkEmitterAnalysis>(function);
  for (const SaidOfLoop& of_loop : said) {
    const StringRef text = of_loop.text;
    if (text.empty()) continue;
    const bool is_found = text.starts_with(kFound), is_not = text.starts_with(kNotFound);
    report.Add(of_loop.place, function, is_found,
               text.drop_front(is_found ? kFound.size()
                               : is_not ? kNotFound.size()
                                        : 0)
                   .str());
    if (is_not)
      remarks.emit([&] {
        return OptimizationRemarkMissed(kRemarks, "NotPartitioned", of_loop.place, of_loop.header)
               << text << of_loop.where;
      });
    else
      remarks.emit([&] {
        return OptimizationRemark(kRemarks, is_found ? "Partitioned" : "Reordered", of_loop.place,
                                  of_loop.header)
               << text << of_loop.where;
      });
  }
}

// Another order is of no use where its phases turn out not to be partitioned: then it is taken away, with all
// that was made of its loops. done: headers of loops that are partitioned.
void KeepIfOfUse(ReorderedNest& nest, int number, const std::set<BasicBlock*>& done, Function& function,
                 std::vector<SaidOfLoop>& said, std::vector<PartitionedBody>& bodies) {
  const bool is_of_use = any_of(nest.blocks.deep, [&](BasicBlock* header) { return done.count(header) > 0; });
  said[nest.at].text = is_of_use ? "loop reordered: " + nest.description : (kNotFound + nest.why_not).str();
  if (is_of_use) return;
  Forget(nest, function);
  // Remarks stay where nests know them to be: an empty one is not said.
  for (SaidOfLoop& of_loop : said)
    if (of_loop.nest == number) of_loop.text.clear();
  for (const PartitionedBody& body : bodies)
    if (body.nest == number) EraseSite(*body.kernel.body);
  erase_if(bodies, [&](const PartitionedBody& body) { return body.nest == number; });
}

// Takes the outermost parallel loops of a function, one after another, or none where it is said why not.
// Returns the functions that their bodies became.
std::vector<DeviceKernel> PartitionFunction(Function& function, FunctionAnalysisManager& analyses,
                                            const std::string& why_not, LoopReport& report) {
  std::vector<PartitionedBody> bodies;
  NameLoads(function);
  const FunctionEffects effects = FindEffects(function, analyses.getResult<AAManager>(function));
  std::set<BasicBlock*> seen, done;  // headers
  std::vector<ReorderedNest> reordered;
  std::vector<SaidOfLoop> said;
  // A loop with sums comes after all others: none of them stays behind for it.
  bool takes_sums = false, has_sums = false;
  for (bool again = true; again;) {
    again = false;
    for (Loop* loop : analyses.getResult<LoopAnalysis>(function).getLoopsInPreorder()) {
      bool inside = false;
      for (Loop* around = loop->getParentLoop(); around != nullptr; around = around->getParentLoop())
        inside |= done.count(around->getHeader()) > 0;
      if (inside || seen.count(loop->getHeader()) > 0) continue;
      const DebugLoc place = loop->getStartLoc();
      BasicBlock* header = loop->getHeader();
      std::string description, why = why_not, where;
      // A loop of a header is one of many functions.
      if (place && (place->getInlinedAt() != nullptr ||
                    sys::path::filename(place->getFilename()) !=
                        sys::path::filename(function.getParent()->getSourceFileName())))
        where = " (in " + demangle(function.getName()) + ")";
      DeviceKernel body;
      const bool is_around = any_of(loop->getLoopsInPreorder(),
                                    [&](const Loop* inner) { return done.count(inner->getHeader()) > 0; });
      if (why.empty()) {
        why = PartitionLoop(*loop, function, analyses,
                            (function.getName() + ".fusion." + Twine(bodies.size())).str(),
                            takes_sums && !is_around, description, body);
      }
      if (why == kSums && !takes_sums) {
        has_sums = true;
        continue;
      }
      if (why == kSums) why += ", around a partitioned loop";
      seen.insert(header);
      if (why_not.empty() && !why.empty() && loop->isOutermost() && !is_around) {
        ReorderedNest nest;
        const std::string name = (function.getName() + ".fusion.order." + Twine(reordered.size())).str();
        if (const std::string why_not_so = ReorderNest(*loop, function, analyses, name, nest);
            why_not_so.empty()) {
          nest.why_not = why;
          nest.at = said.size();
          said.push_back({place, header, "", where, -1});
          seen.insert(nest.blocks.time);
          reordered.push_back(std::move(nest));
          analyses.invalidate(function, PreservedAnalyses::none());
          again = true;
          break;
        }
      }
      int of_nest = -1;
      for (size_t at = 0; at < reordered.size(); ++at)
        for (const Loop* around = loop; around != nullptr; around = around->getParentLoop())
          if (around->getHeader() == reordered[at].blocks.time) of_nest = static_cast<int>(at);
      said.push_back({place, header, why.empty() ? (kFound + description).str() : (kNotFound + why).str(),
                      where, of_nest});
      if (!why.empty()) continue;
      bodies.push_back({body, of_nest});
      done.insert(header);
      analyses.invalidate(function, PreservedAnalyses::none());
      again = true;
      break;
    }
    if (!again && has_sums && !takes_sums) again = takes_sums = true;
  }
  for (int nest = 0; nest < static_cast<int>(reordered.size()); ++nest)
    KeepIfOfUse(reordered[static_cast<size_t>(nest)], nest, done, function, said, bodies);
  if (!reordered.empty()) analyses.invalidate(function, PreservedAnalyses::none());
  Say(said, function, analyses, report);
  std::vector<DeviceKernel> kernels;
  for (const PartitionedBody& body : bodies) kernels.push_back(body.kernel);
  if (!kernels.empty()) SetEffects(effects, function);
  return kernels;
}

}  // namespace

PreservedAnalyses PartitionPass::run(Module& module, ModuleAnalysisManager&) {
  const Triple triple(module.getTargetTriple());
  if (!triple.isOSLinux() || !triple.isX86() || !triple.isArch64Bit()) return PreservedAnalyses::all();
  // A user who asks about each loop gets an answer for all of them.
  LoopReport report;
  const DiagnosticHandler* asked = module.getContext().getDiagHandlerPtr();
  const SetVector<Function*> selected = SelectFunctions(
      module, report.IsWanted() || (asked != nullptr && asked->isMissedOptRemarkEnabled(kRemarks)));
  if (selected.empty()) {
    report.Write();
    return PreservedAnalyses::all();
  }

  Originals originals(module, selected);
  SequentialFunctions sequential(module);
  Analyses analyses;
  Canonicalise(module, analyses.of_module);
  sequential.Release();
  originals.Rejoin();

  std::vector<Function*> functions, partitioned;
  std::vector<DeviceKernel> kernels;
  for (Function& function : module)
    if (originals.IsCopy(function)) functions.push_back(&function);
  for (Function* function : functions) {
    const std::vector<DeviceKernel> bodies =
        PartitionFunction(*function, analyses.of_functions, WhyNotFunction(*function, sequential), report);
    if (!bodies.empty()) AddSyncs(*function, analyses.of_functions);
    bool is_right = !verifyFunction(*function);
    for (const DeviceKernel& body : bodies) is_right = is_right && !verifyFunction(*body.body);
    if (is_right && !bodies.empty()) {
      partitioned.push_back(function);
      function->addFnAttr(kPartitioned);
      for (const DeviceKernel& body : bodies) body.body->addFnAttr(kPartitioned);
      std::copy_if(bodies.begin(), bodies.end(), std::back_inserter(kernels),
                   [](const DeviceKernel& body) { return !body.name.empty(); });
    }
    // A function that the verifier refuses is a fault of this pass: it is compiled as it was.
    if (!is_right && !bodies.empty())
      errs() << "fusion-cc: " << function->getName()
             << " is not partitioned: its new form is not valid, please report it\n";
    if (!is_right) {
      analyses.of_functions.clear(*function, function->getName());
      function->deleteBody();
      for (const DeviceKernel& body : bodies) EraseSite(*body.body);
    }
  }
  analyses.of_functions.clear();
  originals.Restore(partitioned);
  report.Write();
  if (!kernels.empty()) device_code_->Begin(module, kernels);
  return PreservedAnalyses::none();
}

PreservedAnalyses DeviceTextPass::run(Module& module, ModuleAnalysisManager&) {
  std::string error;
  const std::string text = device_code_->Finish(error);
  if (!error.empty())
    errs() << "fusion-cc: remark: the loops of " << module.getName() << " have no code for GPUs: " << error
           << "\n";
  SetDeviceText(module, text);
  return PreservedAnalyses::none();
}

}  // namespace fusion
