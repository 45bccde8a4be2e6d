#include "server/loop_kernels/interface.h"

#include <algorithm>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/loop_kernels/device_text.h"
#include "server/loops/build_c.h"

namespace fusion {
namespace {

using Kind = CStatement::Kind;

void AddWritten(const CStatement& statement, std::set<std::string>* arrays, std::set<std::string>* scalars) {
  if (statement.kind == Kind::kAssignment)
    (statement.target->kind == CExpression::Kind::kSubscript ? arrays : scalars)
        ->insert(statement.target->text);
  if (statement.kind == Kind::kFor && !statement.declares) scalars->insert(statement.variable.name);
  for (const CStatementPtr& inner : statement.body) AddWritten(*inner, arrays, scalars);
}

// Names of a region that are declared outside of it, or nowhere; with what their declarations use.
std::set<std::string> UsedOutside(const CRegion& region) {
  std::set<std::string> used, declared;
  AddNames(*region.statement, &used);
  AddDeclared(*region.statement, &declared);
  for (const std::string& name : declared) used.erase(name);
  for (size_t before = 0; before != used.size();) {
    before = used.size();
    for (const CVariable& variable : region.scope)
      if (used.count(variable.name) > 0) AddNames(variable, &used);
  }
  return used;
}

// Prints statements one iteration after the other, as C and C++ both have them.
class SerialPrinter {
 public:
  SerialPrinter(const LoopInterface& interface, bool force_f64) : force_f64_(force_f64) {
    for (const LoopArray& array : interface.arrays) arrays_[array.variable.name] = &array.variable;
  }
  std::string Print(const CStatement& statement) {
    Statement(statement, 1);
    return std::move(text_);
  }
  std::string Text(const CExpression& expression) const {
    return CText(*DeviceExpression(*Flat(expression), force_f64_));
  }
  const char* Type(CType type) const { return DeviceType(type, force_f64_); }

 private:
  // Entries of arrays of the interface have one index.
  CExpressionPtr Flat(const CExpression& expression) const {
    auto copy = std::make_shared<CExpression>(expression);
    for (CExpressionPtr& operand : copy->operands) operand = Flat(*operand);
    const auto array = arrays_.find(expression.text);
    if (expression.kind != CExpression::Kind::kSubscript || array == arrays_.end()) return copy;
    CExpressionPtr flat = copy->operands[0];
    for (size_t i = 1; i < copy->operands.size(); ++i)
      flat = CBinary("+", CBinary("*", flat, array->second->extents[i]), copy->operands[i]);
    copy->operands = {flat};
    return copy;
  }

