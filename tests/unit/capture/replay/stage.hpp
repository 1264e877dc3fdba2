// A stage on which tests run jobs: a TurnClock, a device of queues, a gate that obeys the test.
// Times are in microseconds since the job's time 0.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "capture/clock/host_clock.hpp"
#include "capture/replay/job_runner.hpp"
#include "tests/unit/capture/replay/plans.hpp"
#include "tests/unit/capture/replay/queue_device.hpp"

namespace bubblesim::capture::testing {

/// Logs what the job tells it, with the time.
class StubGate final : public GateClient {
 public:
  explicit StubGate(HostClock& clock) : clock_(clock), origin_(clock.now()) {}

  Passage launch(policy::LaunchInfo launch) override;
  std::uint64_t last_launch() const override { return launches_; }
  void completed(program::WorkKind, std::uint64_t launch, std::uint32_t) override;
  bool has_room() const override { return true; }
  void iteration_ended(Duration length) override;
  void bubble_began(const policy::BubbleInfo& bubble) override;
  void bubble_ended() override { note("bubble ends"); }
  std::uint32_t window() const override { return window_size; }
  void look_for_host() override {}
  GateClientCounts counts() const override { return {launches_, 0, 0}; }

  std::uint32_t window_size = 0;
  std::map<std::uint64_t, Duration> held_until;  ///< by launch; since origin_
  std::vector<std::string> heard;                ///< "12 completed 3"
  std::vector<policy::LaunchInfo> launched;

 private:
  void note(const std::string& what);

  HostClock& clock_;
  HostTime origin_;
  std::uint64_t launches_ = 0;
};

class Stage {
 public:
  Stage();

  /// Runs the job; stops it at `stop`, if given.
  ReplayEnd run(const JobPlan& plan, std::optional<Duration> stop = std::nullopt);

  HostClock& clock() { return *clock_; }
  QueueDevice& device() { return *device_; }
  /// Gives the job a gate from now on.
  StubGate& gate();

  std::uint32_t iterations_told = 0;

 private:
  std::unique_ptr<HostClock> clock_;
  std::unique_ptr<ClockPart> part_;
  std::unique_ptr<QueueDevice> device_;
  std::unique_ptr<StubGate> gate_;
};

/// "0: called 2, runs 2 to 12, returned 3" for each operation, in order of their ends.
[[nodiscard]] std::vector<std::string> timeline(const JobRecord& record);

/// In whole microseconds.
[[nodiscard]] std::vector<std::int64_t> in_us(const std::vector<Duration>& instants);
[[nodiscard]] std::int64_t in_us(Duration instant);

}  // namespace bubblesim::capture::testing
