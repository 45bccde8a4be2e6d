// Random graphs survive every way of writing them down, and their hash depends on what they compute alone.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/parse/parse.h"

namespace fusion {
namespace {

// A random graph as statements, so that it can be written with other names and in another order.
struct RandomGraph {
  struct Call {
    int result;
    std::string function;
    std::vector<std::string> arguments;  // "#3": variable 3; otherwise a literal
    std::vector<int> needs;
  };
  std::vector<std::string> types;  // of each variable, with sizes "@m", "@n"
  int inputs = 0;
  std::vector<Call> calls;
  std::vector<int> outputs;

  // Statements in the given order; `prefix` begins all names; sizes are called m and n, or p and q.
  std::string Text(const std::vector<int>& order, const std::string& prefix, bool other_sizes) const {
    const auto rename = [&](std::string type) {
      const char* names[2][2] = {{"m", "n"}, {"p", "q"}};
      for (size_t at = type.find('@'); at != std::string::npos; at = type.find('@'))
        type.replace(at, 2, names[other_sizes][type[at + 1] == 'n']);
      return type;
    };
    const auto name = [&](int variable) { return absl::StrCat(prefix, variable); };
    std::string text = other_sizes ? "size q = 3, p;\n" : "size m; size n = 7;\n";
    for (size_t i = 0; i < types.size(); ++i) absl::StrAppend(&text, rename(types[i]), " ", name(i), ";\n");
    for (int i = 0; i < inputs; ++i) absl::StrAppend(&text, "input ", name(i), ";\n");
    for (int i : order) {
      std::vector<std::string> arguments;
      for (const std::string& argument : calls[i].arguments)
        arguments.push_back(argument[0] == '#' ? prefix + argument.substr(1) : argument);
      absl::StrAppend(&text, name(calls[i].result), " = ", calls[i].function, "(",
                      absl::StrJoin(arguments, ", "), ");\n");
    }
    std::vector<std::string> names;
    for (int output : outputs) names.push_back(name(output));
    return absl::StrCat(text, "return ", absl::StrJoin(names, ", "), ";\n");
  }
};

class Generator {
 public:
  explicit Generator(int seed) : random_(seed) {}

  RandomGraph Make() {
    for (const char* type : {"matrix[@m,@n]", "matrix[@m,@n,ld=77]", "matrix[@m,@n,ld=@n]", "vector[@m]",
                             "vector[@n]", "scalar", "MATRIX3x3", "SCALAR"})
      AddVariable(type);
    graph_.inputs = static_cast<int>(graph_.types.size());
    const int calls = Number(1, 30);
    for (int i = 0; i < calls; ++i) AddCall();
    // Every input and every result must be used: what is not becomes an operand or an output.
    for (int i = 0; i < graph_.inputs; ++i)
      if (!used_[i]) AddUnary(i);
    for (const RandomGraph::Call& call : graph_.calls)
      if (!used_[call.result] || Number(0, 4) == 0) graph_.outputs.push_back(call.result);
    std::shuffle(graph_.outputs.begin(), graph_.outputs.end(), random_);
    return graph_;
  }

  // A random order of the calls in which operands are computed first.
  std::vector<int> AnyOrder() {
    std::vector<int> order;
    std::vector<bool> done(graph_.types.size(), false);
    std::fill_n(done.begin(), graph_.inputs, true);
    std::vector<int> waiting(graph_.calls.size());
    std::iota(waiting.begin(), waiting.end(), 0);
    while (!waiting.empty()) {
      std::shuffle(waiting.begin(), waiting.end(), random_);
      const auto ready = std::find_if(waiting.begin(), waiting.end(), [&](int i) {
        const std::vector<int>& needs = graph_.calls[i].needs;
        return std::all_of(needs.begin(), needs.end(), [&](int need) { return done[need]; });
      });
      done[graph_.calls[*ready].result] = true;
      order.push_back(*ready);
      waiting.erase(ready);
    }
    return order;
  }

 private:
  int Number(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_); }

  int AddVariable(const std::string& type) {
    graph_.types.push_back(type);
    used_.push_back(false);
    return static_cast<int>(graph_.types.size()) - 1;
  }

  // A variable of a type; there is always one, an input.
  int Pick(const std::string& type) {
    std::vector<int> all;
    for (size_t i = 0; i < graph_.types.size(); ++i)
      if (graph_.types[i] == type) all.push_back(static_cast<int>(i));
    return all[Number(0, static_cast<int>(all.size()) - 1)];
  }

  // `operands` are types, or "?" for a literal or a scalar.
  void Call(const std::string& function, const std::vector<std::string>& operands,
            const std::string& result) {
    RandomGraph::Call call;
    call.function = function;
    for (const std::string& operand : operands) {
      if (operand == "?" && Number(0, 1) == 0) {
        const char* literals[] = {"1.0", "-2", "1e-3", "0.333333333333333314829616256247", "+7.5E2", ".5"};
        call.arguments.push_back(literals[Number(0, 5)]);
        continue;
      }
      const int variable = Pick(operand == "?" ? "scalar" : operand);
      used_[variable] = true;
      call.needs.push_back(variable);
      call.arguments.push_back(absl::StrCat("#", variable));
    }
    call.result = AddVariable(result);
    graph_.calls.push_back(call);
  }

