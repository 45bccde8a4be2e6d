// Graphs as messages and as text, nearly right: of the 2,000 of the promise these are the larger part.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "server/parse/parse.h"
#include "tests/fault/long_form.h"
#include "tests/fault/malformed/attacked_server.h"
#include "tests/fault/malformed/mutation.h"
#include "tests/folders.h"

namespace fusion {
namespace {

// Larger graphs are left as they were: a few MB are enough.
constexpr size_t kMostBytes = 4 << 20;

std::vector<std::string> Examples() {
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::directory_iterator(testing::SourceFolder() + "/examples"))
    if (entry.path().extension() == ".fuse") paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  std::vector<std::string> texts;
  for (const std::string& path : paths) {
    std::ifstream file(path);
    std::ostringstream text;
    text << file.rdbuf();
    texts.push_back(text.str());
  }
  return texts;
}

std::vector<v1::Graph> ExampleGraphs() {
  std::vector<v1::Graph> graphs;
  for (const std::string& text : Examples()) {
    v1::GraphSource source;
    source.set_fuse(text);
    const auto graph = ParseSource(source, *Catalog::BuiltIn());
    EXPECT_TRUE(graph.ok()) << graph.status();
    if (graph.ok()) graphs.push_back(ToProto(**graph));
  }
  return graphs;
}

// What is wrong with a graph in ways that fields changed at random seldom are.
struct Wrong {
  const char* name;
  std::function<void(v1::Graph&, Mutation&)> make;
};

v1::Call& AnyCall(v1::Graph& graph, Mutation& mutation) {
  return graph.calls_size() == 0 ? *graph.add_calls()
                                 : *graph.mutable_calls(mutation.Below(graph.calls_size()));
}
v1::VariableDeclaration& AnyVariable(v1::Graph& graph, Mutation& mutation) {
  return graph.variables_size() == 0 ? *graph.add_variables()
                                     : *graph.mutable_variables(mutation.Below(graph.variables_size()));
}

const std::vector<Wrong>& Wrongs() {
  using G = v1::Graph;
  using M = Mutation;
  static const std::vector<Wrong> wrongs = {
      {"dangling argument", [](G& g, M& m) { AnyCall(g, m).add_arguments()->set_variable("nobody"); }},
      {"dangling output", [](G& g, M&) { g.add_outputs("nobody"); }},
      {"dangling input", [](G& g, M&) { g.add_inputs("nobody"); }},
      {"self-edge",
       [](G& g, M& m) {
         v1::Call& c = AnyCall(g, m);
         for (auto& a : *c.mutable_arguments()) a.set_variable(c.result());
       }},
      {"cycle",
       [](G& g, M& m) { AnyCall(g, m).add_arguments()->set_variable(g.calls(g.calls_size() - 1).result()); }},
      {"backward",
       [](G& g, M&) { std::reverse(g.mutable_calls()->pointer_begin(), g.mutable_calls()->pointer_end()); }},
      {"too few arguments",
       [](G& g, M& m) {
         v1::Call& c = AnyCall(g, m);
         if (c.arguments_size() > 0) c.mutable_arguments()->RemoveLast();
       }},
      {"no arguments", [](G& g, M& m) { AnyCall(g, m).clear_arguments(); }},
      {"argument of no kind", [](G& g, M& m) { AnyCall(g, m).add_arguments(); }},
      {"thousands of arguments",
       [](G& g, M& m) {
         v1::Call& c = AnyCall(g, m);
         for (int i = 0; i < 20000; ++i) c.add_arguments()->set_literal(i);
       }},
      {"literal that is no number",
       [](G& g, M& m) { AnyCall(g, m).add_arguments()->set_literal(m.Number()); }},
      {"result twice",
       [](G& g, M& m) {
         const v1::Call call = AnyCall(g, m);
         *g.add_calls() = call;
       }},
      {"variable twice",
       [](G& g, M& m) {
         const v1::VariableDeclaration v = AnyVariable(g, m);
         *g.add_variables() = v;
       }},
      {"computed input", [](G& g, M& m) { g.add_inputs(AnyCall(g, m).result()); }},
      {"output twice",
       [](G& g, M&) {
         if (g.outputs_size() > 0) g.add_outputs(std::string(g.outputs(0)));
       }},
      {"size twice",
       [](G& g, M&) {
         if (g.sizes_size() > 0) {
           const v1::SizeDeclaration s = g.sizes(0);
           *g.add_sizes() = s;
         }
       }},
      {"size value",
       [](G& g, M& m) {
         for (auto& s : *g.mutable_sizes()) s.set_default_value(m.Integer());
       }},
      {"constant extent",
       [](G& g, M& m) {
         for (auto& e : *AnyVariable(g, m).mutable_type()->mutable_extents()) e.set_constant(m.Integer());
       }},
      {"unknown size",
       [](G& g, M& m) { AnyVariable(g, m).mutable_type()->add_extents()->set_size("nothing"); }},
      {"hundreds of dimensions",
       [](G& g, M& m) {
         for (int i = 0; i < 300; ++i) AnyVariable(g, m).mutable_type()->add_extents()->set_constant(2);
       }},
      {"extent of no kind", [](G& g, M& m) { AnyVariable(g, m).mutable_type()->add_extents(); }},
      {"element shape",
       [](G& g, M& m) {
         auto* t = AnyVariable(g, m).mutable_type();
         t->set_mapped(true);
         t->add_element_shape(static_cast<int>(m.Integer()));
       }},
      {"leading dimension",
       [](G& g, M& m) {
         AnyVariable(g, m).mutable_type()->mutable_leading_dimension()->set_constant(m.Integer());
       }},
      {"unknown data type",
       [](G& g, M& m) { AnyVariable(g, m).mutable_type()->set_data_type(static_cast<v1::DataType>(77)); }},
      {"other data type", [](G& g, M& m) { AnyVariable(g, m).mutable_type()->set_data_type(v1::F64); }},
      {"empty name", [](G& g, M& m) { AnyVariable(g, m).clear_name(); }},
      {"name with odd characters", [](G& g, M& m) { AnyVariable(g, m).set_name(m.Text()); }},
      {"empty function", [](G& g, M& m) { AnyCall(g, m).clear_function(); }},
      {"function with a huge parameter",
       [](G& g, M& m) { AnyCall(g, m).set_function("mmul<99999999999999999999>"); }},
      {"function of a deep name",
       [](G& g, M& m) { AnyCall(g, m).set_function("mmul" + std::string(100000, '<')); }},
      {"enormous name", [](G& g, M& m) { AnyVariable(g, m).set_name(std::string(1 << 20, 'v')); }},
      {"enormous function", [](G& g, M& m) { AnyCall(g, m).set_function(std::string(1 << 20, 'f')); }},
      {"thousands of variables",
       [](G& g, M&) {
         for (int i = 0; i < 20000; ++i) g.add_variables()->set_name(absl::StrCat("v", i));
       }},
      {"thousands of calls",
       [](G& g, M& m) {
         const v1::Call call = AnyCall(g, m);
         for (int i = 0; i < 5000; ++i) *g.add_calls() = call;
       }},
      {"thousands of sizes",
       [](G& g, M&) {
         for (int i = 0; i < 20000; ++i) g.add_sizes()->set_name(absl::StrCat("s", i));
       }},
      {"nothing at all", [](G& g, M&) { g.Clear(); }},
      {"no outputs", [](G& g, M&) { g.clear_outputs(); }},
      {"no calls", [](G& g, M&) { g.clear_calls(); }},
      {"inline function without a routine",
       [](G& g, M& m) {
         auto* f = g.add_functions();
         f->set_name("vadd");
         m.Fields(f);
       }},
      {"inline function of a deep constraint",
       [](G& g, M&) {
         auto* f = g.add_functions();
         f->set_name("deep");
         auto* o = f->add_overloads();
         o->set_form(v1::ELEMENT);
         o->add_static_parameters("n");
         o->set_flops(std::string(50000, '(') + "n" + std::string(50000, ')'));
         o->set_constraint(std::string(50000, '(') + "n >= 2");
         o->add_operands()->set_type("VECTOR<n>");
         o->set_result("VECTOR<n>");
       }},
  };
  return wrongs;
}

class MalformedGraphs : public AttackedServer {
 protected:
  // By turns checked, submitted and, of eight, one explained, which is the search itself.
  void Send(const v1::GraphSource& source, int number, const std::string& what) {
    v1::GraphSource readable;
    const bool decodable = readable.ParseFromString(source.SerializeAsString());
    if (number % 8 == 7) {
      v1::ExplainRequest request;
      *request.mutable_source() = source;
      request.set_target(v1::HOST);
      request.set_candidates(2);
      Attack("/fusion.v1.OptimizerService/Explain", {request.SerializeAsString()}, decodable, what);
    } else if (number % 2 == 0) {
      v1::SubmitRequest request;
      *request.mutable_source() = source;
      request.set_target(v1::HOST);
      Attack("/fusion.v1.OptimizerService/Submit", {request.SerializeAsString()}, decodable, what);
    } else {
      v1::CheckRequest request;
      *request.mutable_source() = source;
      request.set_brief(number % 4 == 1);
      Attack("/fusion.v1.OptimizerService/Check", {request.SerializeAsString()}, decodable, what);
    }
  }
};

TEST_F(MalformedGraphs, EachWayToBeWrongInEachExample) {
  const std::vector<v1::Graph> examples = ExampleGraphs();
  Mutation mutation(1);
  int number = 0;
  for (size_t i = 0; i < Wrongs().size(); ++i)
    for (int again = 0; again < Count(6, 20); ++again) {
      v1::GraphSource source;
      *source.mutable_graph() = examples[(i * 7 + static_cast<size_t>(again)) % examples.size()];
      Wrongs()[i].make(*source.mutable_graph(), mutation);
      Send(source, number++, Wrongs()[i].name);
    }
  EXPECT_GE(number, 234);
}

TEST_F(MalformedGraphs, FieldsAtRandom) {
  const std::vector<v1::Graph> examples = ExampleGraphs();
  for (int seed = 0; seed < Count(400, 4000); ++seed) {
    Mutation mutation(1000 + seed);
    v1::GraphSource source;
    *source.mutable_graph() = examples[static_cast<size_t>(seed) % examples.size()];
    for (int changes = mutation.Below(3); changes >= 0; --changes) mutation.Fields(&source);
    if (source.ByteSizeLong() > kMostBytes) continue;
    Send(source, seed, absl::StrCat("seed ", seed));
  }
}

TEST_F(MalformedGraphs, TextsOfExamplesWithChanges) {
  const std::vector<std::string> examples = Examples();
  for (int seed = 0; seed < Count(600, 6000); ++seed) {
    Mutation mutation(5000 + seed);
    v1::GraphSource source;
    std::string text = mutation.Words(examples[static_cast<size_t>(seed) % examples.size()]);
    // What is no UTF-8 goes no further than protobuf, so most of it is made readable.
    if (!mutation.OneIn(8))
      for (char& c : text)
        if (static_cast<unsigned char>(c) >= 0x80) c = '~';
    if (mutation.OneIn(10)) (*source.mutable_size_values())[mutation.Text()] = mutation.Integer();
    if (mutation.OneIn(20)) source.set_file_name(mutation.Text());
    source.set_fuse(std::move(text));
    Send(source, seed, absl::StrCat("seed ", seed));
  }
}

TEST_F(MalformedGraphs, TextsThatAreDeepOrLong) {
  int number = 0;
  const std::string head = "size n = 8;\nvector[n] x, z;\ninput x;\n";
  for (const char* open :
       {"(", "[", "{", "<", "vadd(x, ", "-", "!", "/*", "//", "\"", "{\"a\":", "[[", "mmul<"})
    for (int times : {1000, 100000, 500000}) {
      std::string text;
      for (int i = 0; i < times && text.size() < kMostBytes; ++i) text += open;
      for (const std::string& before : {std::string(), head + "z = ", std::string("size n = ")}) {
        v1::GraphSource source;
        source.set_fuse(before + text);
        Send(source, number++, absl::StrCat(before.size(), " bytes, then ", times, " times ", open));
      }
    }
  EXPECT_GE(number, 100);
}

}  // namespace
}  // namespace fusion