  template <class... Parts>
  void Line(int depth, const Parts&... parts) {
    absl::StrAppend(&text_, std::string(2 * depth, ' '), parts..., "\n");
  }
  void Statement(const CStatement& statement, int depth) {
    switch (statement.kind) {
      case Kind::kBlock:
      case Kind::kSchedule:
        Line(depth, "{");
        for (const CStatementPtr& inner : statement.body) Statement(*inner, depth + 1);
        Line(depth, "}");
        break;
      case Kind::kDeclaration: {
        std::string line =
            absl::StrCat(Type(statement.variable.type), " ", DeviceName(statement.variable.name));
        for (const CExpressionPtr& extent : statement.variable.extents)
          absl::StrAppend(&line, "[", Text(*extent), "]");
        if (statement.value != nullptr) absl::StrAppend(&line, " = ", Text(*statement.value));
        Line(depth, line, ";");
        break;
      }
      case Kind::kAssignment:
        Line(depth, Text(*statement.target), " ", statement.operation, " ", Text(*statement.value), ";");
        break;
      case Kind::kIf:
        Line(depth, "if (", Text(*statement.value), ") {");
        Statement(*statement.body[0], depth + 1);
        if (statement.body.size() > 1) {
          Line(depth, "} else {");
          Statement(*statement.body[1], depth + 1);
        }
        Line(depth, "}");
        break;
      case Kind::kFor: {
        const std::string counter = DeviceName(statement.variable.name);
        Line(depth, "for (", statement.declares ? absl::StrCat(Type(statement.variable.type), " ") : "",
             counter, " = ", Text(*statement.start), "; ", Text(*GoesOn(statement)), "; ", counter,
             statement.down ? " -= " : " += ", Text(*statement.step), ") {");
        Statement(*statement.body[0], depth + 1);
        Line(depth, "}");
        break;
      }
    }
  }
  const bool force_f64_;
  std::map<std::string, const CVariable*> arrays_;
  std::string text_;
};

}  // namespace

LoopInterface InterfaceOf(const CProgram& program, ErrorList* errors) {
  LoopInterface interface;
  std::map<std::string, CVariable> known;
  std::set<std::string> arrays_written;
  std::set<std::string> undeclared;
  std::vector<CVariable> order;
  for (const CRegion& region : program.regions) {
    std::set<std::string> arrays, scalars;
    AddWritten(*region.statement, &arrays, &scalars);
    arrays_written.insert(arrays.begin(), arrays.end());
    std::set<std::string> used = UsedOutside(region);
    for (size_t i = 0; i < region.scope.size(); ++i) {
      const CVariable& variable = region.scope[i];
      const bool shadowed =
          std::any_of(region.scope.begin() + static_cast<std::ptrdiff_t>(i) + 1, region.scope.end(),
                      [&](const CVariable& later) { return later.name == variable.name; });
      if (shadowed || used.erase(variable.name) == 0 || variable.workspace) continue;
      if (!variable.array && scalars.count(variable.name) > 0) continue;  // a counter, or an iteration's own
      const auto [at, added] = known.emplace(variable.name, variable);
      if (added) {
        order.push_back(variable);
      } else if (at->second.position.line != variable.position.line ||
                 at->second.position.column != variable.position.column) {
        errors->Add({variable.position},
                    absl::StrCat(variable.name, " is declared at ", at->second.position.line, ":",
                                 at->second.position.column, ", too; give loops of one function"));
      }
    }
    for (const std::string& name : used)
      if (scalars.count(name) == 0 && arrays.count(name) == 0) undeclared.insert(name);
  }
  for (const CVariable& variable : order) {
    if (variable.array) {
      if (variable.extents.empty() ||
          std::any_of(variable.extents.begin(), variable.extents.end(),
                      [](const CExpressionPtr& extent) { return extent == nullptr; }))
        errors->Add({variable.position}, absl::StrCat("how many entries ", variable.name,
                                                      " has is not said; declare it with its extents, as in ",
                                                      variable.name, "[n]"));
      interface.arrays.push_back({variable, arrays_written.count(variable.name) > 0});
    } else if (IsIntegerType(variable.type) && (variable.constant || variable.initial != nullptr)) {
      interface.constants.push_back(variable);
    } else if (IsIntegerType(variable.type)) {
      interface.integers.push_back(variable.name);
    } else {
      interface.scalars.push_back(variable);
    }
  }
  interface.integers.insert(interface.integers.end(), undeclared.begin(), undeclared.end());
  return interface;
}

std::optional<int64_t> EntriesOf(const CVariable& array, const IntegerValues& values) {
  int64_t entries = 1;
  for (const CExpressionPtr& extent : array.extents) {
    const std::optional<int64_t> size = extent == nullptr ? std::nullopt : EvaluateC(*extent, values);
    if (!size || *size < 1 || __builtin_mul_overflow(entries, *size, &entries)) return std::nullopt;
  }
  return entries;
}

std::string ConstantsText(const LoopInterface& interface, const IntegerValues& parameters) {
  std::string text;
  for (const auto& [name, value] : parameters)
    absl::StrAppend(&text, "  const int ", DeviceName(name), " = ", value, ";\n  (void)", DeviceName(name),
                    ";\n");
  for (const CVariable& constant : interface.constants) {
    const bool narrow =
        constant.constant && *constant.constant >= -2147483647 && *constant.constant <= 2147483647;
    const std::string name = DeviceName(constant.name);
    absl::StrAppend(&text, "  const ", narrow ? "int" : DeviceType(constant.type, false), " ", name, " = ",
                    constant.initial != nullptr ? CText(*DeviceExpression(*constant.initial, false))
                                                : absl::StrCat(*constant.constant),
                    ";\n  (void)", name, ";\n");
  }
  return text;
}

std::string PrintSerial(const CProgram& program, const LoopInterface& interface, const IntegerValues& values,
                        const std::string& name, bool force_f64) {
  std::vector<std::string> parameters;
  for (const std::string& integer : interface.integers) parameters.push_back("int " + DeviceName(integer));
  for (const CVariable& scalar : interface.scalars)
    parameters.push_back(absl::StrCat(DeviceType(scalar.type, force_f64), " ", DeviceName(scalar.name)));
  for (const LoopArray& array : interface.arrays)
    parameters.push_back(absl::StrCat(array.writes ? "" : "const ",
                                      DeviceType(array.variable.type, force_f64), "* ",
                                      DeviceName(array.variable.name)));
  std::string text = absl::StrCat("void ", name, "(", absl::StrJoin(parameters, ", "), ") {\n",
                                  ConstantsText(interface, values));
  for (const CRegion& region : program.regions) {
    // Loops count with these scalars, or keep something in them, outside of themselves.
    std::set<std::string> arrays, scalars, declared;
    AddWritten(*region.statement, &arrays, &scalars);
    AddDeclared(*region.statement, &declared);
    absl::StrAppend(&text, program.regions.size() > 1 ? "  {\n" : "");
    for (const std::string& scalar : scalars) {
      if (declared.count(scalar) > 0) continue;
      CType type = CType::kInt;
      for (const CVariable& variable : region.scope)
        if (variable.name == scalar) type = variable.type;
      absl::StrAppend(&text, "  ", DeviceType(type, force_f64), " ", DeviceName(scalar), ";\n");
    }
    absl::StrAppend(&text, SerialPrinter(interface, force_f64).Print(*region.statement),
                    program.regions.size() > 1 ? "  }\n" : "");
  }
  return text + "}\n";
}

}  // namespace fusion
