#include "server/lowering/kernel_ir.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace fusion::ir {
namespace {

// Lines of C++, which come without blanks before them, indented by the braces that are open where each
// begins, and once more below a "for (...)" or "if (...)" that ends without one. Braces are balanced.
std::vector<std::string> Indented(std::vector<std::string> lines) {
  int open = 0;
  bool governed = false;
  for (std::string& line : lines) {
    const bool closes_first = absl::StartsWith(line, "}");
    const bool governs =
        (absl::StartsWith(line, "for (") || absl::StartsWith(line, "if (")) && absl::EndsWith(line, ")");
    const std::string indent(2 * (open - closes_first + governed), ' ');
    for (char c : line) open += (c == '{') - (c == '}');
    governed = governs;
    line.insert(0, indent);
  }
  return lines;
}

}  // namespace

Statement Text(std::string text) { return {.kind = Statement::Kind::kText, .text = std::move(text)}; }
std::vector<Statement> Texts(std::vector<std::string> lines) {
  std::vector<Statement> texts;
  for (std::string& line : Indented(std::move(lines))) texts.push_back(Text(std::move(line)));
  return texts;
}
Statement Loop(std::string header, std::vector<Statement> body) {
  return {.kind = Statement::Kind::kLoop, .text = std::move(header), .body = std::move(body)};
}
Statement If(std::string condition, std::vector<Statement> body) {
  return {.kind = Statement::Kind::kIf, .text = std::move(condition), .body = std::move(body)};
}
Statement IfVersion(const std::string& constant, bool value, std::vector<Statement> body) {
  Statement statement = If(value ? constant : "!" + constant, std::move(body));
  statement.version = value ? Statement::Version::kHolds : Statement::Version::kFails;
  return statement;
}
Statement Versions(std::string condition, std::string constant, std::vector<Statement> body,
                   bool known_at_launch) {
  return {.kind = Statement::Kind::kVersions,
          .text = std::move(condition),
          .known_at_launch = known_at_launch,
          .target = std::move(constant),
          .body = std::move(body)};
}
Statement LanePhase(std::vector<std::string> lines, std::string items) {
  return {
      .kind = Statement::Kind::kLanePhase, .lines = Indented(std::move(lines)), .items = std::move(items)};
}
Statement StridedPhase(std::vector<std::string> lines, std::string items) {
  return {.kind = Statement::Kind::kLanePhase,
          .lines = Indented(std::move(lines)),
          .items = std::move(items),
          .strided = true};
}
Statement Collective(std::vector<std::string> lines) {
  return {.kind = Statement::Kind::kLanePhase, .lines = Indented(std::move(lines)), .collective = true};
}
Statement Leader(std::vector<std::string> lines) {
  return {.kind = Statement::Kind::kLeader, .lines = Indented(std::move(lines))};
}
Statement Reduce(std::string monoid, std::string source, std::string target, int count) {
  return {.kind = Statement::Kind::kReduce,
          .monoid = std::move(monoid),
          .source = std::move(source),
          .target = std::move(target),
          .count = count};
}
Statement Barrier() { return {.kind = Statement::Kind::kBarrier}; }
Statement ZeroWait() { return {.kind = Statement::Kind::kZeroWait}; }

namespace {

void Append(const Statement& statement, int depth, std::string* out) {
  const std::string indent(2 * depth, ' ');
  auto lines = [&](const std::vector<std::string>& body) {
    for (const std::string& line : body) absl::StrAppend(out, indent, "  | ", line, "\n");
  };
  switch (statement.kind) {
    case Statement::Kind::kText:
      absl::StrAppend(out, indent, statement.text, "\n");
      break;
    case Statement::Kind::kLoop:
    case Statement::Kind::kIf:
      absl::StrAppend(out, indent, statement.kind == Statement::Kind::kLoop ? "loop " : "if ", statement.text,
                      "\n");
      for (const Statement& inner : statement.body) Append(inner, depth + 1, out);
      break;
    case Statement::Kind::kVersions:
      absl::StrAppend(out, indent, statement.known_at_launch ? "versions by launch " : "versions ",
                      statement.target, " = ", statement.text, "\n");
      for (const Statement& inner : statement.body) Append(inner, depth + 1, out);
      break;
    case Statement::Kind::kLanePhase:
      absl::StrAppend(out, indent, statement.collective ? "collective" : "lanes",
                      statement.items.empty() ? "" : absl::StrCat(" < ", statement.items),
                      statement.strided ? " strided" : "", "\n");
      lines(statement.lines);
      break;
    case Statement::Kind::kLeader:
      absl::StrAppend(out, indent, "leader\n");
      lines(statement.lines);
      break;
    case Statement::Kind::kReduce:
      absl::StrAppend(out, indent, "reduce ", statement.target, " = ", statement.monoid, " over lanes of ",
                      statement.source,
                      statement.count > 1 ? absl::StrCat(", ", statement.count, " of each") : "", "\n");
      break;
    case Statement::Kind::kBarrier:
      absl::StrAppend(out, indent, "barrier\n");
      break;
    case Statement::Kind::kZeroWait:
      absl::StrAppend(out, indent, "wait for zeros\n");
      break;
  }
}

}  // namespace

std::string ToString(const Kernel& kernel) {
  std::string out = absl::StrCat(
      "kernel ", kernel.name, "  // ", kernel.comment, "\n  threads ", kernel.threads,
      kernel.cluster_blocks > 1 ? absl::StrCat(" in clusters of ", kernel.cluster_blocks, " blocks") : "",
      "\n");
  for (const Parameter& parameter : kernel.parameters)
    absl::StrAppend(&out, "  parameter ", parameter.type, " ", parameter.name, "\n");
  if (kernel.uses_shared) absl::StrAppend(&out, "  shared ", kernel.shared_bytes, " bytes\n");
  if (kernel.kept_bytes > 0) absl::StrAppend(&out, "  kept ", kernel.kept_bytes, " bytes\n");
  for (const LaneVariable& variable : kernel.lane_variables)
    absl::StrAppend(&out, "  lane of the kernel ", variable.type, " ", variable.name, variable.extents, "\n");
  for (const Zeroed& zeroed : kernel.zeroed)
    absl::StrAppend(&out, "  zero ", zeroed.pointer, "[", zeroed.count, "] = ", zeroed.value, "\n");
  for (const Section& section : kernel.sections) {
    absl::StrAppend(&out, &section == &kernel.sections.front() ? "  " : "  grid barrier, then ",
                    "section, groups of ", section.group_threads, "\n");
    for (const LaneVariable& variable : section.lane_variables)
      absl::StrAppend(&out, "  lane ", variable.type, " ", variable.name, variable.extents,
                      variable.initial.empty() ? "" : absl::StrCat(" = ", variable.initial), "\n");
    for (const Statement& statement : section.body) Append(statement, 1, &out);
  }
  return out;
}

}  // namespace fusion::ir
