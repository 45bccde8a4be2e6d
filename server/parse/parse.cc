#include "server/parse/parse.h"

#include <cctype>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "server/parse/checker.h"
#include "server/parse/input_values.h"
#include "server/parse/lexer.h"
#include "server/parse/parser.h"
#include "server/parse/proto_reader.h"
#include "server/parse/type_name.h"

namespace fusion {
namespace {

// "models/my graph.v2.fuse" -> "my_graph_v2"; "" -> "graph". The name goes into generated code.
std::string GraphName(absl::string_view path) {
  const size_t slash = path.find_last_of("/\\");
  if (slash != absl::string_view::npos) path.remove_prefix(slash + 1);
  const size_t dot = path.rfind('.');
  if (dot != absl::string_view::npos && dot > 0) path = path.substr(0, dot);
  std::string name;
  for (char c : path.substr(0, kLongestName)) name += absl::ascii_isalnum(c) ? c : '_';
  if (name.find_first_not_of('_') == std::string::npos) return "graph";
  if (absl::ascii_isdigit(name[0])) name.insert(name.begin(), '_');
  return name;
}

std::string Megabytes(size_t bytes) {
  if (bytes % (size_t{1} << 20) == 0) return absl::StrCat(bytes >> 20, " MiB");
  return absl::StrCat(bytes, " bytes");
}

bool WithinLimit(const char* what, size_t bytes, size_t limit, ErrorList* errors) {
  if (bytes <= limit) return true;
  errors->Add(Location{},
              absl::StrCat(what, " has ", bytes, " bytes; the limit of this server is ", Megabytes(limit)));
  return false;
}

class SourceReader {
 public:
  SourceReader(const v1::GraphSource& source, std::shared_ptr<const Catalog> catalog,
               const ParseOptions& options)
      : source_(source), catalog_(std::move(catalog)), options_(options), errors_(source.file_name()) {}

  absl::StatusOr<std::shared_ptr<const Graph>> Read() {
    std::shared_ptr<const Graph> graph;
    if (source_.kind_case() == v1::GraphSource::kLoops) {
      errors_.Add(Location{}, "loops in C are submitted; only graphs are explained, and read by a server");
    } else if (source_.kind_case() == v1::GraphSource::kGraph) {
      if (WithinLimit("the graph", source_.graph().ByteSizeLong(), options_.max_message_bytes, &errors_))
        graph = FromMessage(source_.graph());
    } else if (WithinLimit("the file", source_.fuse().size(), options_.max_bytes, &errors_)) {
      graph = FromText(source_.fuse());
    }
    if (!errors_.empty()) return errors_.ToStatus();
    return graph;
  }

 private:
  std::shared_ptr<const Graph> FromText(absl::string_view text) {
    if (const auto bad = FindBadByte(text)) {
      errors_.Add(Location{bad->position}, absl::StrCat("byte 0x", absl::Hex(bad->byte, absl::kZeroPad2),
                                                        " is not UTF-8; save the file as UTF-8 text"));
      return nullptr;
    }
    const absl::string_view visible = absl::StripLeadingAsciiWhitespace(text);
    if (!visible.empty() && visible[0] == '{') {
      v1::Graph message;
      return ReadJson(text, &message, &errors_) ? FromMessage(message) : nullptr;
    }
    SyntaxTree tree = ParseFuse(text, options_.max_nodes, &errors_);
    if (!tree.complete) return nullptr;
    const bool empty = tree.sizes.empty() && tree.types.empty() && tree.inputs.empty() && tree.calls.empty();
    if (empty && !tree.has_return && errors_.empty()) {
      errors_.Add(
          Location::At(1, 1),
          "the file is empty; declare variables, input some, compute others and return what is wanted");
      return nullptr;
    }
    return Checked(std::move(tree), source_.file_name());
  }

  std::shared_ptr<const Graph> FromMessage(const v1::Graph& message) {
    if (message.functions_size() > 0) {
      auto extended = catalog_->WithInline({message.functions().begin(), message.functions().end()});
      if (!extended.ok()) {
        errors_.Add(Location{}, absl::StrCat("functions: ", extended.status().message()));
        return nullptr;
      }
      catalog_ = *std::move(extended);
    }
    SyntaxTree tree = ReadGraph(message, options_.max_nodes, &errors_);
    if (!tree.complete) return nullptr;
    return Checked(std::move(tree), message.name().empty() ? source_.file_name() : message.name());
  }

  std::shared_ptr<const Graph> Checked(SyntaxTree tree, const std::string& named_after) {
    AddInputValues(source_.input_values(), /*files=*/true, &tree, &errors_);
    return CheckGraph(tree, GraphName(named_after), catalog_, &errors_);
  }

  const v1::GraphSource& source_;
  std::shared_ptr<const Catalog> catalog_;
  const ParseOptions options_;
  ErrorList errors_;
};

}  // namespace

absl::StatusOr<std::shared_ptr<const Graph>> ParseSource(const v1::GraphSource& source,
                                                         std::shared_ptr<const Catalog> catalog,
                                                         const ParseOptions& options) {
  return SourceReader(source, std::move(catalog), options).Read();
}

}  // namespace fusion
