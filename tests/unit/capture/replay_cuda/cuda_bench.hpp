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
#include "capture/replay/cuda/kernel_image.hpp"
#include "tests/fakes/driver/fake_driver.hpp"
#include "tests/unit/capture/replay/plans.hpp"

namespace bubblesim::capture {

/// Each look takes 100 ns; a sleep takes what it says. The fake driver follows.
class StepClock final : public HostClock {
 public:
  [[nodiscard]] HostTime now() const override {
    const std::int64_t ns = ns_.fetch_add(100) + 100;
    fake_driver::advance_to(ns);
    return HostTime{Duration{ns}};
  }
  [[nodiscard]] std::unique_ptr<ClockPart> join(Turn) override {
    return std::make_unique<ClockPart>();
  }
  void sleep_until(HostTime until) override {
    std::int64_t ns = ns_.load();
    while (ns < to_ns(until) && !ns_.compare_exchange_weak(ns, to_ns(until))) {
    }
    fake_driver::advance_to(ns_.load());
  }
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
  void on_finished(const OpInstance& op, HostTime start, HostTime end) override {
    const std::lock_guard lock(mutex_);
    told_.push_back({op, start, end});
  }
  [[nodiscard]] std::vector<Told> told() const {
    const std::lock_guard lock(mutex_);
    return told_;
  }
  /// Times of the operation's execution in this pass.
  [[nodiscard]] Told of(std::uint32_t op, std::uint64_t pass = 0) const {
    for (const Told& kernel : told())
      if (kernel.op.op == op && kernel.op.pass == pass) return kernel;
    ADD_FAILURE() << "operation " << op << " of pass " << pass << " was not told";
    return {};
  }
  std::atomic<int> starts{0};

 private:
  mutable std::mutex mutex_;
  std::vector<Told> told_;
};

class CudaBench : public ::testing::Test {
 protected:
  void SetUp() override {
    if (cuda::kernel_image().empty()) GTEST_SKIP() << "built without nvcc: no stand-in kernels";
    fake_driver::reset();
    options_.library = FAKE_DRIVER;
    options_.lock_folder.clear();
    options_.warm_up = {};
    options_.hang_limit = std::chrono::milliseconds(100);
    options_.edge_limit = std::chrono::milliseconds(5);
    plan_.name = "job";
    plan_.program.names.intern("gemm");
    plan_.program.stream_count = 3;
    plan_.program.threads.resize(1);
    KernelForm form;
    form.shape.grid = {132, 1, 1};
    form.shape.block = {256, 1, 1};
    form.bound = program::KernelClass::kCompute;
    plan_.forms = {form};
  }
  void TearDown() override { device_.reset(); }

  /// Adds an operation; its number.
  std::uint32_t kernel(Duration solo, std::uint32_t stream = 0,
                       const std::vector<std::uint32_t>& after = {}) {
    const std::uint32_t op = testing::add_kernel(plan_, stream, solo);
    for (const std::uint32_t before : after) testing::add_edge(plan_, before);
    return op;
  }
  std::uint32_t copy(std::uint64_t bytes, CopyPath path, std::uint32_t stream = 0) {
    program::Op op;
    op.kind = program::WorkKind::kCopy;
    op.stream = static_cast<std::uint16_t>(stream);
    op.profile = index_in(plan_.copies, {Bytes{bytes}, path});
    op.duration = std::chrono::microseconds(100);
    plan_.program.ops.push_back(op);
    return static_cast<std::uint32_t>(plan_.program.ops.size() - 1);
  }
  void graph(std::uint32_t first, std::uint32_t count) {
    plan_.program.threads[0].steps.push_back(testing::launch({}, {}, first, count));
  }
  /// Opens and prepares with the listener.
  [[nodiscard]] Result<void> open() {
    BUBBLESIM_ASSIGN_OR_RETURN(device_, open_cuda_device(0, clock_, options_));
    return prepare(*device_, &listener_);
  }
  [[nodiscard]] Result<void> prepare(Device& device, DeviceListener* listener) {
    return device.prepare({&plan_, listener, {}});
  }
  void launch(std::uint32_t op, std::uint32_t count = 1, std::uint64_t pass = 0,
              double factor = 1) {
    device_->launch({op, pass, pass + 1}, count, factor, {});
  }
  /// Closes, so that all was told.
  [[nodiscard]] Result<void> close() { return device_->close(); }
  [[nodiscard]] std::uint64_t counted(const char* name) const {
    return device_->counters().count(name);
  }
  /// Runs the operation and closes: its times lie between the host's before and after it.
  void expect_times_of_the_host(std::uint32_t op) {
    constexpr Duration kOff = std::chrono::microseconds(5);
    const HostTime before = clock_.now();
    launch(op);
    device_->wait_all();
    const HostTime after = clock_.now();
    ASSERT_TRUE(close());
    EXPECT_GE(listener_.of(op).start, before - kOff);
    EXPECT_LE(listener_.of(op).end, after + kOff);
    EXPECT_EQ(counted("cuda_clock_drift_large"), 0U);
  }

  JobPlan plan_;
  CudaOptions options_;
  StepClock clock_;
  Listener listener_;
  std::unique_ptr<Device> device_;
};

}  // namespace bubblesim::capture
