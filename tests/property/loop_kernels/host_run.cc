#include "tests/property/loop_kernels/host_run.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <random>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "server/codegen/device_runtime.h"
#include "server/loop_kernels/launches.h"
#include "server/target/target.h"

namespace fusion::testing {
namespace {

constexpr double kScalar = 0.75;

int64_t EntryBytes(CType type) { return type == CType::kDouble || type == CType::kLong ? 8 : 4; }

}  // namespace

std::unique_ptr<SharedObject> SharedObject::Compile(const std::string& source, bool c) {
  char folder[] = "/tmp/fusion_loops_XXXXXX";
  if (mkdtemp(folder) == nullptr) {
    ADD_FAILURE() << "no folder for the compiler";
    return nullptr;
  }
  const std::string path = absl::StrCat(folder, c ? "/x.c" : "/x.cc"), object = absl::StrCat(folder, "/x.so");
  std::ofstream(path) << source;
  const std::string command = absl::StrCat(c ? "gcc -std=gnu11" : "g++ -std=c++17 -fopenmp",
                                           " -O1 -w -ffp-contract=off -fPIC -shared ", path, " -o ", object,
                                           " -lm 2>", folder, "/log");
  const int status = std::system(command.c_str());
  // Never unloaded: with it would go libgomp, whose threads are still there.
  void* const handle = status == 0 ? dlopen(object.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE) : nullptr;
  if (handle == nullptr) {
    std::ifstream log(absl::StrCat(folder, "/log"));
    const std::string text{std::istreambuf_iterator<char>(log), {}};
    ADD_FAILURE() << text.substr(0, 4000) << "\n"
                  << source.substr(source.size() > 20000 ? source.size() - 6000 : 0);
  }
  std::system(absl::StrCat("rm -r ", folder).c_str());
  return handle == nullptr ? nullptr : std::unique_ptr<SharedObject>(new SharedObject(handle));
}
void* SharedObject::Find(const std::string& function) const {
  void* const found = dlsym(handle_, function.c_str());
  EXPECT_NE(found, nullptr) << function;
  return found;
}

ArrayBytes RandomArrays(const LoopInterface& interface, const IntegerValues& values, uint64_t seed) {
  std::mt19937_64 random(seed);
  ArrayBytes arrays;
  for (const LoopArray& array : interface.arrays) {
    const auto entries = EntriesOf(array.variable, values);
    EXPECT_TRUE(entries.has_value()) << array.variable.name;
    std::vector<char> bytes(entries.value_or(1) * EntryBytes(array.variable.type));
    for (int64_t i = 0; i < entries.value_or(1); ++i) {
      const double real = std::uniform_real_distribution<double>(-1, 1)(random);
      const int whole = static_cast<int>(real * 100);
      const float narrow = static_cast<float>(real);
      char* const to = bytes.data() + i * EntryBytes(array.variable.type);
      if (array.variable.type == CType::kDouble) std::memcpy(to, &real, 8);
      if (array.variable.type == CType::kFloat) std::memcpy(to, &narrow, 4);
      if (array.variable.type == CType::kInt) std::memcpy(to, &whole, 4);
    }
    arrays.push_back(std::move(bytes));
  }
  return arrays;
}

std::string SerialSource(const CProgram& program, const LoopInterface& interface, const std::string& name) {
  std::string source = absl::StrCat(
      "#include <math.h>\n#include <stdlib.h>\nstatic ", PrintSerial(program, interface, {}, name, false),
      "void ", name, "_run(const int* integers, const double* scalars, void** arrays) {\n  ", name, "(");
  std::string arguments;
  const auto add = [&](const std::string& argument) {
    absl::StrAppend(&arguments, arguments.empty() ? "" : ", ", argument);
  };
  for (size_t i = 0; i < interface.integers.size(); ++i) add(absl::StrCat("integers[", i, "]"));
  for (size_t i = 0; i < interface.scalars.size(); ++i) add(absl::StrCat("scalars[", i, "]"));
  for (size_t i = 0; i < interface.arrays.size(); ++i) add(absl::StrCat("arrays[", i, "]"));
  return absl::StrCat(source, arguments, ");\n}\n");
}

std::string HostRuntime() { return DeviceRuntime(); }

std::string KernelSource(const LoopCode& code, bool backwards) {
  std::string source;
  for (const LoopKernel& kernel : code.kernels)
    absl::StrAppend(&source, TargetOf(v1::HOST).Print(kernel.kernel));
  if (!backwards || source.empty()) return source;
  const int replaced =
      absl::StrReplaceAll({{"for (fu_index group = 0; group < groups; ++group)",
                            "for (fu_index group = groups - 1; group >= 0; --group)"},
                           {"for (int lane = 0, lane_end = (int)(lanes); lane < lane_end; ++lane)",
                            "for (int lane = (int)(lanes) - 1; lane >= 0; --lane)"}},
                          &source);
  EXPECT_GE(replaced, 2 * static_cast<int>(code.kernels.size())) << source;
  return source;
}

void RunSerial(const SharedObject& object, const std::string& name, const LoopInterface& interface,
               const IntegerValues& values, ArrayBytes* arrays) {
  std::vector<int> integers;
  for (const std::string& integer : interface.integers)
    integers.push_back(static_cast<int>(values.at(integer)));
  const std::vector<double> scalars(interface.scalars.size() + 1, kScalar);
  std::vector<void*> addresses;
  for (std::vector<char>& array : *arrays) addresses.push_back(array.data());
  const auto run = reinterpret_cast<void (*)(const int*, const double*, void**)>(object.Find(name + "_run"));
  run(integers.data(), scalars.data(), addresses.data());
}

absl::Status ForEachCall(const LoopCode& code, const LoopInterface& interface, const IntegerValues& values,
                         const std::vector<uint64_t>& arrays,
                         const std::map<std::string, uint64_t>& workspaces, const OnCall& launch) {
  return ForEachLaunch(code, values,
                       [&](int number, int64_t blocks, const IntegerValues& now) -> absl::Status {
                         const LoopKernel& kernel = code.kernels[number];
                         std::vector<uint64_t> arguments;
                         for (const LoopArgument& argument : kernel.arguments) {
                           uint64_t& bytes = arguments.emplace_back(0);
                           if (argument.kind == LoopArgument::Kind::kInteger) {
                             const auto value = now.find(argument.name);
                             if (value == now.end())
                               return absl::InvalidArgumentError(argument.name + " has no value");
                             bytes = static_cast<uint64_t>(value->second);
                           } else if (argument.kind == LoopArgument::Kind::kScalar) {
                             const float narrow = kScalar;
                             if (argument.type == CType::kFloat)
                               std::memcpy(&bytes, &narrow, 4);
                             else
                               std::memcpy(&bytes, &kScalar, 8);
                           } else if (argument.kind == LoopArgument::Kind::kWorkspace) {
                             bytes = workspaces.at(argument.name);
                           } else {
                             for (size_t i = 0; i < interface.arrays.size(); ++i)
                               if (interface.arrays[i].variable.name == argument.name) bytes = arrays[i];
                           }
                         }
                         return launch(kernel, blocks, std::move(arguments));
                       });
}

void RunKernels(const SharedObject& object, const LoopCode& code, const LoopInterface& interface,
                const IntegerValues& values, ArrayBytes* arrays) {
  std::vector<uint64_t> addresses;
  for (std::vector<char>& array : *arrays) addresses.push_back(reinterpret_cast<uint64_t>(array.data()));
  std::map<std::string, std::vector<char>> held;
  std::map<std::string, uint64_t> workspaces;
  for (const CVariable& workspace : code.workspaces) {
    held[workspace.name].resize(8 * static_cast<size_t>(EntriesOf(workspace, values).value_or(0)));
    workspaces[workspace.name] = reinterpret_cast<uint64_t>(held[workspace.name].data());
  }
  const absl::Status done = ForEachCall(
      code, interface, values, addresses, workspaces,
      [&](const LoopKernel& kernel, int64_t blocks, std::vector<uint64_t> arguments) {
        std::vector<void*> pointers;
        for (uint64_t& bytes : arguments) pointers.push_back(&bytes);
        const auto run = reinterpret_cast<void (*)(long long, void* const*)>(object.Find(kernel.kernel.name));
        run(blocks, pointers.data());
        return absl::OkStatus();
      });
  EXPECT_TRUE(done.ok()) << done;
}

}  // namespace fusion::testing
