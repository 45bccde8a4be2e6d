#include "tests/property/codegen/host_execution.h"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <limits>
#include <random>
#include <set>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "server/codegen/kernel_versions.h"
#include "server/codegen/program.h"
#include "server/codegen/source.h"
#include "server/codegen/verification.h"
#include "server/model/cost_model.h"
#include "server/search/implementation_choice.h"
#include "server/skeletons/skeletons.h"
#include "server/target/target.h"

namespace fusion::testing {
namespace {

constexpr size_t kGuardBytes = 4096;
constexpr unsigned char kGuard = 0xa5;

// Before the runtime. Loops stay loops: unrolled they take the compiler four times as long. Counts accesses
// at once that a GPU would stop at.
constexpr char kBeforeRuntime[] = R"(
#define FUSION_UNROLL
static long long fu_misaligned = 0;
static inline void fu_at_once(const void* address, unsigned bytes) {
  if (((unsigned long long)address & (bytes - 1)) == 0) return;
#pragma omp atomic
  ++fu_misaligned;
}
#define FUSION_AT_ONCE(address, bytes) fu_at_once(address, bytes)
extern "C" long long fu_take_misaligned() {
  const long long count = fu_misaligned;
  fu_misaligned = 0;
  return count;
}
)";

// Memory with guard zones on both sides; it begins so many bytes behind a multiple of 16.
class Guarded {
 public:
  explicit Guarded(size_t bytes, size_t bytes_off = 0)
      : begin_(kGuardBytes + bytes_off), bytes_(bytes), memory_(begin_ + bytes + kGuardBytes, kGuard) {
    std::memset(data(), 0xff, bytes);  // NaN
  }
  char* data() { return reinterpret_cast<char*>(memory_.data()) + begin_; }
  bool Intact() const {
    const auto untouched = [](unsigned char byte) { return byte == kGuard; };
    return std::all_of(memory_.begin(), memory_.begin() + begin_, untouched) &&
           std::all_of(memory_.begin() + begin_ + bytes_, memory_.end(), untouched);
  }

 private:
  size_t begin_, bytes_;
  std::vector<unsigned char> memory_;
};

}  // namespace

HostModule::~HostModule() {
  if (handle_) dlclose(handle_);
}

absl::StatusOr<std::unique_ptr<HostModule>> HostModule::Compile(const std::vector<const FusionCode*>& codes,
                                                                const HostCompiler& compiler) {
  std::unique_ptr<HostModule> module(new HostModule());
  // The runtime and each routine once, then all kernels with a number in their names.
  FusionCode all;
  std::set<std::string> names;
  std::string kernels;
  for (const FusionCode* code : codes) {
    if (module->numbers_.count(code)) continue;
    const int number = static_cast<int>(module->numbers_.size());
    module->numbers_[code] = number;
    for (const ElementaryFunction* function : code->functions)
      if (names.insert(function->name).second) all.functions.push_back(function);
    for (const KernelLaunch& launch : code->launches) {
      for (ir::Kernel& kernel : LaunchableKernels(launch)) {
        kernel.name = absl::StrCat("k", number, "_", kernel.name);
        kernels += TargetOf(v1::HOST).Print(kernel);
      }
    }
  }
  char folder[] = "/tmp/fusion_codegen_XXXXXX";
  if (mkdtemp(folder) == nullptr) return absl::InternalError("cannot make a folder below /tmp");
  const std::string base = folder;
  std::ofstream(base + "/code.cc") << compiler.before << kBeforeRuntime
                                   << PrintSource(all, TargetOf(v1::HOST), true) << kernels;
  const std::string command = absl::StrCat(compiler.command, " -std=c++17 -fopenmp -fPIC -shared -w ", base,
                                           "/code.cc -o ", base, "/code.so > ", base, "/log 2>&1");
  const int code = std::system(command.c_str());
  absl::Status status;
  if (code != 0) {
    std::ostringstream log;
    log << std::ifstream(base + "/log").rdbuf();
    status = absl::InternalError(log.str().substr(0, 4000));
  } else {
    // What runs are made of is short, and other tests run beside this one: threads do not spin where they
    // wait.
    setenv("OMP_WAIT_POLICY", "passive", 0);
    // Never unloaded: with it would go libgomp, whose threads are still there.
    module->handle_ = dlopen((base + "/code.so").c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!module->handle_) status = absl::InternalError(dlerror());
  }
  for (const char* file : {"/code.cc", "/code.so", "/log"}) unlink((base + file).c_str());
  rmdir(base.c_str());
  if (!status.ok()) return status;
  return module;
}