  void AddUnary(int variable) {
    used_[variable] = true;
    const int result = AddVariable(graph_.types[variable]);
    graph_.calls.push_back({result, "exp", {absl::StrCat("#", variable)}, {variable}});
  }

  void AddCall() {
    const std::string A = "matrix[@m,@n]", u = "vector[@m]", v = "vector[@n]";
    switch (Number(0, 13)) {
      case 0:
        return Call("gemv", {"?", A, v}, u);
      case 1:
        return Call("gemtv", {"?", A, u, "?", v}, v);
      case 2:
        return Call("ger", {A, u, v}, A);
      case 3:
        return Call("dot", {u, u}, "scalar");
      case 4:
        return Call("axpy", {"?", v, v}, v);
      case 5:
        return Call("add", {A, A}, A);
      case 6:
        return Call("rowsum", {A}, u);
      case 7:
        return Call("colmul", {A, v}, A);
      case 8:
        return Call("scale", {"?", u}, u);
      case 9:
        return Call("mul", {"scalar", "?"}, "scalar");
      case 10:
        return Call("mmul33", {"MATRIX3x3", "MATRIX3x3"}, "MATRIX3x3");
      case 11:
        return Call("smmul", {"MATRIX3x3", "SCALAR"}, "MATRIX3x3");
      case 12:
        return Call("mtrace<3>", {"MATRIX3x3"}, "SCALAR");
      default:
        return Call("fma", {"SCALAR", "SCALAR", "SCALAR"}, "SCALAR");
    }
  }

  std::mt19937 random_;
  RandomGraph graph_;
  std::vector<bool> used_;
};

std::shared_ptr<const Graph> Parse(const v1::GraphSource& source) {
  auto library = Catalog::BuiltIn();
  EXPECT_TRUE(library.ok()) << library.status();
  auto graph = ParseSource(source, *library);
  EXPECT_TRUE(graph.ok()) << graph.status().message() << "\n" << source.fuse();
  return graph.ok() ? *graph : nullptr;
}

std::shared_ptr<const Graph> ParseText(const std::string& text) {
  v1::GraphSource source;
  source.set_fuse(text);
  source.set_file_name("random.fuse");
  return Parse(source);
}

class RandomGraphs : public ::testing::TestWithParam<int> {};

TEST_P(RandomGraphs, RoundTripAndHash) {
  for (int seed = GetParam() * 50; seed < GetParam() * 50 + 50; ++seed) {
    Generator generator(seed);
    const RandomGraph random = generator.Make();
    std::vector<int> order(random.calls.size());
    std::iota(order.begin(), order.end(), 0);
    const auto graph = ParseText(random.Text(order, "x", false));
    ASSERT_NE(graph, nullptr) << seed;
    const std::string printed = PrintFuse(*graph);

    const auto from_text = ParseText(printed);
    ASSERT_NE(from_text, nullptr) << seed;
    EXPECT_EQ(PrintFuse(*from_text), printed);

    v1::GraphSource message;
    *message.mutable_graph() = ToProto(*graph);
    const auto from_message = Parse(message);
    ASSERT_NE(from_message, nullptr) << seed;
    EXPECT_EQ(PrintFuse(*from_message), printed);
    EXPECT_EQ(from_message->name(), "random");
    EXPECT_EQ(ToProto(*from_message).SerializeAsString(), message.graph().SerializeAsString());

    const auto from_json = ParseText(PrintJson(*graph));
    ASSERT_NE(from_json, nullptr) << seed;
    EXPECT_EQ(PrintFuse(*from_json), printed);

    const auto other = ParseText(random.Text(generator.AnyOrder(), "other_", true));
    ASSERT_NE(other, nullptr) << seed;
    EXPECT_EQ(GraphHash(*other), GraphHash(*graph)) << seed;
    EXPECT_EQ(GraphHash(*from_message), GraphHash(*graph)) << seed;
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomGraphs, ::testing::Range(0, 10));

// Texts with random damage are graphs or errors with positions, never anything else.
TEST(DamagedTexts, GiveAGraphOrErrors) {
  std::mt19937 random(7);
  int errors = 0;
  for (int seed = 0; seed < 2000; ++seed) {
    Generator generator(seed % 40);
    const RandomGraph graph = generator.Make();
    std::vector<int> order(graph.calls.size());
    std::iota(order.begin(), order.end(), 0);
    std::string text = graph.Text(order, "x", false);
    for (int i = 0; i < 1 + seed % 3; ++i) {
      const size_t at = random() % text.size();
      const std::string_view pieces[] = {"",   ";",     ",",    "(", ")",    "/*",    "\n",
                                         "x1", "size ", "\xFF", "[", "= f(", "return"};
      text.replace(at, random() % 4, pieces[random() % std::size(pieces)]);
    }
    v1::GraphSource source;
    source.set_fuse(text);
    source.set_file_name("d.fuse");
    const auto result = ParseSource(source, *Catalog::BuiltIn());
    if (result.ok()) continue;
    ++errors;
    EXPECT_EQ(result.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(result.status().message().find("d.fuse:"), 0u) << result.status().message();
  }
  EXPECT_GT(errors, 1000);
}

}  // namespace
}  // namespace fusion
