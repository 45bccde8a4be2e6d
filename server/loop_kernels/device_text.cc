#include "server/loop_kernels/device_text.h"

#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/loops/build_c.h"

namespace fusion {

std::string DeviceName(const std::string& name) {
  static const auto* const taken = new std::set<std::string>{
      // of kernels
      "lane", "lanes", "block", "grid", "group", "groups", "shared", "kept", "item", "arguments", "items",
      // of C++ and CUDA, and macros that headers have
      "and", "and_eq", "asm", "bitand", "bitor", "bool", "catch", "class", "compl", "concept", "constexpr",
      "delete", "dynamic_cast", "explicit", "export", "false", "friend", "mutable", "namespace", "new", "not",
      "not_eq", "nullptr", "operator", "or", "or_eq", "private", "protected", "public", "requires",
      "template", "this", "throw", "true", "try", "typeid", "typename", "using", "virtual", "xor", "xor_eq",
      "linux", "unix", "threadIdx", "blockIdx", "blockDim", "gridDim", "warpSize", "alignas", "alignof",
      "decltype", "noexcept", "wchar_t", "I", "NULL", "min", "max", "j0", "j1", "jn", "y0", "y1", "yn",
      "gamma", "double2", "float2", "float4", "int2", "int4", "errno", "stdin", "stdout", "stderr", "EOF",
      "NAN", "INFINITY", "assert",
      // of exported code and its examples
      "stream", "variant", "kernel", "permitted", "argc", "argv", "seconds", "runs", "run", "known", "tuner",
      "section", "of_section", "options", "first", "good", "launch", "restore", "fetch", "shift", "workspace",
      "workspace_memory", "workspace_bytes", "code", "end", "best", "start", "main", "number", "variants",
      "timed"};
  // These are no names of a text; kernel_ir.h knows the dollar.
  if (absl::StartsWith(name, "@")) return absl::StrCat("fu_", name.substr(1));
  if (absl::StartsWith(name, "$")) return absl::StrCat("$fu_", name.substr(1));
  // So no two names become one: what begins with c_ gets another.
  bool prefixed = absl::StartsWithIgnoreCase(name, "fused") || absl::StartsWithIgnoreCase(name, "fusion") ||
                  absl::StartsWithIgnoreCase(name, "fu_") || absl::EndsWith(name, "_fu") ||
                  absl::StrContains(name, "__");
  for (const char* begin : {"_", "a_", "c_", "d_", "g_", "h_", "first_", "argument_"})
    prefixed |= absl::StartsWith(name, begin);
  return prefixed || taken->count(name) > 0 ? absl::StrCat("c_", name) : name;
}

const char* DeviceType(CType type, bool force_f64) {
  switch (type) {
    case CType::kInt:
      return "int";
    case CType::kLong:
      return "long long";
    case CType::kFloat:
      return force_f64 ? "double" : "float";
    case CType::kDouble:
      return "double";
    case CType::kOther:
      return "int";  // refused where it matters
  }
  return "";
}

CExpressionPtr DeviceCall(const CExpression& call, bool force_f64) {
  if ((call.text == "min" || call.text == "max") && call.operands.size() == 2)
    return call.text == "min" ? CSmaller(call.operands[0], call.operands[1])
                              : CLarger(call.operands[0], call.operands[1]);
  auto copy = std::make_shared<CExpression>(call);
  if (call.text == "abs" && call.operands.size() == 1) {
    // C's takes an int.
    auto whole = std::make_shared<CExpression>();
    whole->kind = CExpression::Kind::kCast;
    whole->text = "int";
    whole->operands = call.operands;
    copy->operands = {whole};
    return copy;
  }
  if (force_f64 && absl::EndsWith(call.text, "f") && call.text != "erf")
    copy->text = call.text.substr(0, call.text.size() - 1);
  return copy;
}

CExpressionPtr DeviceExpression(const CExpression& expression, bool force_f64) {
  using Kind = CExpression::Kind;
  auto copy = std::make_shared<CExpression>(expression);
  for (CExpressionPtr& operand : copy->operands) operand = DeviceExpression(*operand, force_f64);
  if (expression.kind == Kind::kName || expression.kind == Kind::kSubscript)
    copy->text = DeviceName(expression.text);
  if (expression.kind == Kind::kCast) copy->text = DeviceType(expression.type, force_f64);
  if (expression.kind == Kind::kCall) return DeviceCall(*copy, force_f64);
  return copy;
}

}  // namespace fusion
