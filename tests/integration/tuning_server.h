// A server as a process, which can be killed and started again at the same address, and what it has stored of
// tunings.
#pragma once

#include <grpcpp/create_channel.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "fusion/v1/tuner.grpc.pb.h"
#include "tests/integration/process.h"

namespace fusion::testing {

class TuningServer {
 public:
  // Starts the server in the folder of the client.
  explicit TuningServer(const ClientProgram& client) : client_(client) { Start("127.0.0.1:0"); }

  void Kill() {
    process_->Signal(SIGKILL);
    process_->Wait();
  }
  void StartAgain() { Start(address_); }
  const std::string& address() const { return address_; }

  std::vector<v1::Tuning> Tunings() {
    grpc::ClientContext context;
    v1::ListTuningsResponse response;
    const grpc::Status status = Stub()->ListTunings(&context, v1::ListTuningsRequest(), &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return {response.tunings().begin(), response.tunings().end()};
  }
  struct Stored {
    uint64_t runs = 0;
    std::map<std::string, uint64_t> by_process;
  };
  // Counts the runs in the reports of all tunings.
  Stored StoredReports() {
    Stored stored;
    for (const v1::Tuning& tuning : Tunings()) {
      v1::ListTuningReportsRequest request;
      request.set_name(tuning.name());
      do {
        grpc::ClientContext context;
        v1::ListTuningReportsResponse response;
        const grpc::Status status = Stub()->ListTuningReports(&context, request, &response);
        EXPECT_TRUE(status.ok()) << status.error_message();
        for (const v1::StoredTuningReport& report : response.reports()) {
          const uint64_t runs = report.report().count() + report.report().failures();
          stored.runs += runs;
          stored.by_process[report.process()] += runs;
        }
        request.set_page_token(response.next_page_token());
      } while (!request.page_token().empty());
    }
    return stored;
  }

 private:
  void Start(const std::string& address) {
    process_ = std::make_unique<ServerProcess>(client_, address);
    address_ = process_->address();
  }
  std::unique_ptr<v1::TunerService::Stub> Stub() {
    return v1::TunerService::NewStub(grpc::CreateChannel(address_, grpc::InsecureChannelCredentials()));
  }

  const ClientProgram& client_;
  std::unique_ptr<ServerProcess> process_;
  std::string address_;
};

}  // namespace fusion::testing
