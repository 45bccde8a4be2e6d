#include "library/catalog/definition_check.h"

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

namespace fusion {
namespace {

using ::testing::HasSubstr;

constexpr char kGemv[] = R"pb(
  name: "product"
  domain: "blas2"
  documentation: "Matrix times vector."
  overloads {
    form: REDUCE
    dimensions { name: "i" kind: PARALLEL }
    dimensions { name: "j" kind: REDUCTION }
    operands { name: "a" type: "scalar" }
    operands { name: "A" type: "matrix[i,j]" }
    operands { name: "x" type: "vector[j]" domain: NONZERO }
    result: "vector[i]"
    formula: "z = a * A * x"
    monoid: SUM
    term_routine: "product_term"
    term_operands: "A"
    term_operands: "x"
    finish_routine: "product_finish"
    finish_operands: "a"
    flops: "2"
  }
  source: "T product_term(T a, T x);  T product_finish (T acc, T extent, T a);"
)pb";

constexpr char kNorm[] = R"pb(
  name: "norm"
  domain: "elements"
  documentation: "Norm."
  overloads {
    form: ELEMENT
    operands { name: "v" type: "VECTOR<n>" }
    result: "SCALAR"
    formula: "s = |v|"
    static_parameters: "n"
    implementations { granularity: THREAD threads: ONE routine: "norm_thread" }
    constraint: "n <= 8"
    flops: "2*n"
  }
  source: "void norm_thread(const T* v, T* result) {}"
)pb";

v1::FunctionDefinition Parse(const char* text) {
  v1::FunctionDefinition definition;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &definition));
  return definition;
}

TEST(CheckDefinitionTest, ResolvesNamesToPositions) {
  absl::StatusOr<ElementaryFunction> function = CheckDefinition(Parse(kGemv), nullptr);
  ASSERT_TRUE(function.ok()) << function.status();
  const Overload& overload = function->overloads[0];
  EXPECT_EQ(overload.term_operands, (std::vector<int>{1, 2}));
  EXPECT_EQ(overload.finish_operands, (std::vector<int>{0}));
  EXPECT_EQ(overload.operands[1].pattern.dimensions, (std::vector<int>{0, 1}));
  EXPECT_EQ(overload.operands[2].domain, v1::NONZERO);
  EXPECT_EQ(overload.dimensions[1].kind, v1::REDUCTION);
  EXPECT_EQ(RoutineNames(overload), (std::vector<std::string>{"product_term", "product_finish"}));
  EXPECT_FALSE(function->is_inline);
}

TEST(CheckDefinitionTest, AbsentTermOperandsMeanAll) {
  v1::FunctionDefinition definition = Parse(kGemv);
  definition.mutable_overloads(0)->clear_term_operands();
  EXPECT_EQ(CheckDefinition(definition, nullptr)->overloads[0].term_operands, (std::vector<int>{0, 1, 2}));
}

TEST(CheckDefinitionTest, ElementFunctions) {
  absl::StatusOr<ElementaryFunction> function = CheckDefinition(Parse(kNorm), nullptr);
  ASSERT_TRUE(function.ok()) << function.status();
  EXPECT_EQ(function->overloads[0].implementations[0].routine, "norm_thread");
  EXPECT_EQ(function->overloads[0].static_parameters, (std::vector<std::string>{"n"}));
}

// Each row breaks one thing in a description that is right otherwise.
struct Mistake {
  const char* name;
  const char* base;
  void (*make)(v1::FunctionDefinition*);
  const char* message;
};
void PrintTo(const Mistake& mistake, std::ostream* out) { *out << mistake.name; }

class MistakeTest : public ::testing::TestWithParam<Mistake> {};

TEST_P(MistakeTest, IsAnError) {
  v1::FunctionDefinition definition = Parse(GetParam().base);
  ASSERT_TRUE(CheckDefinition(definition, nullptr).ok());
  GetParam().make(&definition);
  absl::StatusOr<ElementaryFunction> function = CheckDefinition(definition, nullptr);
  EXPECT_EQ(function.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(function.status().message()), HasSubstr(GetParam().message));
}

