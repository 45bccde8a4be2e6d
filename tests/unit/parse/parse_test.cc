#include "server/parse/parse.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "google/rpc/error_details.pb.h"
#include "server/parse/error_list.h"
#include "tests/unit/parse/source.h"

namespace fusion {
namespace {

using testing::Errors;
using testing::ParseMessage;
using testing::ParseText;
using testing::TextErrors;

constexpr char kSmall[] = "SCALAR x, y;\ninput x;\ny = neg(x);\nreturn y;\n";

std::string NameOf(const std::string& file_name) {
  auto graph = ParseText(kSmall, file_name);
  return graph.ok() ? (*graph)->name() : graph.status().ToString();
}

TEST(ParseSource, NamesTheGraphAfterTheFile) {
  EXPECT_EQ(NameOf("function1.fuse"), "function1");
  EXPECT_EQ(NameOf("a/b.c/my graph.v2.fuse"), "my_graph_v2");
  EXPECT_EQ(NameOf("C:\\x\\2d-heat.fuse"), "_2d_heat");
  EXPECT_EQ(NameOf(""), "graph");
  EXPECT_EQ(NameOf("..."), "graph");
  EXPECT_EQ(NameOf("é.fuse"), "graph");
  EXPECT_EQ(NameOf("plain"), "plain");
}

TEST(ParseSource, EmptyFiles) {
  const std::string message =
      "f.fuse:1:1: error: the file is empty; declare variables, input some, compute others and return what "
      "is wanted";
  EXPECT_EQ(TextErrors(""), message);
  EXPECT_EQ(TextErrors("  \n\n// nothing\n;;"), message);
  EXPECT_EQ(Errors(ParseText("", "")), absl::StrCat("<submission>", message.substr(6)));
}

TEST(ParseSource, LimitOfBytes) {
  ParseOptions options;
  EXPECT_EQ(Errors(ParseText(std::string(10'000'000, ' '), "f.fuse", options)),
            "f.fuse: error: the file has 10000000 bytes; the limit of this server is 4 MiB");
  options.max_bytes = sizeof(kSmall) - 1;
  EXPECT_TRUE(ParseText(kSmall, "f.fuse", options).ok());
  options.max_bytes -= 1;
  EXPECT_EQ(Errors(ParseText(kSmall, "f.fuse", options)),
            "f.fuse: error: the file has 44 bytes; the limit of this server is 43 bytes");
  auto graph = ParseText(kSmall);
  ASSERT_TRUE(graph.ok());
  options.max_message_bytes = 10;
  EXPECT_TRUE(absl::StrContains(Errors(ParseMessage(ToProto(**graph), "f.pb", options)),
                                "bytes; the limit of this server is 10 bytes"));
}

std::string Chain(int nodes) {
  std::string text = "size n;\nvector[n] x0";
  for (int i = 1; i <= nodes; ++i) absl::StrAppend(&text, ",x", i);
  absl::StrAppend(&text, ";\ninput x0;\n");
  for (int i = 1; i <= nodes; ++i) absl::StrAppend(&text, "x", i, "=vadd(x", i - 1, ",x", i / 2, ");\n");
  return absl::StrCat(text, "return x", nodes, ";\n");
}

TEST(ParseSource, LimitOfNodes) {
  auto largest = ParseText(Chain(100000));
  ASSERT_TRUE(largest.ok()) << largest.status().message().substr(0, 200);
  EXPECT_EQ((*largest)->node_count(), 100000);
  EXPECT_EQ(TextErrors(Chain(100001)),
            "f.fuse:100004:1: error: the graph has more than 100000 calls, the limit of this server");
  v1::Graph message;
  for (int i = 0; i < 11; ++i) message.add_calls();
  ParseOptions options;
  options.max_nodes = 10;
  EXPECT_EQ(Errors(ParseMessage(message, "f.pb", options)),
            "f.pb:calls[10]: error: the graph has more than 10 calls, the limit of this server");
}

TEST(ParseSource, ReportsAHundredErrorsAndCountsTheRest) {
  std::string text = "SCALAR x;\ninput x;\n";
  for (int i = 0; i < 117; ++i) absl::StrAppend(&text, "y", i, " = neg(x, x);\n");
  absl::StrAppend(&text, "return");
  for (int i = 0; i < 117; ++i) absl::StrAppend(&text, i ? ", y" : " y", i);
  // Two errors for each line: the call and the name that is not declared.
  const std::vector<std::string> lines = absl::StrSplit(TextErrors(text + ";\n"), '\n');
  ASSERT_EQ(lines.size(), 101u);
  EXPECT_EQ(lines[0], "f.fuse:3:1: error: y0 is not declared; declare it with its type");
  EXPECT_EQ(lines[1], "f.fuse:3:6: error: the call has 2 operands; write neg(x)");
  EXPECT_EQ(lines[98], "f.fuse:52:1: error: y49 is not declared; declare it with its type");
  EXPECT_EQ(lines[100], "f.fuse: error: and 134 more errors");
}

TEST(ParseSource, PayloadHasAViolationForEachError) {
  const absl::Status status =
      ParseText("SCALAR x, y;\ninput x;\ny = foo(q);\nreturn y;\n", "d/f.fuse").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  const auto payload = status.GetPayload("type.googleapis.com/google.rpc.BadRequest");
  ASSERT_TRUE(payload.has_value());
  google::rpc::BadRequest details;
  ASSERT_TRUE(details.ParseFromString(std::string(*payload)));
  ASSERT_EQ(details.field_violations_size(), 3);
  EXPECT_EQ(details.field_violations(0).field(), "d/f.fuse:2:7");
  EXPECT_EQ(details.field_violations(1).field(), "d/f.fuse:3:5");
  EXPECT_EQ(details.field_violations(1).description(),
            "unknown function foo; fusion-client library list shows all functions");
  EXPECT_EQ(details.field_violations(2).field(), "d/f.fuse:3:9");
}

TEST(ErrorList, IsOkWhenEmpty) {
  ErrorList errors("f");
  EXPECT_TRUE(errors.ToStatus().ok());
  errors.Add(Location{}, "wrong");
  EXPECT_EQ(errors.ToStatus().message(), "f: error: wrong");
}

TEST(ErrorList, KeepsMessagesInLines) {
  ErrorList errors("a\nb");
  errors.Add(Location::At(1, 2), "wrong");
  EXPECT_EQ(errors.ToStatus().message(), "a?b:1:2: error: wrong");
}

}  // namespace
}  // namespace fusion
