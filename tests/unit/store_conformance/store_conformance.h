// Suites of what any implementation of Store must do: they run against each of them.
#pragma once

#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "tests/unit/store/store_fixture.h"

namespace fusion {

struct StoreImplementation {
  std::string name;
  // Opens the store of a folder, or makes it.
  std::function<absl::StatusOr<std::unique_ptr<Store>>(const std::string& folder, const StoreOptions&)> open;
};
inline std::ostream& operator<<(std::ostream& out, const StoreImplementation& implementation) {
  return out << implementation.name;
}

// An implementation more is a line here.
inline std::vector<StoreImplementation> StoreImplementations() {
  return {{"Sqlite", [](const std::string& folder, const StoreOptions& options) {
             return OpenSqliteStore(folder + "/fusion.db", options);
           }}};
}

class StoreConformanceTest : public StoreTest, public ::testing::WithParamInterface<StoreImplementation> {
 protected:
  absl::StatusOr<std::unique_ptr<Store>> OpenStore() override { return GetParam().open(folder_, options_); }
};

#define FOR_EVERY_STORE(suite)                                                        \
  INSTANTIATE_TEST_SUITE_P(Store, suite, ::testing::ValuesIn(StoreImplementations()), \
                           [](const auto& info) { return info.param.name; })

}  // namespace fusion
