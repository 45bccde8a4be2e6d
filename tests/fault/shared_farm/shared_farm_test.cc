// Users of one server, over TLS and with tokens: how long the jobs of each take, beside one who asks for a
// hundred times as much. GPUs are simulated; all else is as on a farm.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/temporary_directory.h"
#include "tests/fault/identity/farm_fixture.h"
#include "tests/fault/long_form.h"
#include "worker/agent/agent.h"
#include "worker/agent/simulated_workplace.h"

namespace fusion::testing {
namespace {

constexpr int kGpus = 8;
constexpr int kUsers = 5;
constexpr double kTimingSeconds = 0.4;
constexpr int kMostUnfinished = 100;  // jobs of a user
constexpr int kTimingsOfJob = 3;      // with those of finalists
// Of each ordinary user: together they ask for half of the GPUs' time.
constexpr double kJobsPerSecond = 0.5 * kGpus / (kTimingSeconds * kTimingsOfJob) / kUsers;

double Mean(const std::vector<double>& times) {
  double sum = 0;
  for (double time : times) sum += time;
  return sum / static_cast<double>(times.size());
}
double P99(std::vector<double> times) {
  std::sort(times.begin(), times.end());
  return times[std::min(times.size() - 1, times.size() * 99 / 100)];
}

class SharedFarmTest : public FarmTest {
 protected:
  struct Jobs {
    std::mutex mutex;
    std::map<std::string, Timestamp> asked;  // guarded by mutex; of all users but the first: when, by job
    int others_calls = 0;                    // guarded by mutex
    std::vector<double> seconds;             // from asking for them to their end
    // By the first user, and how the server answered.
    int first_calls = 0, first_accepted = 0, first_refused = 0;
    // How many times as much as one of the others he asked for.
    double noise() const { return first_calls * (kUsers - 1.0) / others_calls; }
  };

  // noise: how many times as much as the others the first user asks for. places: jobs that run at once.
  void Run(double noise, double seconds, int places, Jobs* jobs) {
    const auto data = TemporaryDirectory::Create();
    ASSERT_TRUE(data.ok()) << data.status();
    options_.data_directory = (*data)->path();
    options_.runner.pipeline = OptimizePipeline;
    options_.runner.threads = places;
    options_.runner.most_jobs_of_user = kMostUnfinished;
    Start();
    AgentOptions agent_options;
    agent_options.name = "gpu1";
    agent_options.open_workplace = [](BlobTransfer* blobs) {
      return std::make_unique<SimulatedWorkplace>(
          SimulationOptions{.devices = kGpus, .build_seconds = 0.01, .time_seconds = kTimingSeconds}, blobs);
    };
    Agent agent(agent_options, ChannelOf("worker-gpu1"));
    std::thread working([&] { EXPECT_TRUE(agent.Run().ok()); });
    // The first job builds what all others find built.
    std::unique_ptr<Client> admin = ClientOf("admin-root");
    absl::StatusOr<v1::Job> built = admin->Submit(Vadd());
    EXPECT_TRUE(built.ok()) << built.status();
    if (built.ok()) built = admin->WatchJob(built->name(), 0, [](const v1::JobEvent&) {});
    EXPECT_TRUE(built.ok() && built->state() == v1::SUCCEEDED) << built.status();

    std::vector<std::thread> users;
    for (int user = 0; user < kUsers; ++user)
      users.emplace_back(
          [&, user, rate = kJobsPerSecond * (user == 0 ? noise : 1)] { Ask(user, rate, seconds, jobs); });
    for (std::thread& user : users) user.join();
    for (int i = 0; i < 600 && !AllEnded(jobs); ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    EXPECT_TRUE(AllEnded(jobs)) << "jobs of the others do not end";
    agent.Stop();
    working.join();
    server_.reset();
  }

 private:
  static v1::SubmitRequest Vadd() {
    v1::SubmitRequest request;
    request.mutable_source()->set_fuse(kSource);
    request.set_target(v1::CUDA);
    request.set_candidates(4);
    return request;
  }
  static std::string Name(int user) { return absl::StrCat("user", user); }

  // Asks for jobs at random times, and waits for none.
  void Ask(int user, double per_second, double seconds, Jobs* jobs) {
    ClientCredentials credentials = SharedCertificates().Of("");
    credentials.token = Token(Name(user), v1::USER).secret();
    const auto stub = v1::OptimizerService::NewStub(Channel(credentials));
    std::mt19937_64 random(user);
    std::exponential_distribution<double> pause(per_second);
    const auto start = std::chrono::steady_clock::now();
    for (double next = pause(random); next < seconds; next += pause(random)) {
      std::this_thread::sleep_until(start + std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                                                std::chrono::duration<double>(next)));
      grpc::ClientContext context;
      context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(60));
      v1::Job job;
      const Timestamp asked = TimeOfDay();
      const grpc::Status status = stub->Submit(&context, Vadd(), &job);
      const std::lock_guard lock(jobs->mutex);
      if (user != 0) {
        EXPECT_TRUE(status.ok()) << status.error_message();
        jobs->asked[job.name()] = asked;
        ++jobs->others_calls;
        continue;
      }
      ++jobs->first_calls;
      if (status.ok())
        ++jobs->first_accepted;
      else if (status.error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED)
        ++jobs->first_refused;
      else
        ADD_FAILURE() << status.error_message();
    }
  }

