// A registry of tunings, and what it says of one.
#pragma once

#include "tests/eventually.h"
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
    absl::StatusOr<v1::TuningDetails> details;
    EXPECT_TRUE(Eventually([&] {
      details = registry_->Details(name);
      return !details.ok() ||
             (!details->convergence().empty() && details->convergence().rbegin()->evaluations() >= runs);
    })) << details->ShortDebugString();
    EXPECT_TRUE(details.ok()) << details.status();
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
