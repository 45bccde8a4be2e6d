// A registry of tunings, and what it says of one.
#pragma once

#include <thread>

#include "tests/unit/tuning_service/tuning_fixture.h"

namespace fusion {

class TuningRegistryTest : public TuningTest {
 protected:
  v1::Tuning Get(const std::string& name) {
    absl::StatusOr<v1::Tuning> tuning = registry_->Get(name);
    EXPECT_TRUE(tuning.ok()) << tuning.status();
    return tuning.ok() ? *tuning : v1::Tuning();
  }
  // Until the search has seen so many runs of proposals; what it chose then is stored.
  void ExpectSearched(const std::string& name, uint64_t runs) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    for (;;) {
      const absl::StatusOr<v1::TuningDetails> details = registry_->Details(name);
      ASSERT_TRUE(details.ok()) << details.status();
      if (!details->convergence().empty() && details->convergence().rbegin()->evaluations() >= runs) return;
      ASSERT_LT(std::chrono::steady_clock::now(), deadline) << details->ShortDebugString();
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
  }
  size_t StoredReports(const std::string& name) {
    v1::ListTuningReportsRequest request;
    request.set_name(name);
    request.set_page_size(10000);
    auto reports = registry_->Reports(request);
    EXPECT_TRUE(reports.ok()) << reports.status();
    return reports.ok() ? static_cast<size_t>(reports->reports_size()) : 0;
  }
};

}  // namespace fusion
