// A stage on which tests run jobs: a TurnClock, a device of queues, a gate that obeys the test.
// Times are in microseconds since the job's time 0.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "capture/clock/crew.hpp"
#include "capture/clock/host_clock.hpp"
#include "capture/replay/device.hpp"
#include "capture/replay/job_runner.hpp"
#include "tests/unit/capture/replay/plans.hpp"

namespace bubblesim::capture::testing {

/// Each stream is a queue; an operation lasts as long as its plan says, whatever runs beside it.
/// Calls take the plan's time.
class QueueDevice final : public Device {
 public:
  explicit QueueDevice(HostClock& clock);
  ~QueueDevice() override;

  HostCosts host_costs() const override { return HostCosts::kPlanned; }
  Result<void> prepare(const DeviceJob& job) override;
  void launch(const OpInstance& first, std::uint32_t count, double factor, Duration) override;
  void wait_op(std::uint32_t op, std::uint64_t pass) override;
  void wait_stream(std::uint32_t stream) override;
  void wait_all() override;
  std::uint64_t resident_blocks(std::uint32_t op) const override { return 100 + op; }
  std::uint64_t in_flight() const override { return launched_ - ended_; }
  void end_launches() override;
  Result<void> close() override;
  CounterSet counters() const override { return {}; }

  std::optional<Error> close_fault;    ///< what close() says
  std::optional<Error> prepare_fault;  ///< what prepare() says

 private:
  struct Pending {
    OpInstance op;
    Duration length{};
  };
  struct Stream {
    std::deque<Pending> pending;  ///< front: runs, if `running`
    bool running = false;
    HostTime start{}, end{};
    std::uint64_t launched = 0, ended = 0;
  };

  void run();
  bool finish_due(HostTime now);
  bool start_ready(HostTime now);
  void drop_blocked();
  [[nodiscard]] bool may_start(const OpInstance& op) const;
  template <class Done>
  void wait_until(const Done& done);
  void shut_down();

  HostClock& clock_;
  DeviceJob job_;
  std::vector<Stream> streams_;
  std::vector<std::uint64_t> op_ends_;
  std::uint64_t launched_ = 0, ended_ = 0;
  bool no_more_ = false, closing_ = false;
  Bell work_, done_;
  Crew crew_;
};

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
