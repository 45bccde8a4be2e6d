#include "library/catalog/function_files.h"

#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/text_format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"
#include "library/catalog/definition_check.h"
#include "library/catalog/embedded_files.h"

namespace fusion {
namespace {

namespace pb = google::protobuf;

constexpr char kDescriptionFile[] = "function.textproto";
constexpr char kSourceFile[] = "routines.h";

// Keeps the first error, as "file:line:column: message". The parser counts from 0.
class FirstError : public pb::io::ErrorCollector {
 public:
  explicit FirstError(std::string file) : file_(std::move(file)) {}
  void AddError(int line, pb::io::ColumnNumber column, const std::string& message) override {
    if (text_.empty()) text_ = absl::StrCat(file_, ":", line + 1, ":", column + 1, ": ", message);
  }
  const std::string& text() const { return text_; }

 private:
  std::string file_;
  std::string text_;
};

// The place of a field in the text, of what contains it when it is absent.
std::string Locate(const std::string& file, const pb::TextFormat::ParseInfoTree& tree,
                   const DefinitionPlace& place) {
  const pb::Descriptor* message = v1::FunctionDefinition::descriptor();
  const pb::TextFormat::ParseInfoTree* scope = &tree;
  pb::TextFormat::ParseLocation location;
  if (place.overload >= 0) {
    const pb::FieldDescriptor* overloads = message->FindFieldByName("overloads");
    location = tree.GetLocation(overloads, place.overload);
    scope = tree.GetTreeForNested(overloads, place.overload);
    message = v1::OverloadDefinition::descriptor();
  }
  const pb::FieldDescriptor* field = place.field.empty() ? nullptr : message->FindFieldByName(place.field);
  if (field != nullptr && scope != nullptr) {
    pb::TextFormat::ParseLocation inner =
        scope->GetLocation(field, field->is_repeated() ? std::max(place.index, 0) : -1);
    if (inner.line >= 0) location = inner;
  }
  if (location.line < 0) return file;
  return absl::StrCat(file, ":", location.line + 1, ":", location.column + 1);
}

absl::StatusOr<std::string> ReadFile(const std::filesystem::path& path) {
  std::ifstream stream(path, std::ios::binary);
  std::ostringstream text;
  if (stream) text << stream.rdbuf();
  if (!stream) return absl::NotFoundError(absl::StrCat("cannot read ", path.string()));
  return text.str();
}

absl::StatusOr<std::vector<std::filesystem::path>> SubfoldersInOrder(const std::filesystem::path& directory) {
  std::error_code error;
  std::vector<std::filesystem::path> folders;
  for (std::filesystem::directory_iterator it(directory, error), end; !error && it != end;
       it.increment(error)) {
    if (it->is_directory()) folders.push_back(it->path());
  }
  if (error)
    return absl::NotFoundError(absl::StrCat("cannot list ", directory.string(), ": ", error.message()));
  std::sort(folders.begin(), folders.end());
  return folders;
}

}  // namespace

absl::StatusOr<v1::FunctionDefinition> ParseFunctionFiles(const FunctionFiles& files) {
  std::string file = absl::StrCat(files.folder, "/", kDescriptionFile);
  FirstError error(file);
  pb::TextFormat::ParseInfoTree tree;
  pb::TextFormat::Parser parser;
  parser.RecordErrorsTo(&error);
  parser.WriteLocationsTo(&tree);
  v1::FunctionDefinition definition;
  if (!parser.ParseFromString(files.description, &definition)) {
    return absl::InvalidArgumentError(error.text().empty() ? absl::StrCat(file, ": cannot be parsed")
                                                           : error.text());
  }
  DefinitionLocator locate = [&](const DefinitionPlace& place) { return Locate(file, tree, place); };
  std::filesystem::path folder(files.folder);
  if (definition.name() != folder.filename().string()) {
    return absl::InvalidArgumentError(
        absl::StrCat(locate({.field = "name"}), ": the name must be that of the folder, \"",
                     folder.filename().string(), "\", but it is \"", definition.name(), "\""));
  }
  std::string domain = folder.parent_path().filename().string();
  if (definition.domain() != domain) {
    return absl::InvalidArgumentError(absl::StrCat(locate({.field = "domain"}),
                                                   ": the domain must be that of the folder, \"", domain,
                                                   "\", but it is \"", definition.domain(), "\""));
  }
  if (!definition.source().empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        locate({.field = "source"}), ": in the library folder the source stands in ", kSourceFile));
  }
  definition.set_source(files.source);
  FUSION_ASSIGN_OR_RETURN(ElementaryFunction checked, CheckDefinition(definition, locate));
  return definition;
}

absl::StatusOr<std::vector<FunctionFiles>> ReadFunctionDirectory(const std::string& directory) {
  std::vector<FunctionFiles> all;
  FUSION_ASSIGN_OR_RETURN(std::vector<std::filesystem::path> domains, SubfoldersInOrder(directory));
  for (const std::filesystem::path& domain : domains) {
    FUSION_ASSIGN_OR_RETURN(std::vector<std::filesystem::path> folders, SubfoldersInOrder(domain));
    for (const std::filesystem::path& folder : folders) {
      FUSION_ASSIGN_OR_RETURN(std::string description, ReadFile(folder / kDescriptionFile));
      FUSION_ASSIGN_OR_RETURN(std::string source, ReadFile(folder / kSourceFile));
      all.push_back({folder.string(), std::move(description), std::move(source)});
    }
  }
  return all;
}

std::vector<FunctionFiles> EmbeddedFunctionFiles() {
  std::vector<FunctionFiles> all;
  for (const auto& [path, content] : EmbeddedFiles()) {
    absl::string_view folder = path;
    if (!absl::StartsWith(path, "functions/") || !absl::ConsumeSuffix(&folder, "/function.textproto"))
      continue;
    auto source = EmbeddedFiles().find(absl::StrCat(folder, "/", kSourceFile));
    all.push_back({absl::StrCat("library/", folder), content,
                   source == EmbeddedFiles().end() ? std::string() : source->second});
  }
  return all;
}

}  // namespace fusion
