// Every routine of the library against an independent reference, over all overloads, implementations and data
// types.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <random>

#include "library/catalog/catalog.h"
#include "library/catalog/definition_check.h"
#include "library/catalog/resolve.h"
#include "tests/property/functions/host_interpreter.h"
#include "tests/property/functions/operand_shapes.h"
#include "tests/property/functions/routine_table.h"
#include "tests/reference/reference_functions.h"

namespace fusion::testing {
namespace {

const Catalog& Library() {
  static const std::shared_ptr<const Catalog> catalog = Catalog::BuiltIn().value();
  return *catalog;
}

template <class T>
constexpr DataType kDataType = std::is_same_v<T, float> ? v1::F32 : v1::F64;
template <class T>
const Precision& PrecisionOf() {
  return std::is_same_v<T, float> ? kF32Precision : kF64Precision;
}

template <class T>
std::vector<T> RandomEntries(const Type& type, int64_t elements, v1::ValueDomain domain,
                             std::mt19937_64* generator) {
  std::uniform_real_distribution<double> real(-2, 2), positive(0.01, 4);
  std::vector<T> entries(type.Entries({{kElementsSize, elements}}));
  for (T& entry : entries) {
    double value = domain == v1::POSITIVE ? positive(*generator) : real(*generator);
    if (domain == v1::NONZERO) value += value < 0 ? -0.25 : 0.25;
    if (domain == v1::CONDITION) value = value < 0;
    entry = static_cast<T>(value);
  }
  // Matrices to be inverted: a heavy diagonal, so that rounding does not decide.
  bool square = type.element_shape.size() == 2 && type.element_shape[0] == type.element_shape[1];
  if (domain == v1::NONZERO && square) {
    int n = type.element_shape[0];
    for (size_t e = 0; e < entries.size(); ++e) {
      if (e % (n * n) % (n + 1) == 0) entries[e] += static_cast<T>(3 * n);
    }
  }
  return entries;
}

template <class T>
struct Operands {
  std::vector<Type> types;
  std::vector<std::vector<T>> entries;
  int64_t elements = 1;
};

// Resolves, interprets with every implementation, and compares with the reference.
template <class T>
void ExpectAgreement(const ElementaryFunction& function, const Operands<T>& operands) {
  std::vector<std::optional<Type>> types(operands.types.begin(), operands.types.end());
  absl::StatusOr<ResolvedCall> call = ResolveCall(function, types, "");
  ASSERT_TRUE(call.ok()) << call.status();
  std::vector<ReferenceValue> reference_operands;
  double length = 1;
  for (size_t o = 0; o < operands.types.size(); ++o) {
    reference_operands.push_back(ToReference(operands.types[o], operands.elements, operands.entries[o]));
    for (int extent : operands.types[o].element_shape) length = std::max<double>(length, extent);
  }
  for (const ResolvedDimension& dimension : call->dimensions) {
    if (dimension.kind == v1::REDUCTION) length = std::max<double>(length, dimension.extent.constant);
  }
  absl::StatusOr<ReferenceValue> expected = EvaluateReference(function.name, reference_operands);
  ASSERT_TRUE(expected.ok()) << expected.status();
  HostCall<T> host{&*call, operands.types, operands.entries, operands.elements, 0};
  do {
    absl::StatusOr<std::vector<T>> actual = Interpret(host);
    ASSERT_TRUE(actual.ok()) << actual.status();
    ASSERT_EQ(actual->size(), expected->entries.size());
    for (size_t e = 0; e < actual->size(); ++e) {
      ASSERT_TRUE(Agrees((*actual)[e], expected->entries[e], expected->magnitude[e], 8 + 2 * length,
                         PrecisionOf<T>()))
          << function.name << " implementation " << host.implementation << " of "
          << operands.types[0].ToString() << ": entry " << e << " is " << (*actual)[e] << ", expected "
          << expected->entries[e];
    }
    ++host.implementation;
  } while (host.implementation < static_cast<int>(call->overload->implementations.size()));
}

// Static parameters for which all implementations of an overload are compiled.
std::vector<StaticParameters> Instances(const Overload& overload) {
  std::vector<StaticParameters> instances;
  if (overload.implementations.empty()) return instances;
  auto it = ElementRoutines().find(overload.implementations[0].routine);
  if (it == ElementRoutines().end()) return instances;
  for (const auto& [parameters, routine] : it->second) instances.push_back(parameters);
  return instances;
}

std::mt19937_64 GeneratorFor(const std::string& name) {
  std::seed_seq seed(name.begin(), name.end());
  return std::mt19937_64(seed);
}

template <class T>
void ExpectRandomAgreement(const ElementaryFunction& function) {
  std::mt19937_64 generator = GeneratorFor(function.name);
  for (const Overload& overload : function.overloads) {
    std::vector<OperandShapes> all = ShapesOf(overload, kDataType<T>, Instances(overload));
    ASSERT_GE(all.size(), 4u);
    for (const OperandShapes& shapes : all) {
      Operands<T> operands{.types = shapes.types, .elements = shapes.elements};
      for (size_t o = 0; o < shapes.types.size(); ++o) {
        operands.entries.push_back(
            RandomEntries<T>(shapes.types[o], shapes.elements, overload.operands[o].domain, &generator));
      }
      ExpectAgreement<T>(function, operands);
      if (::testing::Test::HasFatalFailure()) return;
    }
  }
}

// ---- Nothing is forgotten ----

TEST(FunctionTableTest, EveryFunctionHasAReferenceAndEveryReferenceAFunction) {
  std::vector<std::string> names;
  for (const ElementaryFunction* function : Library().functions()) names.push_back(function->name);
  EXPECT_EQ(names, ReferenceFunctionNames());
}

TEST(FunctionTableTest, EveryRoutineIsCompiledWithTheRightArguments) {
  for (const ElementaryFunction* function : Library().functions()) {
    for (const Overload& overload : function->overloads) {
      auto expect = [&](const std::string& name, size_t arguments) {
        auto it = EntryRoutines().find(name);
        ASSERT_TRUE(it != EntryRoutines().end()) << name << " is missing from routine_table.cc";
        EXPECT_EQ(it->second.arguments, static_cast<int>(arguments)) << name;
      };
      if (!overload.routine.empty()) expect(overload.routine, overload.operands.size());
      if (!overload.term_routine.empty()) expect(overload.term_routine, overload.term_operands.size());
      if (!overload.finish_routine.empty())
        expect(overload.finish_routine, 2 + overload.finish_operands.size());
      if (!overload.part_routine.empty()) expect(overload.part_routine, 2 + overload.finish_operands.size());
      for (const Implementation& implementation : overload.implementations) {
        auto it = ElementRoutines().find(implementation.routine);
        ASSERT_TRUE(it != ElementRoutines().end())
            << implementation.routine << " is missing from element_routine_table.cc";
        EXPECT_GE(it->second.size(), overload.static_parameters.empty() ? 1u : 3u) << implementation.routine;
        EXPECT_EQ(it->second.size(), Instances(overload).size()) << implementation.routine;
      }
    }
  }
}

// What adding parts to the result itself rests on: finish(x + y, ...) = part(x, ...) + finish(y, ...).
TEST(FunctionTableTest, PartsOfASumAddUpToTheFinishedSum) {
  std::mt19937_64 generator(7);
  std::uniform_real_distribution<double> real(-2, 2);
  int checked = 0;
  for (const ElementaryFunction* function : Library().functions())
    for (const Overload& overload : function->overloads) {
      if (overload.part_routine.empty()) continue;
      const auto finish = EntryRoutines().at(overload.finish_routine).f64,
                 part = EntryRoutines().at(overload.part_routine).f64;
      for (int trial = 0; trial < 100; ++trial) {
        std::vector<double> arguments(2 + overload.finish_operands.size());
        for (double& argument : arguments) argument = real(generator);
        arguments[1] = 17;  // the extent
        const double x = real(generator), y = real(generator);
        auto call = [&](const auto& routine, double accumulated) {
          arguments[0] = accumulated;
          return routine(arguments.data());
        };
        EXPECT_NEAR(call(finish, x + y), call(part, x) + call(finish, y), 1e-14) << function->name;
        ++checked;
      }
    }
  EXPECT_GE(checked, 300);  // gemtv, with and without a vector that is added, and colmean
}

// Results that are matrices or vectors can be shared among threads.
TEST(FunctionTableTest, ElementFunctionsHaveAtLeastTwoGranularities) {
  for (const ElementaryFunction* function : Library().functions()) {
    for (const Overload& overload : function->overloads) {
      if (overload.form != v1::ELEMENT || overload.result.shape.empty()) continue;
      EXPECT_GE(overload.implementations.size(), 2u) << function->name;
      EXPECT_EQ(overload.implementations[0].granularity, v1::THREAD) << function->name;
      EXPECT_EQ(overload.implementations[1].granularity, v1::SUB_WARP) << function->name;
    }
  }
}

// ---- Values ----

class FunctionTest : public ::testing::TestWithParam<std::string> {
 protected:
  const ElementaryFunction& function() const { return *Library().Find(GetParam()); }
};

TEST_P(FunctionTest, RandomValuesAgreeInF32) { ExpectRandomAgreement<float>(function()); }
TEST_P(FunctionTest, RandomValuesAgreeInF64) { ExpectRandomAgreement<double>(function()); }

template <class T>
std::vector<T> SpecialValues(bool with_largest) {
  using Limits = std::numeric_limits<T>;
  std::vector<T> values = {T(0),
                           -T(0),
                           T(1),
                           T(-1),
                           T(0.5),
                           T(-20),
                           T(100),
                           Limits::infinity(),
                           -Limits::infinity(),
                           Limits::quiet_NaN(),
                           Limits::denorm_min(),
                           -Limits::denorm_min(),
                           Limits::min()};
  if (with_largest) values.insert(values.end(), {Limits::max(), Limits::lowest()});
  return values;
}

// All combinations of special values, as vectors; dimensions of matrices get the extents 1 and n.
template <class T>
void ExpectSpecialAgreement(const ElementaryFunction& function) {
  for (const Overload& overload : function.overloads) {
    bool entries = overload.form == v1::ENTRYWISE || overload.form == v1::MAP;
    size_t count = overload.operands.size();
    if (!entries || count > 3) continue;
    // With three operands intermediate overflow depends on whether the hardware fuses multiply and add.
    std::vector<T> values = SpecialValues<T>(count < 3);
    size_t combinations = 1;
    for (size_t o = 0; o < count; ++o) combinations *= values.size();
    for (size_t c = 0; c < combinations; ++c) {
      Operands<T> operands;
      size_t rest = c;
      for (size_t o = 0; o < count; ++o) {
        Type type = Type::Scalar(kDataType<T>);
        type.extents.resize(overload.operands[o].pattern.dimensions.size(),
                            Extent{.name = "", .constant = 1});
        operands.types.push_back(std::move(type));
        operands.entries.push_back({values[rest % values.size()]});
        rest /= values.size();
      }
      ExpectAgreement<T>(function, operands);
      if (::testing::Test::HasFatalFailure()) return;
    }
  }
}

TEST_P(FunctionTest, SpecialValuesAgreeInF32) { ExpectSpecialAgreement<float>(function()); }
TEST_P(FunctionTest, SpecialValuesAgreeInF64) { ExpectSpecialAgreement<double>(function()); }

// One special value among ordinary ones, at every position: reductions, products of small matrices.
template <class T>
void ExpectOneSpecialAgreement(const ElementaryFunction& function) {
  std::mt19937_64 generator = GeneratorFor(function.name);
  for (const Overload& overload : function.overloads) {
    if (overload.form != v1::REDUCE) continue;
    for (T special : {std::numeric_limits<T>::quiet_NaN(), std::numeric_limits<T>::infinity(),
                      -std::numeric_limits<T>::infinity(), T(0)}) {
      for (int64_t at = 0; at < 9; ++at) {
        Operands<T> operands;
        for (const Operand& operand : overload.operands) {
          Type type = Type::Scalar(kDataType<T>);
          type.extents.resize(operand.pattern.dimensions.size(), Extent{.name = "", .constant = 3});
          std::vector<T> entries = RandomEntries<T>(type, 1, operand.domain, &generator);
          bool reads = &operand - overload.operands.data() == overload.term_operands[0];
          if (reads) entries[at % entries.size()] = special;
          operands.types.push_back(std::move(type));
          operands.entries.push_back(std::move(entries));
        }
        ExpectAgreement<T>(function, operands);
        if (::testing::Test::HasFatalFailure()) return;
      }
    }
  }
}

TEST_P(FunctionTest, OneSpecialValueAgreesInF32) { ExpectOneSpecialAgreement<float>(function()); }
TEST_P(FunctionTest, OneSpecialValueAgreesInF64) { ExpectOneSpecialAgreement<double>(function()); }

std::vector<std::string> FunctionNames() {
  std::vector<std::string> names;
  for (const ElementaryFunction* function : Library().functions()) names.push_back(function->name);
  return names;
}
INSTANTIATE_TEST_SUITE_P(Library, FunctionTest, ::testing::ValuesIn(FunctionNames()),
                         [](const auto& info) { return info.param; });

// ---- What the general comparison cannot see ----

ReferenceValue ResultOf(const std::string& name, const std::vector<double>& x) {
  Operands<double> operands{.types = {Type::Vector(v1::F64, {"", static_cast<int64_t>(x.size())})},
                            .entries = {x}};
  std::vector<std::optional<Type>> types(operands.types.begin(), operands.types.end());
  ResolvedCall call = ResolveCall(*Library().Find(name), types, "").value();
  HostCall<double> host{&call, operands.types, operands.entries, 1, 0};
  return ReferenceValue{.entries = Interpret(host).value()};
}

TEST(ReductionConventionTest, ArgmaxTakesTheFirstOfEqualEntriesAndMinusOneOfNothing) {
  EXPECT_EQ(ResultOf("argmax", {1, 5, 5, 2}).entries[0], 1);
  EXPECT_EQ(ResultOf("argmax", {}).entries[0], -1);
  EXPECT_EQ(ResultOf("argmax", {-INFINITY, -INFINITY}).entries[0], 0);
}

TEST(ReductionConventionTest, EmptyReductions) {
  EXPECT_EQ(ResultOf("vmax", {}).entries[0], -INFINITY);
  EXPECT_EQ(ResultOf("vmin", {}).entries[0], INFINITY);
  EXPECT_EQ(ResultOf("sum", {}).entries[0], 0);
  EXPECT_EQ(ResultOf("nrm2", {}).entries[0], 0);
}

// Pivoting: the first pivot is zero, and elimination without it would divide by zero.
TEST(DeterminantTest, ZeroPivotsAndSingularMatrices) {
  const auto& routine = ElementRoutines().at("mdet_thread").at({5}).f64;
  std::vector<double> permutation(25, 0), singular(25, 1);
  for (int i = 0; i < 5; ++i) permutation[5 * i + (i + 1) % 5] = 2;
  double determinant = 0;
  routine(0, {permutation.data()}, &determinant);
  EXPECT_EQ(determinant, 32);  // a cycle of five is an even permutation
  std::swap_ranges(permutation.begin(), permutation.begin() + 5, permutation.begin() + 5);
  routine(0, {permutation.data()}, &determinant);
  EXPECT_EQ(determinant, -32);
  routine(0, {singular.data()}, &determinant);
  EXPECT_EQ(determinant, 0);
}

// As BLAS has it: what a factor of 0 stands before is not read into the result.
TEST(BlasTest, AFactorOfZeroKeepsNanAndInfinityOut) {
  const auto call = [](const std::string& routine, std::vector<double> arguments) {
    const EntryRoutinePair& pair = EntryRoutines().at(routine);
    const std::vector<float> floats(arguments.begin(), arguments.end());
    const double result = pair.f64(arguments.data());
    EXPECT_EQ(pair.f32(floats.data()), static_cast<float>(result)) << routine;
    return result;
  };
  for (const double zero : {0.0, -0.0})
    for (const double bad : {std::nan(""), static_cast<double>(INFINITY)}) {
      for (const std::string function : {"gemv", "gemtv", "symv"}) {
        // accumulated, extent, a, b, y
        EXPECT_EQ(call(function + "_finish", {bad, 3, zero}), 0) << function;
        EXPECT_EQ(call(function + "_finish_add", {bad, 3, zero, 2, 5}), 10) << function;
        EXPECT_EQ(call(function + "_finish_add", {3, 3, 2, zero, bad}), 6) << function;
        EXPECT_EQ(call(function + "_finish_add", {bad, 3, zero, zero, bad}), 0) << function;
      }
      EXPECT_EQ(call("gemtv_part_add", {bad, 3, zero, 2, 5}), 0);
      EXPECT_EQ(call("axpy_map", {zero, bad, 5}), 5);
      EXPECT_EQ(call("axpby_map", {zero, bad, 2, 5}), 10);
      EXPECT_EQ(call("axpby_map", {2, 5, zero, bad}), 10);
      EXPECT_EQ(call("axpby_map", {zero, bad, zero, bad}), 0);
    }
}

// Matrices whose rows and columns are powers of two apart, up to the ends of the range: their inverses and
// determinants are those of the matrices without, scaled, to the last bit.
template <class T>
void ExpectScaledInverses(int n, int far) {
  const auto routine = [](const ElementRoutinePair& pair) {
    if constexpr (std::is_same_v<T, float>)
      return pair.f32;
    else
      return pair.f64;
  };
  std::mt19937_64 generator(17);
  std::uniform_real_distribution<double> real(-1, 1);
  std::uniform_int_distribution<int> power(-far, far);
  for (int trial = 0; trial < 200; ++trial) {
    std::vector<T> plain(n * n), scaled(n * n);
    std::vector<int> row(n), column(n);
    for (int i = 0; i < n; ++i) row[i] = power(generator), column[i] = power(generator);
    // What all have in common takes the products of entries out of the range, where the determinant is in it.
    int sum = 0;
    for (int i = 0; i < n; ++i) sum += row[i] + column[i];
    row[0] -= std::clamp(sum, -far, far);
    sum -= std::clamp(sum, -far, far);
    for (int i = 0; i < n; ++i)
      for (int j = 0; j < n; ++j) {
        plain[i * n + j] = static_cast<T>(real(generator) + (i == j ? 3 : 0));
        scaled[i * n + j] = std::ldexp(plain[i * n + j], row[i] + column[j]);
      }
    T determinant = 0, of_scaled = 0;
    const auto mdet = routine(ElementRoutines().at("mdet_thread").at({n}));
    mdet(0, {plain.data()}, &determinant);
    mdet(0, {scaled.data()}, &of_scaled);
    const T expected = std::ldexp(determinant, sum);
    if (n > 4) {  // elimination has other pivots
      if (of_scaled != expected) {
        EXPECT_NEAR(of_scaled / expected, 1, 64 * std::numeric_limits<T>::epsilon()) << n;
      }
      continue;
    }
    EXPECT_EQ(of_scaled, expected) << n;
    for (const char* name : {"minv_thread", "minv_row", "minv_entry"}) {
      const auto minv = routine(ElementRoutines().at(name).at({n}));
      const int threads = name == std::string("minv_thread") ? 1
                          : name == std::string("minv_row")  ? n
                                                             : n * n;
      std::vector<T> inverse(n * n), inverse_of_scaled(n * n);
      for (int thread = 0; thread < threads; ++thread) {
        minv(thread, {plain.data()}, inverse.data());
        minv(thread, {scaled.data()}, inverse_of_scaled.data());
      }
      for (int i = 0; i < n; ++i)
        for (int j = 0; j < n; ++j)
          EXPECT_EQ(inverse_of_scaled[i * n + j], std::ldexp(inverse[i * n + j], -(column[i] + row[j])))
              << name << " of " << n;
    }
  }
}

TEST(RangeTest, InversesAndDeterminantsKeepTheRangeOfTheirType) {
  for (const auto& [parameters, unused] : ElementRoutines().at("mdet_thread")) {
    if (parameters[0] < 2) continue;
    ExpectScaledInverses<float>(parameters[0], 30);
    ExpectScaledInverses<double>(parameters[0], 250);
  }
}

// The reference itself, on values worked out by hand.
TEST(ReferenceTest, HandComputedValues) {
  ReferenceValue a{.shape = {2, 3}, .entries = {1, 2, 3, 4, 5, 6}}, x{.shape = {3}, .entries = {1, 0, -1}};
  ReferenceValue two{.entries = {2}}, y{.shape = {2}, .entries = {10, 20}};
  ReferenceValue z = EvaluateReference("gemv", {two, a, x, two, y}).value();
  EXPECT_EQ(z.shape, (std::vector<int64_t>{2}));
  EXPECT_EQ(z.entries, (std::vector<double>{16, 36}));
  EXPECT_EQ(z.magnitude, (std::vector<double>{28, 60}));
  EXPECT_EQ(EvaluateReference("colmax", {a}).value().entries, (std::vector<double>{4, 5, 6}));
  EXPECT_EQ(EvaluateReference("gemtv", {two, a, y}).value().entries, (std::vector<double>{180, 240, 300}));
  ReferenceValue list{.mapped = true, .shape = {2, 2}, .elements = 2, .entries = {1, 2, 3, 4, 0, 1, 1, 0}};
  EXPECT_EQ(EvaluateReference("mdet", {list}).value().entries, (std::vector<double>{-2, -1}));
  EXPECT_EQ(EvaluateReference("mmul", {list, list}).value().entries,
            (std::vector<double>{7, 10, 15, 22, 1, 0, 0, 1}));
  EXPECT_EQ(EvaluateReference("gemv", {two, a, y}).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(EvaluateReference("nothing", {a}).status().code(), absl::StatusCode::kNotFound);
}

TEST(ReferenceTest, AgreementBounds) {
  EXPECT_TRUE(Agrees(1 + 1e-7, 1, 1, 8, kF32Precision));
  EXPECT_FALSE(Agrees(1 + 1e-5, 1, 1, 8, kF32Precision));
  EXPECT_FALSE(Agrees(1 + 1e-7, 1, 1, 8, kF64Precision));
  EXPECT_FALSE(Agrees(NAN, 1, 1, 8, kF32Precision));
  EXPECT_FALSE(Agrees(1, NAN, 1, 8, kF32Precision));
  EXPECT_TRUE(Agrees(NAN, NAN, NAN, 8, kF32Precision));
  EXPECT_TRUE(Agrees(INFINITY, 1e39, 1e39, 8, kF32Precision));
  EXPECT_FALSE(Agrees(-INFINITY, 1e39, 1e39, 8, kF32Precision));
  EXPECT_FALSE(Agrees(INFINITY, 1e37, 1e37, 8, kF32Precision));
}

}  // namespace
}  // namespace fusion::testing
