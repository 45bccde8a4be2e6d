// An exported folder says this differently for each target: how kernels are launched, and how the example
// handles memory and time; words of comments and of the README. Texts have the default names
// (ExportedNames::In).
#pragma once

#include <string>
#include <vector>

#include "server/target/exported_names.h"

namespace fusion {

struct ExportedWords {
  // These stand in fused.h.
  const char* includes;          // they follow those of C
  const char* memory;            // the memory that pointers are to
  const char* invalid_argument;  // other causes of FUSED_INVALID_ARGUMENT
  const char* device_error;      // causes of FUSED_DEVICE_ERROR, behind "a launch"
  const char* launch_comment;    // the comment of fused_launch
  // fused_launch: its last parameter, and the argument of the example.
  const char* last_parameter;
  const char* last_argument;
  const char* argument_qualifier;  // qualifier of the array of addresses that a kernel is launched with
  // Lines of CMakeLists.txt that set `dependencies`: what a program that finds the installed package needs.
  const char* package_dependencies;
  // Lines before all code, the body of FusedMultiprocessors, and functions that Launch uses.
  const char* launch_includes;
  const char* multiprocessors;
  const char* launch_support;
  // struct FusedWorkspace: memory while it lives, null where there is none; for launches of loops that need
  // it.
  const char* workspace_support;
  // fused_error_string returns these.
  const char* invalid_argument_text;
  const char* device_error_text;
  // README.md has these: behind the names of the code, behind "runs it", of loadable binaries, of options.
  const char* code_remark;
  const char* run_remark;
  const char* binary_remark;
  const char* option_remark;
  // The example has these: further options and the comment on them; declarations; how they are read.
  const char* options;
  const char* options_comment;
  const char* example_includes;
  const char* option_variables;
  const char* option_parsing;
};

// A launch of a kernel, as expressions.
struct ExportedLaunch {
  std::string kernel;
  std::string grid;
  std::string shared_bytes;
  int threads = 0;
  bool uses_shared = false;
  bool cooperative = false;
};

// An input or output of the example, which is in host memory as the vector h_NAME.
struct ExportedArray {
  std::string name;
  std::string type;
  std::string bytes;  // an expression
};

class ExportedCode {
 public:
  virtual ~ExportedCode() = default;
  virtual const ExportedWords& words() const = 0;

  // Return CMakeLists.txt, and the command that compiles without it.
  virtual std::string BuildFile(const std::string& arch) const = 0;
  virtual std::string CompileCommand(const std::string& arch) const = 0;

  // Returns the launch of a kernel in fused_launch.
  virtual std::string Launch(const ExportedNames& names, const ExportedLaunch& launch) const = 0;
  // Return fused_graph, which repeats fused_launch; nothing where there is no use for one. `parameters` are
  // those of fused_launch but for the last, `arguments` the names of those before the workspace.
  virtual std::string GraphDeclaration(const ExportedNames& names, const std::string& parameters) const = 0;
  virtual std::string Graph(const ExportedNames& names, const std::string& parameters,
                            const std::vector<std::string>& kernels, const std::string& arguments) const = 0;

  // Return statements of the example: memory for arrays and the workspace; the array is copied to where
  // kernels read it, filled with NaN, and copied back.
  virtual std::string Allocate(const std::vector<ExportedArray>& arrays) const = 0;
  virtual std::string Argument(const std::string& name) const = 0;
  virtual std::string CopyIn(const ExportedArray& array) const = 0;
  virtual std::string Poison(const ExportedArray& array) const = 0;
  // The array gets what the vector h_FROM has, of the same type and size: an input that it will overwrite.
  virtual std::string Restore(const ExportedArray& array, const std::string& from) const = 0;
  virtual std::string CopyOut(const ExportedArray& array) const = 0;
  // Returns code that runs, judges and times it. `arguments`: those of fused_launch but for the last.
  // `in_place`: a run changes what the next one reads, so that all is restored before each.
  virtual std::string Runs(const ExportedNames& names, const std::string& arguments, bool in_place) const = 0;
};

}  // namespace fusion
