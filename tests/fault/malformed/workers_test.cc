// Workers that report what cannot be, and byte strings that are not what was announced.
#include <functional>
#include <limits>

#include "absl/strings/str_cat.h"
#include "base/rpc/chunks.h"
#include "tests/fault/long_form.h"
#include "tests/fault/malformed/attacked_server.h"
#include "tests/fault/malformed/mutation.h"

namespace fusion {
namespace {

constexpr char kWriteBlob[] = "/fusion.v1.WorkerService/WriteBlob";
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

class MalformedWorkers : public AttackedServer {
 protected:
  void Report(const v1::SynchronizeRequest& request, const std::string& what) {
    Attack(kSynchronize, {request.SerializeAsString()}, true, what);
  }
};

TEST_F(MalformedWorkers, OnlyTheHolderOfATaskReportsIt) {
  v1::Job job;
  const v1::Assignment assignment = TakeHonestTask(&job);
  ASSERT_FALSE(assignment.task().empty());
  // Who knows the task and its fence, which are no secrets, but does not hold it.
  v1::SynchronizeRequest thief = Worker("thief");
  v1::TaskReport* report = thief.add_tasks();
  report->set_task(assignment.task());
  report->set_fence(assignment.fence());
  for (int i = 0; i < 5; ++i) {
    report->set_failure("I do not like it");
    Report(thief, "another's task failed");
    report->mutable_time()->set_failure("this is a build");
    Report(thief, "another's task with a result of another kind");
    report->mutable_build()->set_outcome(v1::COMPILE_ERROR);
    Report(thief, "another's task does not compile");
    report->set_running(true);
    EXPECT_THAT(Synchronize(thief).cancelled(), ::testing::ElementsAre(assignment.task()));
  }
  FinishHonestTask(job, assignment);
}

TEST_F(MalformedWorkers, AResultWithoutSensibleNumbersIsStillAResult) {
  v1::Job job;
  const v1::Assignment assignment = TakeHonestTask(&job);
  ASSERT_FALSE(assignment.task().empty());
  v1::SynchronizeRequest worker = Worker("honest");
  v1::TaskReport* report = worker.add_tasks();
  report->set_task(assignment.task());
  report->set_fence(assignment.fence());
  report->mutable_build()->set_outcome(v1::COMPILE_ERROR);
  report->mutable_build()->set_seconds(kNaN);
  EXPECT_THAT(Synchronize(worker).accepted(), ::testing::ElementsAre(assignment.task()));
}

TEST_F(MalformedWorkers, AbsurdStates) {
  const auto with = [&](const std::string& what, const std::function<void(v1::SynchronizeRequest&)>& change) {
    v1::SynchronizeRequest request = Worker("absurd");
    change(request);
    Report(request, what);
  };
  for (int kind = 0; kind < 5; ++kind)
    with("10,000 reports of unknown tasks", [&](v1::SynchronizeRequest& request) {
      for (int i = 0; i < 10000; ++i) {
        v1::TaskReport* report = request.add_tasks();
        report->set_task(kind == 4 ? "" : absl::StrCat("tasks/", i));
        report->set_fence(i - 5000);
        if (kind == 0) report->set_running(true);
        if (kind == 1) report->set_failure("it failed");
        if (kind == 2) report->mutable_build()->set_outcome(v1::OK);
        if (kind == 3) report->mutable_time()->mutable_unfused()->set_outcome(v1::OK);
      }
    });
  with("10,000 devices", [](auto& request) {
    for (int i = 0; i < 10000; ++i) request.add_devices()->set_uuid(i % 2 == 0 ? "" : "the same");
  });
  with("10,000 problems and capabilities", [](auto& request) {
    for (int i = 0; i < 10000; ++i) {
      request.add_problems()->set_device_uuid(absl::StrCat(i));
      request.add_builds()->set_target(static_cast<v1::Target>(i - 5000));
      request.add_free_devices("");
    }
  });
  for (const int slots : {std::numeric_limits<int>::min(), -1, std::numeric_limits<int>::max()})
    with("slots", [&](auto& request) {
      request.set_free_build_slots(slots);
      request.set_free_time_slots(slots);
    });
  for (const double wait : {kNaN, -1e300, -1.0, 1e-300})
    with("waits", [&](auto& request) { request.set_wait_seconds(wait); });
  Mutation numbers(3);
  for (int i = 0; i < 20; ++i)
    with("device of no sense", [&](auto& request) {
      v1::DeviceDescription* device = request.add_devices();
      device->set_uuid("GPU-absurd");
      device->set_target(static_cast<v1::Target>(numbers.Below(5)));
      device->set_multiprocessors(static_cast<int>(numbers.Integer()));
      device->set_memory_bytes(numbers.Integer());
      device->set_copy_bytes_per_second(numbers.Number());
      device->set_peak_flops(numbers.Number());
    });
  with("no worker", [](auto& request) { request.clear_worker(); });
  with("no instance", [](auto& request) { request.clear_instance(); });
  with("long name", [](auto& request) { request.set_worker(std::string(1 << 20, 'w')); });
}

TEST_F(MalformedWorkers, SlotsBelowZeroWhileTasksAreHeld) {
  v1::Job job;
  const v1::Assignment assignment = TakeHonestTask(&job);
  ASSERT_FALSE(assignment.task().empty());
  v1::SynchronizeRequest worker = Worker("honest");
  worker.set_free_build_slots(std::numeric_limits<int>::min());
  worker.set_free_time_slots(std::numeric_limits<int>::min());
  // Not listed, so it is sent again.
  EXPECT_EQ(Synchronize(worker).assignments_size(), 1);
  FinishHonestTask(job, assignment);
}

TEST_F(MalformedWorkers, StatesAtRandomWhileAnHonestWorkerWorks) {
  for (int seed = 0; seed < Count(150, 1500); ++seed) {
    Mutation mutation(40000 + seed);
    v1::Job job;
    v1::Assignment assignment;
    if (seed % 25 == 0) assignment = TakeHonestTask(&job);
    v1::SynchronizeRequest request = Worker("random");
    v1::TaskReport* report = request.add_tasks();
    report->set_task(assignment.task());
    report->set_fence(assignment.fence());
    request.add_devices()->set_uuid("GPU-random");
    for (int changes = 1 + mutation.Below(4); changes > 0; --changes) mutation.Fields(&request);
    request.set_worker(absl::StrCat("random", seed % 5));
    request.set_free_build_slots(std::min(request.free_build_slots(), 0));
    request.set_wait_seconds(std::min(request.wait_seconds(), 0.01));
    v1::SynchronizeRequest readable;
    const std::string bytes = request.SerializeAsString();
    Attack(kSynchronize, {bytes}, readable.ParseFromString(bytes), absl::StrCat("seed ", seed));
    if (!assignment.task().empty()) FinishHonestTask(job, assignment);
  }
}

TEST_F(MalformedWorkers, BlobsThatAreNotWhatWasAnnounced) {
  const auto chunk = [](const std::string& digest, int64_t total, int64_t offset, const std::string& data) {
    v1::Chunk made;
    made.set_digest(digest);
    made.set_total_bytes(total);
    made.set_offset(offset);
    made.set_data(data);
    return made.SerializeAsString();
  };
  const std::string bytes = "some bytes", digest = BlobDigest(bytes);
  const int64_t size = static_cast<int64_t>(bytes.size());
  const int64_t most = std::numeric_limits<int64_t>::max(), least = std::numeric_limits<int64_t>::min();
  const std::vector<std::vector<std::string>> streams = {
      {},
      {chunk("", size, 0, bytes)},
      {chunk(digest, size, 1, bytes)},
      {chunk(digest, size, -1, bytes)},
      {chunk(digest, size, most, bytes)},
      {chunk(digest, size, least, bytes)},
      {chunk(digest, -1, 0, bytes)},
      {chunk(digest, most, 0, bytes)},
      {chunk(digest, least, 0, bytes)},
      {chunk(digest, size + 1, 0, bytes)},
      {chunk(digest, size - 1, 0, bytes)},
      {chunk("sha256:", size, 0, bytes)},
      {chunk("../../etc/passwd", size, 0, bytes)},
      {chunk(BlobDigest("others"), size, 0, bytes)},
      {chunk(digest, size, 0, bytes), chunk(digest, size, 0, bytes)},
      {chunk(digest, 2 * size, 0, bytes), chunk(digest, 2 * size, 0, bytes)},
      {chunk(digest, 2 << 20, 0, std::string(2 << 20, 'x'))},
      {chunk(digest, size, 0, ""), chunk("", 0, 0, "")},
      {"\xff\xff\xff", chunk(digest, size, 0, bytes)},
      {chunk(digest, size, 0, bytes.substr(0, 3)), "\xff\xff\xff"},
      {chunk(digest, 6 << 20, 0, std::string(5 << 20, 'x'))},
  };
  int number = 0;
  for (const auto& stream : streams) {
    const int refused = statuses_["OK"];
    Attack(kWriteBlob, stream, true, absl::StrCat("stream ", number++));
    EXPECT_EQ(statuses_["OK"], refused) << "stream " << number - 1 << " was taken";
  }
  for (int seed = 0; seed < Count(100, 1000); ++seed) {
    Mutation mutation(60000 + seed);
    std::vector<std::string> stream;
    for (int more = 1 + mutation.Below(4); more > 0; --more) {
      v1::Chunk made;
      made.ParseFromString(chunk(digest, size, 0, bytes));
      mutation.Fields(&made);
      stream.push_back(mutation.OneIn(3) ? mutation.Bytes(made.SerializeAsString())
                                         : made.SerializeAsString());
    }
    Attack(kWriteBlob, stream, true, absl::StrCat("seed ", seed));
  }
}

}  // namespace
}  // namespace fusion
