#include "server/optimize/routine_stage.h"

#include <gmock/gmock.h>

#include "tests/unit/store/store_fixture.h"

namespace fusion {
namespace {

class RoutineStageTest : public StoreTest {
 protected:
  RoutineStageTest() {
    device_.set_name("H200");
    device_.set_toolkit_version("13.0");
  }

  void Put(const std::string& routine, const std::string& source_hash) {
    v1::RoutineTable table;
    table.set_version(kRoutineTableVersion);
    table.set_device_class("H200");
    table.set_toolkit("13.0");
    table.set_routine(routine);
    v1::RoutineTable::Point* point = table.add_points();
    point->set_threads(32);
    point->set_elements(32);
    point->set_resident_blocks(1);
    point->set_seconds(1e-6);
    ASSERT_TRUE(store_
                    ->PutRoutineTable({.device_class = "H200", .toolkit = "13.0"},
                                      {routine, source_hash, table.SerializeAsString()}, At(1))
                    .ok());
  }

  RoutineTables Stored(const Catalog& catalog) {
    std::vector<std::string> notes;
    auto tables = StoredRoutineTables(device_, catalog, *store_, &notes);
    EXPECT_TRUE(tables.ok()) << tables.status();
    EXPECT_TRUE(notes.empty()) << notes.front();
    return tables.value_or(RoutineTables());
  }

  DeviceDescription device_;
};

TEST_F(RoutineStageTest, TablesAreThoseOfTheSourcesThatTheLibraryHas) {
  const auto library = Catalog::BuiltIn().value();
  const std::string compute = "mmul_tile<f32,4,4,4> shared", load = "load f32[16] shared";
  Put(compute, library->Find("mmul")->source_hash);
  Put(load, "");

  std::vector<v1::FunctionDefinition> fewer, changed;
  for (const v1::FunctionDefinition& definition : library->definitions()) {
    if (definition.name() != "gemv") fewer.push_back(definition);
    changed.push_back(definition);
    if (definition.name() == "mmul") changed.back().mutable_source()->append("// another");
  }
  for (const auto& catalog : {library, Catalog::FromDefinitions(fewer).value()}) {
    const RoutineTables tables = Stored(*catalog);
    EXPECT_TRUE(tables.Has(compute));
    EXPECT_TRUE(tables.Has(load));
  }
  const RoutineTables tables = Stored(*Catalog::FromDefinitions(changed).value());
  EXPECT_FALSE(tables.Has(compute));
  EXPECT_TRUE(tables.Has(load)) << "no function has it";
}

}  // namespace
}  // namespace fusion
