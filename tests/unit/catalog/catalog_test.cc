#include "library/catalog/catalog.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "tests/folders.h"

namespace fusion {
namespace {

using ::testing::HasSubstr;

std::shared_ptr<const Catalog> BuiltIn() {
  absl::StatusOr<std::shared_ptr<const Catalog>> catalog = Catalog::BuiltIn();
  EXPECT_TRUE(catalog.ok()) << catalog.status();
  return *catalog;
}

v1::FunctionDefinition Twice(const std::string& name = "twice") {
  v1::FunctionDefinition definition;
  definition.set_name(name);
  definition.set_domain("mine");
  definition.set_documentation("Two times x.");
  v1::OverloadDefinition* overload = definition.add_overloads();
  overload->set_form(v1::ENTRYWISE);
  overload->add_operands()->set_name("x");
  overload->mutable_operands(0)->set_type("any");
  overload->set_result("any");
  overload->set_formula("y = 2 * x");
  overload->set_routine(name + "_map");
  overload->set_flops("1");
  definition.set_source("template <class T> FUSION_FN T " + name + "_map(T x) { return T(2) * x; }");
  return definition;
}

TEST(CatalogTest, FirstContentsAreComplete) {
  std::shared_ptr<const Catalog> catalog = BuiltIn();
  for (const char* name :
       {"add",     "sub",    "mul",    "div",     "neg",     "abs",     "sqrt",   "rsqrt",  "square",
        "recip",   "exp",    "log",    "tanh",    "erf",     "sigmoid", "relu",   "min",    "max",
        "scale",   "shift",  "fma",    "scal",    "axpy",    "axpby",   "vadd",   "vsub",   "vmul",
        "vdiv",    "dot",    "nrm2",   "asum",    "sum",     "vmax",    "vmin",   "argmax", "ger",
        "gemv",    "gemtv",  "madd",   "msub",    "symv",    "rowsum",  "rowmax", "rowmin", "rowmean",
        "rownrm2", "colsum", "colmax", "colmin",  "colmean", "colnrm2", "rowadd", "rowsub", "rowmul",
        "rowdiv",  "coladd", "colsub", "colmul",  "coldiv",  "mmul",    "mtmul",  "mmult",  "smmul",
        "mtrans",  "mtrace", "mdet",   "minv",    "maddi",   "mvmul",   "mtvmul", "veadd",  "vesub",
        "svemul",  "vedot",  "venorm", "vecross", "veouter", "gelu",    "silu",   "sin",    "cos",
        "pow",     "clamp",  "where",  "lt",      "le",      "gt",      "ge",     "eq"}) {
    EXPECT_NE(catalog->Find(name), nullptr) << name;
  }
  EXPECT_EQ(catalog->functions().size(), 89u);
}

TEST(CatalogTest, FindsByExactName) {
  std::shared_ptr<const Catalog> catalog = BuiltIn();
  ASSERT_NE(catalog->Find("gemv"), nullptr);
  EXPECT_EQ(catalog->Find("gemv")->domain, "blas2");
  EXPECT_FALSE(catalog->Find("gemv")->is_inline);
  EXPECT_EQ(catalog->Find("mmul33"), nullptr);
  EXPECT_EQ(catalog->Find(""), nullptr);
  std::vector<const ElementaryFunction*> functions = catalog->functions();
  EXPECT_TRUE(std::is_sorted(functions.begin(), functions.end(),
                             [](const auto* a, const auto* b) { return a->name < b->name; }));
}

TEST(CatalogTest, DirectoryAndEmbeddedFilesAreTheSameLibrary) {
  absl::StatusOr<std::shared_ptr<const Catalog>> loaded =
      Catalog::LoadDirectory(testing::SourceFolder() + "/library/functions");
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ((*loaded)->hash(), BuiltIn()->hash());
}

TEST(CatalogTest, LoadDirectoryNamesThePlaceOfAMistake) {
  std::filesystem::path root = std::filesystem::path(::testing::TempDir()) / "catalog_test_library";
  std::filesystem::create_directories(root / "mine" / "twice");
  std::ofstream(root / "mine" / "twice" / "function.textproto")
      << "name: \"twice\"\ndomain: \"mine\"\nbad: 1\n";
  EXPECT_EQ(Catalog::LoadDirectory(root.string()).status().code(),
            absl::StatusCode::kNotFound);  // no routines.h
  std::ofstream(root / "mine" / "twice" / "routines.h") << "";
  absl::StatusOr<std::shared_ptr<const Catalog>> catalog = Catalog::LoadDirectory(root.string());
  EXPECT_THAT(std::string(catalog.status().message()), HasSubstr("/mine/twice/function.textproto:3:4: "));
  std::filesystem::remove_all(root);
}

TEST(CatalogTest, NamesAndRoutinesAreUnique) {
  EXPECT_EQ(Catalog::FromDefinitions({Twice(), Twice()}).status().message(),
            "function \"twice\" is described twice");
  v1::FunctionDefinition other = Twice("thrice");
  other.mutable_overloads(0)->set_routine("twice_map");
  other.mutable_source()->append(" twice_map(");
  EXPECT_THAT(std::string(Catalog::FromDefinitions({Twice(), other}).status().message()),
              HasSubstr("routine \"twice_map\" is also a routine of function \"twice\""));
}

TEST(CatalogTest, HashFollowsContentsNotOrder) {
  std::string hash = Catalog::FromDefinitions({Twice("a"), Twice("b")}).value()->hash();
  EXPECT_THAT(hash, ::testing::MatchesRegex("sha256:[0-9a-f]+"));
  EXPECT_EQ(hash.size(), 7u + 16u);
  EXPECT_EQ(Catalog::FromDefinitions({Twice("b"), Twice("a")}).value()->hash(), hash);
  v1::FunctionDefinition changed = Twice("b");
  changed.mutable_source()->append(" ");
  EXPECT_NE(Catalog::FromDefinitions({Twice("a"), changed}).value()->hash(), hash);
  v1::FunctionDefinition dearer = Twice("b");
  dearer.mutable_cost()->set_gpu_instructions(20);
  EXPECT_EQ(Catalog::FromDefinitions({Twice("a"), dearer}).value()->hash(), hash) << "for predictions alone";
  dearer.mutable_cost()->set_gpu_instructions(-1);
  EXPECT_FALSE(Catalog::FromDefinitions({dearer}).ok());
  EXPECT_NE(Catalog::FromDefinitions({Twice("a")}).value()->hash(), hash);
}

// Whatever else the library has, and whatever is said of the function.
TEST(CatalogTest, AFunctionIsKnownByItsSourceAndFoundByItsRoutines) {
  const auto alone = Catalog::FromDefinitions({Twice()}).value();
  v1::FunctionDefinition described = Twice();
  described.set_documentation("Other words.");
  described.mutable_cost()->set_host_operations(3);
  const auto two = Catalog::FromDefinitions({described, Twice("other")}).value();
  const std::string hash = alone->Find("twice")->source_hash;
  EXPECT_EQ(hash.size(), 16u);
  EXPECT_EQ(two->Find("twice")->source_hash, hash);
  v1::FunctionDefinition changed = Twice();
  changed.mutable_source()->append(" ");
  EXPECT_NE(Catalog::FromDefinitions({changed}).value()->Find("twice")->source_hash, hash);

  EXPECT_EQ(two->FindByRoutine("twice_map"), two->Find("twice"));
  EXPECT_EQ(two->WithInline({Twice("third")}).value()->FindByRoutine("twice_map")->name, "twice");
  EXPECT_EQ(two->FindByRoutine("twice"), nullptr);
}

TEST(CatalogTest, InlineFunctionsComeOnTopAndAreMarked) {
  std::shared_ptr<const Catalog> base = BuiltIn();
  absl::StatusOr<std::shared_ptr<const Catalog>> catalog = base->WithInline({Twice()});
  ASSERT_TRUE(catalog.ok()) << catalog.status();
  EXPECT_TRUE((*catalog)->Find("twice")->is_inline);
  EXPECT_FALSE((*catalog)->Find("gemv")->is_inline);
  EXPECT_EQ((*catalog)->functions().size(), base->functions().size() + 1);
  EXPECT_EQ((*catalog)->definitions().size(), base->definitions().size() + 1);
  EXPECT_NE((*catalog)->hash(), base->hash());
  EXPECT_EQ(base->Find("twice"), nullptr);
}

TEST(CatalogTest, InlineFunctionsCannotChangeTheLibrary) {
  absl::Status status = BuiltIn()->WithInline({Twice("gemv")}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(status.message(), "function \"gemv\" exists in the library; give it another name");
  v1::FunctionDefinition thief = Twice();
  thief.mutable_overloads(0)->set_routine("axpy_map");
  thief.mutable_source()->append(" axpy_map(");
  EXPECT_EQ(BuiltIn()->WithInline({thief}).status().code(), absl::StatusCode::kAlreadyExists);
}

TEST(CatalogTest, Suggestions) {
  std::shared_ptr<const Catalog> catalog = BuiltIn();
  EXPECT_EQ(catalog->Suggest("gemvt"), "gemtv");
  EXPECT_EQ(catalog->Suggest("ggemv"), "gemv");
  EXPECT_EQ(catalog->Suggest("mmull33"), "mmul");
  EXPECT_EQ(catalog->Suggest("axpi"), "axpy");
  EXPECT_EQ(catalog->Suggest("nrm3"), "nrm2");
  EXPECT_EQ(catalog->Suggest("frobnicate"), "");
  EXPECT_EQ(catalog->Suggest(""), "");
  EXPECT_EQ(catalog->Suggest("x"), "");
  EXPECT_EQ(catalog->Suggest(std::string(100000, 'a')), "");
}

TEST(SplitAliasTest, DigitsAndBrackets) {
  std::shared_ptr<const Catalog> catalog = BuiltIn();
  auto split = [&](const char* name) {
    FunctionName parts = SplitAlias(*catalog, name);
    return parts.base + "|" + parts.suffix + (parts.explicit_parameters ? "|<>" : "");
  };
  EXPECT_EQ(split("mmul33"), "mmul|33");
  EXPECT_EQ(split("mmul<3,3>"), "mmul|3,3|<>");
  EXPECT_EQ(split("venorm3"), "venorm|3");
  EXPECT_EQ(split("gemv"), "gemv|");
  EXPECT_EQ(split("nrm2"), "nrm2|");
  EXPECT_EQ(split("nrm25"), "nrm2|5");
  EXPECT_EQ(split("frob12"), "frob|12");
  EXPECT_EQ(split("33"), "|33");
  EXPECT_EQ(split("<3>"), "|3|<>");
  EXPECT_EQ(split("mmul<3"), "mmul<|3");
}

}  // namespace
}  // namespace fusion
