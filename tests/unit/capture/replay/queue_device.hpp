// A device for tests of the job runner. Each stream is a queue; an operation lasts as long as its
// plan says, whatever runs beside it. Calls take the plan's time.
#pragma once

#include <deque>
#include <optional>
#include <vector>

#include "capture/clock/crew.hpp"
#include "capture/replay/device.hpp"

namespace bubblesim::capture::testing {

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

}  // namespace bubblesim::capture::testing
