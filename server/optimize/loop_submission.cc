#include "server/optimize/loop_submission.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/rpc/status_details.h"
#include "base/sha256.h"
#include "base/similar_name.h"
#include "base/status_macros.h"
#include "server/loop_kernels/launches.h"
#include "server/loops/check.h"
#include "server/loops/result_scalars.h"
#include "server/optimize/submission.h"

namespace fusion {
namespace {

// Kernels count entries with 32 bits.
constexpr int64_t kMostEntries = std::numeric_limits<int32_t>::max();
constexpr double kReservedOfDevice = 512 << 20;  // that the driver, the code and the runner take

int64_t EntryBytesOf(const CVariable& array) { return array.type == CType::kDouble ? 8 : 4; }
int64_t EntryBytes(const v1::Buffer& buffer) { return buffer.data_type() == v1::F64 ? 8 : 4; }
v1::DataType DataTypeOf(CType type) {
  return type == CType::kDouble ? v1::F64 : type == CType::kFloat ? v1::F32 : v1::I32;
}

// Adds names that are all that a loop over blocks or threads has as its bound.
void AddBoundNames(const CStatement& statement, std::set<std::string>* names) {
  if (statement.kind == CStatement::Kind::kFor && statement.meta &&
      statement.bound->kind == CExpression::Kind::kName)
    names->insert(statement.bound->text);
  for (const CStatementPtr& inner : statement.body) AddBoundNames(*inner, names);
}

// Parameters that the text gives a range, and names that bound loops over threads alone: of neither a size
// was given.
std::vector<CParameter> ParametersOf(const MappedLoops& mapped, const LoopInterface& interface,
                                     const IntegerValues& given) {
  std::vector<CParameter> parameters;
  std::set<std::string> known;
  for (const CParameter& parameter : mapped.program.parameters)
    if (given.count(parameter.name) == 0 && known.insert(parameter.name).second)
      parameters.push_back(parameter);
  std::set<std::string> bounds, extents;
  for (const CRegion& region : mapped.program.regions) AddBoundNames(*region.statement, &bounds);
  for (const LoopArray& array : interface.arrays)
    for (const CExpressionPtr& extent : array.variable.extents)
      if (extent != nullptr) AddNames(*extent, &extents);
  for (const std::string& name : interface.integers)
    if (bounds.count(name) > 0 && extents.count(name) == 0 && given.count(name) == 0 &&
        known.insert(name).second)
      parameters.push_back({.name = name, .position = {}, .low = 1, .high = 1024});
  return parameters;
}

// Returns whether a job may have as many launches as these loops take, as far as that is known.
bool MayBeLaunched(const MappedLoops& mapped, const LoopInterface& interface, const IntegerValues& sizes) {
  IntegerValues values = sizes;
  for (const CParameter& parameter : ParametersOf(mapped, interface, sizes))
    values[parameter.name] = parameter.low;
  ErrorList errors("");
  const LoopCode code = LowerLoops(mapped, {.constants = values}, &errors);
  return !errors.empty() || ForEachLaunch(code, values, [](int, int64_t, const IntegerValues&) {
                              return absl::OkStatus();
                            }).ok();
}

absl::Status CheckSizes(const LoopInterface& interface, const std::vector<CParameter>& parameters,
                        const std::string& file, const IntegerValues& sizes) {
  ErrorList errors(file);
  std::set<std::string> needed(interface.integers.begin(), interface.integers.end());
  for (const CParameter& parameter : parameters) needed.erase(parameter.name);
  std::vector<absl::string_view> names(interface.integers.begin(), interface.integers.end());
  for (const CVariable& constant : interface.constants) names.push_back(constant.name);
  for (const auto& [name, value] : sizes) {
    if (std::find(names.begin(), names.end(), name) == names.end())
      errors.Add({}, absl::StrCat("the loops have no size or parameter ", name,
                                  DidYouMean(SimilarName(name, names))));
    else if (value < std::numeric_limits<int32_t>::min() || value > kMostEntries)
      errors.Add({}, absl::StrCat(name, " = ", value, " needs more than 32 bits"));
  }
  for (const std::string& name : needed)
    if (sizes.count(name) == 0)
      errors.Add({}, absl::StrCat(name, " has no value; give one: --size ", name, "=1024"));
  if (!errors.empty()) return errors.ToStatus();
  const IntegerValues values = ScopeValues(interface.constants, sizes);
  for (const LoopArray& array : interface.arrays) {
    const std::optional<int64_t> entries = EntriesOf(array.variable, values);
    if (!entries)
      errors.Add({array.variable.position}, absl::StrCat("at these sizes ", array.variable.name,
                                                         " has no entries, or their number is not known"));
    else if (*entries > kMostEntries)
      errors.Add({array.variable.position},
                 absl::StrCat(array.variable.name, " would have ", *entries,
                              " entries; kernels of loops count up to ", kMostEntries));
  }
  return errors.empty() ? absl::OkStatus() : errors.ToStatus();
}

// Operations that may round, one behind the other: what an error grows with.
struct Depth {
  double longest = 1;  // sum in a thread
  bool divides = false;
};
void AddDepth(const CStatement& statement, const IntegerValues& values, double trips, Depth* depth) {
  if (statement.kind == CStatement::Kind::kFor && !statement.meta) {
    const auto count = EvaluateC(*statement.bound, values);
    trips *= count && *count > 1 ? static_cast<double>(*count) : 1;
  }
  if (statement.kind == CStatement::Kind::kAssignment) depth->longest = std::max(depth->longest, trips);
  for (const CStatementPtr& inner : statement.body) AddDepth(*inner, values, trips, depth);
}

// Arrays whose entries divide, or of which a root or logarithm is taken.
void AddDivisors(const CExpression& expression, std::set<std::string>* arrays) {
  using Kind = CExpression::Kind;
  const auto add = [&](const CExpression& of) {
    std::set<std::string> names;
    const auto subscripts = [&](auto&& self, const CExpression& one) -> void {
      if (one.kind == Kind::kSubscript) names.insert(one.text);
      for (const CExpressionPtr& operand : one.operands) self(self, *operand);
    };
    subscripts(subscripts, of);
    arrays->insert(names.begin(), names.end());
  };
  if (expression.kind == Kind::kBinary && (expression.text == "/" || expression.text == "%"))
    add(*expression.operands[1]);
  if (expression.kind == Kind::kCall &&
      (expression.text == "sqrt" || expression.text == "sqrtf" || expression.text == "log" ||
       expression.text == "logf" || expression.text == "pow" || expression.text == "powf"))
    add(*expression.operands[0]);
  for (const CExpressionPtr& operand : expression.operands) AddDivisors(*operand, arrays);
}
void AddDivisors(const CStatement& statement, std::set<std::string>* arrays) {
  if (statement.value != nullptr) AddDivisors(*statement.value, arrays);
  if (statement.kind == CStatement::Kind::kAssignment && statement.operation == "/=") {
    CExpression quotient;
    quotient.kind = CExpression::Kind::kBinary;
    quotient.text = "/";
    quotient.operands = {statement.target, statement.value};
    AddDivisors(quotient, arrays);
  }
  for (const CStatementPtr& inner : statement.body) AddDivisors(*inner, arrays);
}

// Arrays of integers that stand in indices, with the fewest indices that there are where they stand.
void AddIndexArrays(const CExpression& expression, const LoopInterface& interface,
                    const IntegerValues& values, std::map<std::string, int64_t>* most) {
  using Kind = CExpression::Kind;
  if (expression.kind == Kind::kSubscript)
    for (size_t i = 0; i < expression.operands.size(); ++i) {
      const auto inside = [&](auto&& self, const CExpression& one) -> void {
        if (one.kind == Kind::kSubscript)
          for (const LoopArray& array : interface.arrays) {
            if (array.variable.name != expression.text || i >= array.variable.extents.size()) continue;
            const int64_t last = EvaluateC(*array.variable.extents[i], values).value_or(1) - 1;
            const auto [at, added] = most->emplace(one.text, last);
            if (!added) at->second = std::min(at->second, last);
          }
        for (const CExpressionPtr& operand : one.operands) self(self, *operand);
      };
      inside(inside, *expression.operands[i]);
    }
  for (const CExpressionPtr& operand : expression.operands) AddIndexArrays(*operand, interface, values, most);
}
void AddIndexArrays(const CStatement& statement, const LoopInterface& interface, const IntegerValues& values,
                    std::map<std::string, int64_t>* most) {
  for (const CExpressionPtr& part :
       {statement.target, statement.value, statement.start, statement.bound, statement.step})
    if (part != nullptr) AddIndexArrays(*part, interface, values, most);
  for (const CStatementPtr& inner : statement.body) AddIndexArrays(*inner, interface, values, most);
}

absl::Status CheckUnused(const v1::SubmitRequest& request) {
  const v1::FusionHints& hints = request.hints();
  if (hints.together_size() + hints.apart_size() + hints.implementations_size() > 0)
    return InvalidField("hints", "speak of results of functions, which loops in C do not have");
  if (request.has_benchmark())
    return InvalidField("benchmark", "measures functions of elements, which loops in C do not have");
  return absl::OkStatus();
}

// Takes over what is asked of the values of arrays and scalars.
absl::Status AddFiles(const v1::GraphSource& source, LoopSubmission* submission) {
  const v1::Session session = LoopSession(*submission);
  std::vector<absl::string_view> names;
  for (const v1::Buffer& input : session.inputs()) names.push_back(input.name());
  std::map<std::string, v1::InputValues> ordered(source.input_values().begin(), source.input_values().end());
  std::string text;
  for (const auto& [name, values] : ordered) {
    const auto input = std::find_if(session.inputs().begin(), session.inputs().end(),
                                    [&, &name = name](const v1::Buffer& one) { return one.name() == name; });
    if (input == session.inputs().end())
      return InvalidField("source.input_values", absl::StrCat("the loops have no array ", Shown(name),
                                                              DidYouMean(SimilarName(name, names))));
    if (values.kind() != v1::InputValues::FILE)
      return InvalidField("source.input_values",
                          absl::StrCat("values of ", name, " are random or come from a file"));
    submission->files.push_back({name, input->count() * EntryBytes(*input), values.blob()});
    absl::StrAppend(&text, name, " ", values.blob(), "\n");
  }
  if (!text.empty()) submission->summary.set_input_values("sha256:" + Sha256Hex(text).substr(0, 16));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::shared_ptr<const LoopSubmission>> CheckLoopSubmission(const v1::SubmitRequest& request) {
  FUSION_RETURN_IF_ERROR(CheckUnused(request));
  auto submission = std::make_shared<LoopSubmission>();
  submission->text = request.source().loops();
  submission->file_name =
      request.source().file_name().empty() ? "<submission>" : request.source().file_name();
  submission->code_name = request.code_name();
  const std::string& file = submission->file_name;
  std::set<std::string> given;
  for (const auto& [name, value] : request.source().size_values()) {
    submission->sizes[name] = value;
    given.insert(name);
  }
  FUSION_ASSIGN_OR_RETURN(CheckedProgram checked, CheckLoops(submission->text, file, given));
  checked = WithResultsInArrays(std::move(checked));
  ErrorList errors(file);
  submission->mapped = MapLoops(checked, {}, &errors);
  // Where another order takes too many launches one thread does what it can.
  const bool in_order =
      submission->mapped.rearranged && errors.empty() &&
      !MayBeLaunched(submission->mapped, InterfaceOf(submission->mapped.program, &errors), submission->sizes);
  if (in_order) submission->mapped = MapLoops(checked, {.in_order = true}, &errors);
  submission->reference = MapLoops(checked, {.proved_only = true, .as_written = true}, &errors);
  submission->turned_reference = MapLoops(checked, {.proved_only = true, .in_order = in_order}, &errors);
  submission->interface = InterfaceOf(submission->mapped.program, &errors);
  if (!errors.empty()) return errors.ToStatus();
  submission->program = std::move(checked.program);
  submission->parameters = ParametersOf(submission->mapped, submission->interface, submission->sizes);
  submission->reference_parameters =
      ParametersOf(submission->reference, submission->interface, submission->sizes);
  submission->turned_parameters =
      ParametersOf(submission->turned_reference, submission->interface, submission->sizes);
  LoopInterface& interface = submission->interface;
  const std::vector<CVariable> constants = interface.constants;
  if (std::none_of(interface.arrays.begin(), interface.arrays.end(),
                   [](const LoopArray& array) { return array.writes; }))
    return InvalidField("source", absl::StrCat(file, ": the loops write no array"));
  FUSION_RETURN_IF_ERROR(CheckSizes(interface, submission->parameters, file, submission->sizes));
  std::erase_if(interface.integers, [&](const std::string& name) {
    return std::any_of(submission->parameters.begin(), submission->parameters.end(),
                       [&](const CParameter& parameter) { return parameter.name == name; });
  });

  // In the text as it was written, where the smallest tiles leave most to the loops over them.
  IntegerValues smallest = submission->sizes;
  for (const CParameter& parameter : submission->reference.program.parameters)
    smallest.emplace(parameter.name, parameter.low);
  const IntegerValues values = ScopeValues(constants, smallest);
  Depth depth;
  std::set<std::string> divisors;
  for (const CRegion& region : submission->reference.program.regions) {
    AddDepth(*region.statement, values, 1, &depth);
    AddDivisors(*region.statement, &divisors);
  }
  std::vector<std::string> written;
  for (const LoopArray& array : interface.arrays) {
    if (!array.writes) continue;
    written.push_back(array.variable.name);
    const double units = (4 + 2 * std::sqrt(depth.longest)) * (divisors.empty() ? 1 : 4);
    const bool f64 = array.variable.type == CType::kDouble;
    double tolerance = array.variable.type == CType::kInt ? 0 : (f64 ? 0x1p-53 : 0x1p-24) * 8 * units;
    if (const auto asked = request.tolerances().find(array.variable.name);
        asked != request.tolerances().end())
      tolerance = asked->second;
    submission->tolerances.push_back(tolerance);
  }
  for (const auto& [name, tolerance] : request.tolerances())
    if (std::find(written.begin(), written.end(), name) == written.end() || !(tolerance > 0) ||
        !std::isfinite(tolerance))
      return InvalidField("tolerances",
                          absl::StrCat(name, ": is no array that the loops write, or no number above 0"));
  v1::GraphSummary& summary = submission->summary;
  summary.set_name(file);
  summary.set_nodes(static_cast<int>(submission->program.regions.size()));
  summary.set_hash("sha256:" + Sha256Hex(submission->text));
  for (const auto& [name, value] : submission->sizes) (*summary.mutable_size_values())[name] = value;
  FUSION_RETURN_IF_ERROR(AddFiles(request.source(), submission.get()));
  return submission;
}

v1::Buffer BufferOf(const CVariable& array, const IntegerValues& values, int id) {
  v1::Buffer buffer;
  buffer.set_id(id);
  buffer.set_name(array.name);
  buffer.set_count(EntriesOf(array, values).value_or(0));
  buffer.set_data_type(DataTypeOf(array.type));
  const int64_t rows = array.extents.size() > 1 ? EvaluateC(*array.extents[0], values).value_or(1) : 1;
  buffer.set_columns(buffer.count() / rows);
  if (array.extents.size() < 2) return buffer;
  buffer.set_rows(rows);
  buffer.set_row_stride(buffer.columns());
  return buffer;
}

int InputId(const LoopSubmission& submission, const std::string& name) {
  const LoopInterface& interface = submission.interface;
  for (size_t i = 0; i < interface.arrays.size(); ++i)
    if (interface.arrays[i].variable.name == name) return static_cast<int>(i);
  for (size_t i = 0; i < interface.scalars.size(); ++i)
    if (interface.scalars[i].name == name) return static_cast<int>(interface.arrays.size() + i);
  return -1;
}

int OutputId(const LoopSubmission& submission, const std::string& array) {
  return static_cast<int>(submission.interface.arrays.size() + submission.interface.scalars.size()) +
         InputId(submission, array);
}

int TemporaryId(const LoopSubmission& submission, int number) {
  const LoopInterface& interface = submission.interface;
  return static_cast<int>(2 * interface.arrays.size() + interface.scalars.size()) + number;
}

v1::Graph InputsOf(const LoopSubmission& submission) {
  v1::Graph graph;
  const IntegerValues values = ScopeValues(submission.interface.constants, submission.sizes);
  const auto add = [&](const std::string& name, v1::DataType type) {
    graph.add_inputs(name);
    v1::VariableDeclaration* variable = graph.add_variables();
    variable->set_name(name);
    variable->mutable_type()->set_data_type(type);
    return variable->mutable_type();
  };
  for (const LoopArray& array : submission.interface.arrays) {
    v1::VariableType* type = add(array.variable.name, DataTypeOf(array.variable.type));
    for (const CExpressionPtr& extent : array.variable.extents)
      type->add_extents()->set_constant(EvaluateC(*extent, values).value_or(0));
  }
  for (const CVariable& scalar : submission.interface.scalars) add(scalar.name, DataTypeOf(scalar.type));
  return graph;
}

v1::Session LoopSession(const LoopSubmission& submission) {
  v1::Session session;
  const LoopInterface& interface = submission.interface;
  const IntegerValues values = ScopeValues(interface.constants, submission.sizes);
  std::set<std::string> divisors;
  std::map<std::string, int64_t> indices;
  for (const CRegion& region : submission.program.regions) {
    AddDivisors(*region.statement, &divisors);
    AddIndexArrays(*region.statement, interface, values, &indices);
  }
  for (const LoopArray& array : interface.arrays) {
    const std::string& name = array.variable.name;
    v1::Buffer buffer = BufferOf(array.variable, values, InputId(submission, name));
    const bool divides = divisors.count(name) > 0;
    buffer.set_domain(divides ? v1::POSITIVE : v1::REAL);
    if (const auto index = indices.find(name); index != indices.end() && buffer.data_type() == v1::I32) {
      buffer.mutable_values()->set_kind(v1::InputValues::INTEGERS);
      buffer.mutable_values()->set_upper(static_cast<double>(index->second));
    } else if (buffer.data_type() == v1::I32) {
      buffer.mutable_values()->set_kind(v1::InputValues::INTEGERS);
      buffer.mutable_values()->set_lower(divides ? 1 : -1000);
      buffer.mutable_values()->set_upper(1000);
    } else if (divides && array.writes) {
      // Factorisations divide by what they compute, and so do others that want to be kept from 0.
      const auto side = static_cast<int64_t>(std::llround(std::sqrt(static_cast<double>(buffer.count()))));
      if (side > 1 && side * side == buffer.count()) {
        buffer.set_rows(side);
        buffer.set_columns(side);
        buffer.set_row_stride(side);
        buffer.mutable_values()->set_kind(v1::InputValues::POSITIVE_DEFINITE);
      }
    }
    *session.add_inputs() = buffer;
    if (!array.writes) continue;
    v1::Buffer output = BufferOf(array.variable, values, OutputId(submission, name));
    output.set_memory_of(buffer.id());
    *session.add_outputs() = std::move(output);
    session.add_whole_outputs(false);
  }
  for (const CVariable& scalar : interface.scalars) {
    v1::Buffer buffer;
    buffer.set_id(InputId(submission, scalar.name));
    buffer.set_name(scalar.name);
    buffer.set_count(1);
    buffer.set_data_type(DataTypeOf(scalar.type));
    buffer.set_by_value(true);
    *session.add_inputs() = std::move(buffer);
  }
  for (const InputFile& file : submission.files)
    for (v1::Buffer& input : *session.mutable_inputs())
      if (input.name() == file.input) {
        input.mutable_values()->Clear();
        input.mutable_values()->set_kind(v1::InputValues::FILE);
        input.mutable_values()->set_blob(file.blob);
      }
  session.mutable_tolerances()->Add(submission.tolerances.begin(), submission.tolerances.end());
  return session;
}

absl::Status CheckDeviceMemory(const LoopSubmission& submission, const DeviceDescription& device) {
  const IntegerValues values = ScopeValues(submission.interface.constants, submission.sizes);
  double needed = kReservedOfDevice;
  for (const LoopArray& array : submission.interface.arrays) {
    const auto entries = static_cast<double>(EntriesOf(array.variable, values).value_or(0));
    // An array that is written has its input beside it, and both have their f64.
    needed += entries * (static_cast<double>(EntryBytesOf(array.variable)) + 8) * (array.writes ? 2 : 1);
  }
  if (device.memory_bytes() <= 0 || needed <= static_cast<double>(device.memory_bytes()))
    return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrFormat("the arrays do not fit the device %s: with their f64 reference they need %.1f GB, and "
                      "it has %.1f GB; submit smaller sizes",
                      device.name(), needed / 1e9, static_cast<double>(device.memory_bytes()) / 1e9));
}

}  // namespace fusion
