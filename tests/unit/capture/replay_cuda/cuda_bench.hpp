// A CUDA device on the fake driver, a clock that moves when it is looked at, and short ways to
// write plans.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "capture/replay/cuda/cuda_device.hpp"
#include "tests/fakes/driver/fake_driver.hpp"

namespace bubblesim::capture {

/// Each look takes 100 ns; a sleep takes what it says. The fake driver follows.
class StepClock final : public HostClock {
 public:
  [[nodiscard]] HostTime now() const override;
  [[nodiscard]] std::unique_ptr<ClockPart> join(Turn) override;
  void sleep_until(HostTime until) override;
  void wait(Bell&, std::uint32_t, HostTime deadline) override { sleep_until(deadline); }
  void ring(Bell&) override {}
  [[nodiscard]] std::uint32_t bell_id() override { return 1; }
  [[nodiscard]] std::uint32_t parts_begun() const override { return 0; }
  [[nodiscard]] bool await_parts(std::uint32_t, Duration) override { return true; }
  [[nodiscard]] TurnHolder holder() const override { return {}; }
  [[nodiscard]] std::string address() const override { return "steps"; }

 private:
  mutable std::atomic<std::int64_t> ns_{1'000'000};
};

struct Told {
  OpInstance op;
  HostTime start{};
  HostTime end{};
  [[nodiscard]] std::int64_t lasted() const { return to_ns(end - start); }
};

class Listener final : public DeviceListener {
 public:
  void on_started(const OpInstance&, HostTime) override { ++starts; }
  void on_finished(const OpInstance& op, HostTime start, HostTime end) override;
  [[nodiscard]] std::vector<Told> told() const;
  /// Times of the operation's execution in this pass.
  [[nodiscard]] Told of(std::uint32_t op, std::uint64_t pass = 0) const;
  std::atomic<int> starts{0};

 private:
  mutable std::mutex mutex_;
  std::vector<Told> told_;
};

class CudaBench : public ::testing::Test {
 protected:
  void SetUp() override;
  void TearDown() override;

  /// Adds an operation; its number.
  std::uint32_t kernel(Duration solo, std::uint32_t stream = 0,
                       const std::vector<std::uint32_t>& after = {});
  std::uint32_t copy(std::uint64_t bytes, CopyPath path, std::uint32_t stream = 0);
  void graph(std::uint32_t first, std::uint32_t count);
  /// Opens and prepares with the listener.
  [[nodiscard]] Result<void> open();
  [[nodiscard]] Result<void> prepare(Device& device, DeviceListener* listener);
  void launch(std::uint32_t op, std::uint32_t count = 1, std::uint64_t pass = 0, double factor = 1);
  /// Closes, so that all was told.
  [[nodiscard]] Result<void> close();
  [[nodiscard]] std::uint64_t counted(const char* name) const;
  /// Runs the operation and closes: its times lie between the host's before and after it.
  void expect_times_of_the_host(std::uint32_t op);

  JobPlan plan_;
  CudaOptions options_;
  StepClock clock_;
  Listener listener_;
  std::unique_ptr<Device> device_;
};

}  // namespace bubblesim::capture
