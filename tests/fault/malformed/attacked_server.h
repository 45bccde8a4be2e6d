// A whole server on a port of loopback, which is sent what no client of ours would send.
#pragma once

#include <gmock/gmock.h>
#include <grpcpp/channel.h>
#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/temporary_directory.h"
#include "fusion/v1/optimizer.pb.h"
#include "fusion/v1/worker.pb.h"
#include "server/rpc/server.h"

namespace fusion {

inline constexpr char kSynchronize[] = "/fusion.v1.WorkerService/Synchronize";

// Jobs whose request id begins with "honest" have one kernel built; all others end at once.
class AttackedServer : public ::testing::Test {
 protected:
  void SetUp() override;
  // Checks that honest callers are served, the server ends, and the store is sound.
  void TearDown() override;

  // Makes a call with messages of these bytes, whatever the method takes; what the server answered is
  // appended to `answers`.
  grpc::Status Call(const std::string& method, const std::vector<std::string>& messages,
                    std::chrono::milliseconds patience = std::chrono::seconds(30),
                    std::vector<std::string>* answers = nullptr);
  // Makes such a call, whose status has to be one that callers can act upon, with a message. `decodable`:
  // whether the method's own message can be read from the bytes; if not, gRPC itself may say INTERNAL or
  // UNIMPLEMENTED.
  void Attack(const std::string& method, const std::vector<std::string>& messages, bool decodable,
              const std::string& what);

  template <class Answer>
  Answer Ask(const std::string& method, const google::protobuf::Message& message) {
    std::vector<std::string> answers;
    const grpc::Status status =
        Call(method, {message.SerializeAsString()}, std::chrono::seconds(30), &answers);
    EXPECT_TRUE(status.ok()) << method << ": " << status.error_message();
    Answer answer;
    if (status.ok()) {
      EXPECT_EQ(answers.size(), 1u);
      EXPECT_TRUE(!answers.empty() && answer.ParseFromString(answers[0]));
    }
    return answer;
  }
  static v1::SubmitRequest Request(const std::string& id);
  v1::SynchronizeResponse Synchronize(const v1::SynchronizeRequest& request);
  // Returns the request of a worker that builds for the host.
  static v1::SynchronizeRequest Worker(const std::string& name, const std::string& instance = "1");
  // Submits a job and has an honest worker build its kernel: what the farm is for.
  void ExpectHonestWork();
  // These are the two halves of honest work.
  v1::Assignment TakeHonestTask(v1::Job* job);
  void FinishHonestTask(const v1::Job& job, const v1::Assignment& assignment);

  std::unique_ptr<TemporaryDirectory> directory_;
  std::unique_ptr<Server> server_;
  std::shared_ptr<grpc::Channel> channel_;
  std::map<std::string, int> statuses_;  // answers of Attack, by name
  int untyped_ = 0;                      // of these without a message, or with a status that says nothing
  int honest_jobs_ = 0;
};

}  // namespace fusion