HostModule::Kernel HostModule::Find(const FusionCode* code, const std::string& kernel) const {
  return reinterpret_cast<Kernel>(dlsym(handle_, absl::StrCat("k", numbers_.at(code), "_", kernel).c_str()));
}

int64_t HostModule::TakeMisaligned() const {
  return reinterpret_cast<long long (*)()>(dlsym(handle_, "fu_take_misaligned"))();
}

std::string ChosenKernel(const KernelLaunch& launch, const SizeValues& sizes, const EntriesOff& entries_off) {
  bool whole = LaunchesWhole(launch, sizes);
  if (whole && entries_off)
    for (ValueId value : launch.whole->aligned) whole &= entries_off(value) == 0;
  return LaunchedName(launch, whole);
}

absl::Status RunOnHost(const Graph& graph, const SizeValues& sizes, const HostModule& module,
                       const std::vector<const FusionCode*>& codes, int multiprocessors, bool force_f64,
                       const std::vector<ValueId>& given, const std::vector<ValueId>& wanted, Values* values,
                       const EntriesOff& entries_off) {
  std::vector<CompiledFusion> fusions;
  for (const FusionCode* code : codes) fusions.push_back({code, ""});
  const v1::Program program = BuildProgram(
      graph, sizes, fusions, {.name = "test", .multiprocessors = multiprocessors, .force_f64 = force_f64});
  std::map<int, std::shared_ptr<Guarded>> buffers;
  auto is_double = [&](int id) { return force_f64 || graph.values()[id].type.data_type == v1::F64; };
  for (const Value& value : graph.values()) {
    if (value.literal) continue;
    const int id = value.id.value;
    const int64_t entries = StorageEntries(value, sizes);
    const int entry_bytes = is_double(id) ? 8 : 4;
    // The reference has memory of its own for all that it computes.
    const bool in_place = value.memory_of && !force_f64;
    buffers[id] = in_place ? buffers.at(value.memory_of->value)
                           : std::make_shared<Guarded>(entries * entry_bytes,
                                                       entries_off ? entries_off(value.id) * entry_bytes : 0);
    if (std::find(given.begin(), given.end(), value.id) == given.end()) continue;
    const std::vector<double>& entered = values->at(id);
    for (int64_t i = 0; i < entries; ++i) {
      if (is_double(id))
        reinterpret_cast<double*>(buffers[id]->data())[i] = entered[i];
      else
        reinterpret_cast<float*>(buffers[id]->data())[i] = static_cast<float>(entered[i]);
    }
  }
  Guarded workspace(program.workspace_bytes());
  size_t next = 0;
  for (const FusionCode* code : codes) {
    for (size_t k = 0; k < code->launches.size(); ++k) {
      const v1::Launch& launch = program.launches(static_cast<int>(next++));
      std::vector<long long> storage(launch.arguments_size());
      std::vector<void*> arguments;
      for (int i = 0; i < launch.arguments_size(); ++i) {
        const v1::LaunchArgument& argument = launch.arguments(i);
        void* pointer = nullptr;
        switch (argument.kind_case()) {
          case v1::LaunchArgument::kBuffer:
            pointer = buffers.at(argument.buffer())->data();
            std::memcpy(&storage[i], &pointer, 8);
            break;
          case v1::LaunchArgument::kScalarBuffer:
            std::memcpy(&storage[i], buffers.at(argument.scalar_buffer())->data(),
                        is_double(argument.scalar_buffer()) ? 8 : 4);
            break;
          case v1::LaunchArgument::kInteger:
            storage[i] = argument.integer();
            break;
          case v1::LaunchArgument::kWorkspaceOffset:
            pointer = workspace.data() + argument.workspace_offset();
            std::memcpy(&storage[i], &pointer, 8);
            break;
          case v1::LaunchArgument::KIND_NOT_SET:
            return absl::InternalError("an argument without a kind");
        }
        arguments.push_back(&storage[i]);
      }
      const std::string kernel =
          entries_off ? ChosenKernel(code->launches[k], sizes, entries_off) : launch.kernel();
      HostModule::Kernel function = module.Find(code, kernel);
      if (function == nullptr) return absl::InternalError("no kernel " + kernel);
      function(launch.grid(), arguments.data());
    }
  }
  if (const int64_t count = module.TakeMisaligned(); count > 0)
    return absl::InternalError(absl::StrCat(count, " accesses at once at addresses that do not permit them"));
  if (!workspace.Intact()) return absl::InternalError("a kernel wrote outside of the workspace");
  for (const Value& value : graph.values()) {
    if (value.literal) continue;
    const int id = value.id.value;
    if (!buffers[id]->Intact()) return absl::InternalError("a kernel wrote outside of " + value.name);
    if (std::find(wanted.begin(), wanted.end(), value.id) == wanted.end()) continue;
    std::vector<double>& out = (*values)[id];
    out.resize(StorageEntries(value, sizes));
    for (size_t i = 0; i < out.size(); ++i)
      out[i] = is_double(id) ? reinterpret_cast<double*>(buffers[id]->data())[i]
                             : reinterpret_cast<float*>(buffers[id]->data())[i];
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<FusionCode>> LowerReference(const Graph& graph, const SizeValues& sizes) {
  const CostModel host(DescribedDevice(v1::HOST));
  std::vector<FusionCode> codes;
  for (const Node& node : graph.nodes()) {
    auto code = LowerFusion(graph, ReferenceImplementation(graph, node.id, sizes, host),
                            {.force_f64 = true, .simt = false});
    if (!code.ok()) return code.status();
    codes.push_back(*std::move(code));
  }
  return codes;
}

absl::StatusOr<std::unique_ptr<ComparedCodes>> ComparedCodes::Compile(const Graph& graph,
                                                                      const SizeValues& sizes,
                                                                      const std::vector<FusionCode>& codes) {
  auto reference = LowerReference(graph, sizes);
  if (!reference.ok()) return reference.status();
  std::unique_ptr<ComparedCodes> compared(new ComparedCodes(graph, *std::move(reference)));
  std::vector<const FusionCode*> all;
  for (const FusionCode& code : compared->reference_) all.push_back(&code);
  for (const FusionCode& code : codes) all.push_back(&code);
  auto module = HostModule::Compile(all);
  if (!module.ok()) return module.status();
  compared->module_ = *std::move(module);
  return compared;
}

absl::Status ComparedCodes::RunReference(const SizeValues& sizes, const std::vector<ValueId>& wanted,
                                         Values* values) const {
  std::vector<const FusionCode*> codes;
  for (const FusionCode& code : reference_) codes.push_back(&code);
  return RunOnHost(graph_, sizes, *module_, codes, 2, true, graph_.inputs(), wanted, values);
}

void RandomInputs(const Graph& graph, const SizeValues& sizes, unsigned seed, Values* values) {
  v1::Session session;
  DescribeBuffers(graph, sizes, &session);
  std::mt19937 engine(seed);
  for (const v1::Buffer& buffer : session.inputs()) {
    std::uniform_real_distribution<double> draw(buffer.domain() == v1::REAL ? -0.5 : 0.25,
                                                buffer.domain() == v1::REAL ? 1.0 : 1.25);
    std::vector<double>& entries = (*values)[buffer.id()];
    entries.resize(buffer.count());
    for (double& entry : entries)
      entry = buffer.data_type() == v1::F64 ? draw(engine) : static_cast<float>(draw(engine));
  }
}

double RelativeError(const std::vector<double>& a, const std::vector<double>& reference) {
  if (a.size() != reference.size()) return std::numeric_limits<double>::infinity();
  double square = 0, error = 0;
  for (double r : reference)
    if (std::isfinite(r)) square += r * r;
  const double rms = reference.empty() ? 0 : std::sqrt(square / reference.size());
  for (size_t i = 0; i < a.size(); ++i) {
    if (std::isnan(reference[i]) && std::isnan(a[i])) continue;
    if (a[i] == reference[i]) continue;
    const double relative = std::fabs(a[i] - reference[i]) / std::max(std::fabs(reference[i]), rms);
    if (!(relative <= error))
      error = std::isnan(relative) ? std::numeric_limits<double>::infinity() : relative;
  }
  return error;
}

}  // namespace fusion::testing
