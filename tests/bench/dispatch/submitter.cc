#include "tests/bench/dispatch/submitter.h"

#include <grpcpp/grpcpp.h>
#include <poll.h>
#include <unistd.h>

#include <chrono>
#include <iostream>
#include <vector>

#include "absl/strings/str_cat.h"
#include "fusion/v1/optimizer.grpc.pb.h"
#include "tests/bench/dispatch/bench_server.h"

namespace fusion {

int SubmitUntilStopped(const std::string& address) {
  using Clock = std::chrono::steady_clock;
  auto optimizer =
      v1::OptimizerService::NewStub(grpc::CreateChannel(address, grpc::InsecureChannelCredentials()));
  std::vector<double> seconds;
  pollfd input{STDIN_FILENO, POLLIN, 0};
  for (int i = 0; poll(&input, 1, 20) == 0; ++i) {
    grpc::ClientContext context;
    v1::Job job;
    const v1::SubmitRequest request = BenchRequest(absl::StrCat("other", i));
    const auto start = Clock::now();
    const grpc::Status status = optimizer->Submit(&context, request, &job);
    const double took = std::chrono::duration<double>(Clock::now() - start).count();
    if (!status.ok()) {
      std::cerr << status.error_message() << "\n";
      return 1;
    }
    if (i > 0) seconds.push_back(took);  // the first one connects
  }
  for (const double took : seconds) std::cout << took << "\n";
  return 0;
}

}  // namespace fusion
