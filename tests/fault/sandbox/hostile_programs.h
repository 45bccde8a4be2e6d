// Native code of a hostile candidate, run as candidates are: compiled by HostBuilder, executed by a runner
// for host code between two honest candidates.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/sandbox/machine_offer.h"
#include "worker/build/builder.h"
#include "worker/measure/time_task.h"

namespace fusion {

// One thing that a candidate tries.
struct Probe {
  std::string name;  // an identifier
  // The body of a C++ function that returns whether it did harm: it tries once in each runner. Unless it did,
  // the kernel computes what it should. May use what Prelude() of hostile_programs.cc defines.
  std::string body;
  // True: the probe does harm in a process that is not confined, as the control; false where that depends on
  // the machine or on the user that runs the test.
  bool harms_unconfined = false;
  v1::Outcome outcome = v1::OK;             // FAULT: trying ends the runner
  std::function<bool()> harm_outside = {};  // looked at afterwards
  bool spoils_neighbours = false;           // those measured in the same runner fail with it
};

// The parameter: in bubblewrap, or without it as where namespaces are forbidden.
class HostileProgramTest : public ::testing::TestWithParam<bool> {
 protected:
  void SetUp() override;
  void TearDown() override;

  // Runs each probe between two honest candidates, which must be measured, and expects its outcome and no
  // harm; then that a runner starts and works again.
  void ExpectHarmless(const std::vector<Probe>& probes);

  bool in_bubblewrap() const { return GetParam(); }
  std::string Path(const std::string& name) const { return folder_ + "/" + name; }
  // Opens and reads a file: a body of a probe.
  static std::string Reads(const std::string& path);
  static std::string Writes(const std::string& path);
  bool Exists(const std::string& name) const;

  // A text that must not get out: it is in a file of this process' user, in its environment and in its
  // memory.
  static constexpr char kSecret[] = "fusion-fault-secret-5e1f";
  std::string folder_;          // with the file "secret"
  int secret_descriptor_ = -1;  // of that file, not closed on exec

 private:
  // Tries the probe in a child of this process, which nothing confines. Returns whether it did harm.
  bool HarmsUnconfined(const std::string& probe) const;
  v1::Program ProgramOf(const std::string& kernel) const;
  std::string Prelude() const;

  v1::TimeTask task_;
  std::unique_ptr<RunnerProcess> runner_;
  std::string digest_, binary_;
};

}  // namespace fusion
