#include "client/cli/measurement_options.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/similar_name.h"
#include "base/status_macros.h"
#include "base/utf8.h"
#include "client/cli/npy_file.h"

namespace fusion {
namespace {

// "NAME=VALUE" of a repeated option, each name once.
absl::StatusOr<std::map<std::string, std::string>> ReadPairs(const char* option, const char* form,
                                                             const std::vector<std::string>& texts) {
  std::map<std::string, std::string> pairs;
  for (const std::string& text : texts) {
    std::pair<std::string, std::string> parts = absl::StrSplit(text, absl::MaxSplits('=', 1));
    if (parts.first.empty() || parts.second.empty())
      return absl::InvalidArgumentError(absl::StrCat(option, " ", Shown(text), ": must be ", form));
    if (FindBadByte(parts.first))
      return absl::InvalidArgumentError(absl::StrCat(option, ": the name is not UTF-8"));
    if (!pairs.insert(parts).second)
      return absl::InvalidArgumentError(absl::StrCat(option, ": ", Shown(parts.first), " is given twice"));
  }
  return pairs;
}

// A variable as the server has read it, at the sizes that it has resolved.
struct Variable {
  v1::DataType type = v1::F32;
  std::vector<int64_t> shape;
  int64_t bytes = 0;
};
Variable VariableOf(const v1::VariableType& type, const v1::GraphSummary& graph) {
  const auto size = [&](const std::string& name) {
    const auto found = graph.size_values().find(name);
    return found == graph.size_values().end() ? 0 : found->second;
  };
  Variable variable;
  variable.type = type.data_type() == v1::DATA_TYPE_UNSPECIFIED ? v1::F32 : type.data_type();
  if (type.mapped()) variable.shape.push_back(size("elements"));
  for (int extent : type.element_shape()) variable.shape.push_back(extent);
  for (const v1::Extent& extent : type.extents())
    variable.shape.push_back(extent.has_size() ? size(extent.size()) : extent.constant());
  variable.bytes = variable.type == v1::F64 ? 8 : 4;
  for (int64_t extent : variable.shape) variable.bytes *= extent;
  return variable;
}

// A scalar is any array of one entry.
bool HasShape(const NpyHeader& header, const Variable& variable) {
  return variable.shape.empty() ? header.entries == 1 : header.shape == variable.shape;
}

std::string ShapeMessage(const std::string& name, const NpyHeader& header, const Variable& variable) {
  std::string text =
      variable.shape.empty()
          ? absl::StrCat("has the shape ", ShapeText(header.shape), ", but ", name, " is a scalar: one entry")
          : absl::StrCat("has the shape ", ShapeText(header.shape), ", but ", name, " has ",
                         ShapeText(variable.shape), " at these sizes");
  if (header.shape.size() == 2 && variable.shape == std::vector<int64_t>{header.shape[1], header.shape[0]})
    absl::StrAppend(&text, "; save its transpose: a.T");
  return text;
}

}  // namespace

void AddMeasurementOptions(CLI::App* command, MeasurementOptions* options) {
  command
      ->add_option(
          "--input", options->inputs,
          "Measure and verify with the values of the input A from FILE, an array that numpy.save wrote, "
          "instead of random ones; may be repeated")
      ->type_name("A=FILE.npy")
      ->allow_extra_args(false);
  command
      ->add_option(
          "--tolerance", options->tolerances,
          "Accept relative errors of the output x up to this, instead of what follows from the graph; "
          "may be repeated")
      ->type_name("x=1e-2")
      ->allow_extra_args(false);
}

absl::Status AddTolerances(const std::vector<std::string>& tolerances, v1::SubmitRequest* request) {
  FUSION_ASSIGN_OR_RETURN(const auto pairs, ReadPairs("--tolerance", "NAME=NUMBER, as x=1e-2", tolerances));
  for (const auto& [name, text] : pairs) {
    double value = 0;
    if (!absl::SimpleAtod(text, &value) || !std::isfinite(value) || value <= 0)
      return absl::InvalidArgumentError(
          absl::StrCat("--tolerance ", name, "=", Shown(text), ": must be a finite number greater than 0"));
    (*request->mutable_tolerances())[name] = value;
  }
  return absl::OkStatus();
}

absl::Status UploadInputs(Client& client, const std::vector<std::string>& inputs, v1::GraphSource* source) {
  if (inputs.empty()) return absl::OkStatus();
  FUSION_ASSIGN_OR_RETURN(const auto pairs, ReadPairs("--input", "NAME=FILE, as A=a.npy", inputs));
  v1::CheckRequest check;
  *check.mutable_source() = *source;
  FUSION_ASSIGN_OR_RETURN(const v1::CheckResponse checked, client.Check(check));
  std::map<std::string, const v1::VariableType*> types;
  std::vector<absl::string_view> names(checked.proto().inputs().begin(), checked.proto().inputs().end());
  for (const v1::VariableDeclaration& variable : checked.proto().variables())
    types.emplace(variable.name(), &variable.type());

  struct File {
    NpyHeader header;
    v1::DataType type;
  };
  std::map<std::string, File> files;
  std::string errors;
  int64_t bytes = 0;
  for (const auto& [name, path] : pairs) {
    const auto fail = [&, &name = name](absl::string_view message) {
      absl::StrAppend(&errors, errors.empty() ? "" : "\n", "--input ", Shown(name), ": ", message);
    };
    if (std::find(names.begin(), names.end(), name) == names.end()) {
      fail(absl::StrCat(source->has_loops() ? "the loops have no such array" : "the graph has no such input",
                        DidYouMean(SimilarName(name, names))));
      continue;
    }
    absl::StatusOr<NpyHeader> header = ReadNpyHeader(path);
    if (!header.ok()) {
      fail(header.status().message());
      continue;
    }
    const Variable variable = VariableOf(*types.at(name), checked.graph());
    if (!HasShape(*header, variable)) {
      fail(absl::StrCat(path, ": ", ShapeMessage(name, *header, variable)));
    } else if (variable.bytes > Client::kMaximumInputBytes) {
      fail(absl::StrCat(path, ": has ", variable.bytes, " bytes; an input from a file has at most ",
                        Client::kMaximumInputBytes >> 20, " MiB"));
    } else {
      bytes += variable.bytes;
      files[name] = {*std::move(header), variable.type};
    }
  }
  if (errors.empty() && bytes > Client::kMaximumInputsBytes)
    errors = absl::StrCat("--input: the inputs have ", bytes,
                          " bytes together; those of a job that come from files have ", "at most ",
                          Client::kMaximumInputsBytes >> 20, " MiB");
  if (!errors.empty()) return absl::InvalidArgumentError(errors);

  for (const auto& [name, file] : files) {
    FUSION_ASSIGN_OR_RETURN(const std::string entries,
                            ReadNpyEntries(pairs.at(name), file.header, file.type));
    FUSION_ASSIGN_OR_RETURN(std::string digest, client.UploadInput(entries));
    v1::InputValues& values = (*source->mutable_input_values())[name];
    values.set_kind(v1::InputValues::FILE);
    values.set_blob(std::move(digest));
  }
  return absl::OkStatus();
}

}  // namespace fusion