using F = v1::FunctionDefinition;
const Mistake kMistakes[] = {
    {"Name", kGemv, [](F* f) { f->set_name("2x"); }, "the name must be an identifier"},
    {"Domain", kGemv, [](F* f) { f->clear_domain(); }, "the domain is missing"},
    {"Documentation", kGemv, [](F* f) { f->clear_documentation(); }, "the documentation is missing"},
    {"NoOverloads", kGemv, [](F* f) { f->clear_overloads(); }, "has no overloads"},
    {"Formula", kGemv, [](F* f) { f->mutable_overloads(0)->clear_formula(); }, "the formula is missing"},
    {"NoOperands", kGemv, [](F* f) { f->mutable_overloads(0)->clear_operands(); }, "has no operands"},
    {"OperandTwice", kGemv, [](F* f) { f->mutable_overloads(0)->mutable_operands(1)->set_name("a"); },
     "operand \"a\" must be an identifier of its own"},
    {"DimensionTwice", kGemv, [](F* f) { f->mutable_overloads(0)->mutable_dimensions(1)->set_name("i"); },
     "dimension \"i\" must be an identifier of its own"},
    {"Pattern", kGemv, [](F* f) { f->mutable_overloads(0)->mutable_operands(1)->set_type("matrix[i,q]"); },
     "\"q\" is not one of the dimensions"},
    {"ElementInReduce", kGemv,
     [](F* f) { f->mutable_overloads(0)->mutable_operands(1)->set_type("VECTOR<3>"); },
     "does not suit form REDUCE"},
    {"ResultWithReduction", kGemv, [](F* f) { f->mutable_overloads(0)->set_result("vector[j]"); },
     "dimension i is parallel, so it must be in the result"},
    {"NoReduction", kGemv,
     [](F* f) { f->mutable_overloads(0)->mutable_dimensions(1)->set_kind(v1::PARALLEL); },
     "dimension j is parallel, so it must be in the result"},
    {"UnboundDimension", kGemv,
     [](F* f) { f->mutable_overloads(0)->mutable_operands(1)->set_type("vector[j]"); },
     "dimension i is in no operand"},
    {"Monoid", kGemv, [](F* f) { f->mutable_overloads(0)->clear_monoid(); }, "the monoid is missing"},
    {"TermRoutine", kGemv, [](F* f) { f->mutable_overloads(0)->set_term_routine("product"); },
     "routine \"product\" is not defined in the source"},
    {"TermOperand", kGemv, [](F* f) { f->mutable_overloads(0)->set_term_operands(0, "B"); },
     "term_operands names \"B\", which is not an operand"},
    {"FinishOperand", kGemv, [](F* f) { f->mutable_overloads(0)->set_finish_operands(0, "q"); },
     "finish_operands names \"q\", which is not an operand"},
    {"PartWithoutFinish", kGemv,
     [](F* f) {
       f->mutable_overloads(0)->clear_finish_routine();
       f->mutable_overloads(0)->set_part_routine("product_finish");
     },
     "only a SUM with a finish_routine can have a part_routine"},
    {"PartOfMaximum", kGemv,
     [](F* f) {
       f->mutable_overloads(0)->set_monoid(v1::MAX);
       f->mutable_overloads(0)->set_part_routine("product_finish");
     },
     "only a SUM with a finish_routine can have a part_routine"},
    {"PartIsMissing", kGemv, [](F* f) { f->mutable_overloads(0)->set_part_routine("product_part"); },
     "product_part"},
    {"FinishAlongReduction", kGemv, [](F* f) { f->mutable_overloads(0)->set_finish_operands(0, "x"); },
     "operand x has the reduction dimension j"},
    {"Flops", kGemv, [](F* f) { f->mutable_overloads(0)->set_flops("2*n"); }, "flops: unknown name \"n\""},
    {"NegativeFlops", kGemv, [](F* f) { f->mutable_overloads(0)->set_flops("-1"); },
     "flops must not be negative"},
    {"CollectionConstraint", kGemv, [](F* f) { f->mutable_overloads(0)->set_constraint("i < j"); },
     "must compare two dimensions, as in \"i == j\""},
    {"LongSource", kGemv, [](F* f) { f->mutable_source()->append(1 << 20, ' '); },
     "the source is longer than"},
    {"Form", kNorm, [](F* f) { f->mutable_overloads(0)->clear_form(); },
     "does not suit form FORM_UNSPECIFIED"},
    {"Granularity", kNorm,
     [](F* f) { f->mutable_overloads(0)->mutable_implementations(0)->clear_granularity(); },
     "the granularity is missing"},
    {"ThreadsOfThread", kNorm,
     [](F* f) { f->mutable_overloads(0)->mutable_implementations(0)->set_threads(v1::PER_RESULT_ENTRY); },
     "granularity THREAD goes with threads ONE"},
    {"NoImplementations", kNorm, [](F* f) { f->mutable_overloads(0)->clear_implementations(); },
     "an ELEMENT needs implementations"},
    {"ConditionsEverywhere", kNorm,
     [](F* f) { f->mutable_overloads(0)->mutable_implementations(0)->add_data_types(v1::F64); },
     "the first implementation must be without constraint and data_types"},
    {"ConstraintOfImplementation", kNorm,
     [](F* f) {
       auto* overload = f->mutable_overloads(0);
       *overload->add_implementations() = overload->implementations(0);
       overload->mutable_implementations(1)->set_constraint("n >=");
     },
     "constraint: "},
    {"DataTypeOfImplementation", kNorm,
     [](F* f) {
       auto* overload = f->mutable_overloads(0);
       *overload->add_implementations() = overload->implementations(0);
       overload->mutable_implementations(1)->add_data_types(v1::DATA_TYPE_UNSPECIFIED);
     },
     "data_types must be F32 or F64"},
    {"UndeclaredParameter", kNorm, [](F* f) { f->mutable_overloads(0)->clear_static_parameters(); },
     "\"n\" is missing from static_parameters"},
    {"UnusedParameter", kNorm, [](F* f) { f->mutable_overloads(0)->add_static_parameters("k"); },
     "static parameter k is in no operand"},
    {"UnboundResult", kNorm, [](F* f) { f->mutable_overloads(0)->set_result("VECTOR<k>"); },
     "static parameter k of the result is in no operand"},
    {"Constraint", kNorm, [](F* f) { f->mutable_overloads(0)->set_constraint("n"); },
     "constraint: a comparison"},
    {"ScalarsOnly", kNorm,
     [](F* f) {
       f->mutable_overloads(0)->mutable_operands(0)->set_type("scalar");
       f->mutable_overloads(0)->clear_static_parameters();
     },
     "at least one operand must be more than a scalar"},
};
INSTANTIATE_TEST_SUITE_P(All, MistakeTest, ::testing::ValuesIn(kMistakes),
                         [](const auto& info) { return info.param.name; });