  // Whether all jobs of all but the first user have ended; their times.
  bool AllEnded(Jobs* jobs) {
    jobs->seconds.clear();
    for (int user = 1; user < kUsers; ++user) {
      std::string page;
      do {
        const absl::StatusOr<JobPage> listed = server_->store().ListJobsOf(Name(user), 1000, page);
        EXPECT_TRUE(listed.ok()) << listed.status();
        if (!listed.ok()) return true;
        for (const JobRecord& job : listed->jobs) {
          if (job.state == JobState::kQueued || job.state == JobState::kRunning) return false;
          EXPECT_EQ(job.state, JobState::kSucceeded) << job.id;
          jobs->seconds.push_back(
              std::chrono::duration<double>(job.updated - jobs->asked.at(job.id)).count());
        }
        page = listed->next_page_token;
      } while (!page.empty());
    }
    return true;
  }
};

TEST_F(SharedFarmTest, ANoisyUserDelaysTheOthersByLittle) {
  const double seconds = Count(10, 120);
  // With as many as GPUs, it is places that jobs wait for; with more, it is GPUs.
  for (const int places : LongForm() ? std::vector<int>{kGpus, 4 * kGpus} : std::vector<int>{kGpus}) {
    Jobs quiet, noisy;
    Run(1, seconds, places, &quiet);
    Run(110, seconds, places, &noisy);  // by chance it may be a little less
    ASSERT_FALSE(quiet.seconds.empty() || noisy.seconds.empty());
    EXPECT_EQ(quiet.first_refused, 0);
    EXPECT_GT(noisy.first_accepted, kMostUnfinished);
    EXPECT_GT(noisy.first_refused, 0);
    const double times_as_long = Mean(noisy.seconds) / Mean(quiet.seconds);
    std::printf(
        "%d places, %d GPUs: %zu jobs of the others take %.2f s (p99 %.2f); beside a user who asks for %.0f "
        "times as much, of whose %d jobs %d were refused, %zu take %.2f s (p99 %.2f): %.2f times\n",
        places, kGpus, quiet.seconds.size(), Mean(quiet.seconds), P99(quiet.seconds), noisy.noise(),
        noisy.first_calls, noisy.first_refused, noisy.seconds.size(), Mean(noisy.seconds), P99(noisy.seconds),
        times_as_long);
    TellFigure("the noisy user asks a server for, times", noisy.noise());
    TellFigure("others' jobs take, times as long", times_as_long);
    // Behind all that he may have unfinished they would wait a dozen times as long as without.
    EXPECT_LT(times_as_long, 5);
  }
}

}  // namespace
}  // namespace fusion::testing