// A routine's name in a longer word, or not followed by "(", is not its definition.
TEST(CheckDefinitionTest, RoutinesAreFoundAsWholeWords) {
  for (const char* source :
       {"void my_norm_thread(int);", "void norm_threads(int);", "norm_thread;", "norm_thread"}) {
    v1::FunctionDefinition definition = Parse(kNorm);
    definition.set_source(source);
    EXPECT_FALSE(CheckDefinition(definition, nullptr).ok()) << source;
    definition.set_source(std::string(source) + " void norm_thread\n(const T* v, T* result);");
    EXPECT_TRUE(CheckDefinition(definition, nullptr).ok()) << source;
  }
}

TEST(CheckDefinitionTest, PlaceOfTheMistakeComesFirst) {
  v1::FunctionDefinition definition = Parse(kGemv);
  definition.mutable_overloads(0)->set_term_operands(1, "B");
  DefinitionLocator locate = [](const DefinitionPlace& place) {
    return place.field + "/" + std::to_string(place.overload) + "/" + std::to_string(place.index);
  };
  EXPECT_EQ(CheckDefinition(definition, locate).status().message(),
            "term_operands/0/1: function \"product\", overload 1: term_operands names \"B\", which is not an "
            "operand");
}

TEST(ParseEqualDimensionsTest, Pairs) {
  std::vector<Dimension> dimensions = {{"i"}, {"j"}};
  using Pairs = std::vector<std::pair<int, int>>;
  EXPECT_EQ(ParseEqualDimensions("", dimensions).value(), Pairs{});
  EXPECT_EQ(ParseEqualDimensions("i == j", dimensions).value(), (Pairs{{0, 1}}));
  EXPECT_EQ(ParseEqualDimensions("j==i && i == j", dimensions).value(), (Pairs{{1, 0}, {0, 1}}));
  for (const char* text : {"i", "i == k", "i == 3", "i == j == i", "i == j &&"}) {
    EXPECT_FALSE(ParseEqualDimensions(text, dimensions).ok()) << text;
  }
}

}  // namespace
}  // namespace fusion
