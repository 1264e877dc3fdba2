#include "capture/replay/cuda/cuda_device.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <mutex>
#include <optional>
#include <thread>

#include "capture/replay/cuda/cuda_counters.hpp"
#include "capture/replay/cuda/device_parts.hpp"

namespace bubblesim::capture {
namespace cuda {
namespace {

constexpr Duration kSpin = std::chrono::microseconds(50);
constexpr Duration kWaitStep = std::chrono::microseconds(20);
constexpr Duration kIdleStep = std::chrono::microseconds(100);
constexpr Duration kHealthStep = std::chrono::milliseconds(10);
constexpr std::uint32_t kSettlePings = 16;
constexpr std::uint64_t kDriftNoticed = 20'000;  ///< ns

/// The parts of a device that no longer answers: to free them would wait for that device. Kept
/// until the process ends, which frees them.
void abandon(DeviceParts parts) {
  static std::mutex mutex;
  static auto* const abandoned = new std::vector<DeviceParts>;
  const std::lock_guard lock(mutex);
  abandoned->push_back(std::move(parts));
}

class CudaDevice final : public Device {
 public:
  CudaDevice(std::unique_ptr<DeviceContext> context, HostClock& clock, CudaOptions options)
      : clock_(clock), options_(std::move(options)) {
    parts_.context = std::move(context);
  }
  ~CudaDevice() override { (void)close(); }

  Result<void> prepare(const DeviceJob& job) override {
    plan_ = job.plan;
    listener_ = job.listener;
    const HostTime begun = clock_.now();
    if (auto made = make_parts(parts_, job, clock_, options_, counters_); !made) {
      // After a silence the device does not answer: to free its parts would wait, too.
      if (clock_.now() > begun + options_.hang_limit) fault(made.error());
      return made;
    }
    last_sign_ = to_ns(clock_.now());
    if (listener_ != nullptr) watcher_ = std::thread([this] { watch(); });
    return {};
  }
  /// Other processes may have prepared for minutes since this one did. They settle at this moment,
  /// too: if contexts take turns on the GPU, each ping costs two switches.
  void settle() override {
    if (failed_ || parts_.flights == nullptr || parts_.streams->size() == 0) return;
    (void)parts_.context->driver().set_current(parts_.streams->context());
    const auto offset =
        measure_offset(*parts_.context, clock_, parts_.streams->at(0), options_.hang_limit,
                       kSettlePings);
    if (!offset) return fault(offset.error());
    const std::lock_guard lock(look_mutex_);
    parts_.clock.measured(*offset);
    last_sign_ = to_ns(clock_.now());
  }
  void launch(const OpInstance& first, std::uint32_t count, double factor, Duration) override {
    const std::lock_guard lock(launch_mutex_);
    if (failed_ || parts_.flights == nullptr) return;
    if (auto done = put(first, count, factor); !done) fault(std::move(done).error());
    if (listener_ == nullptr) look();
  }
  void wait_op(std::uint32_t op, std::uint64_t pass) override {
    wait([&] { return parts_.flights->ended_count(op) > pass; });
  }
  void wait_stream(std::uint32_t stream) override {
    wait([&] { return parts_.flights->in_flight(stream) == 0; });
  }
  void wait_all() override {
    wait([&] { return parts_.flights->in_flight() == 0; });
  }
  std::uint64_t resident_blocks(std::uint32_t op) const override {
    if (!parts_.launcher) return 0;
    return std::uint64_t{parts_.launcher->stand_in(op).blocks_per_sm} * parts_.streams->sms();
  }
  std::uint64_t in_flight() const override {
    return parts_.flights && !failed_ ? parts_.flights->in_flight() : 0;
  }
  Result<void> close() override {
    if (closed_) return {};
    closed_ = true;
    if (parts_.flights) wait_all();
    end_watch();
    if (parts_.flights && !failed_) note_drift();
    if (failed_) {
      abandon(std::move(parts_));
    } else {
      if (parts_.context) (void)parts_.context->driver().set_current(parts_.context->primary());
      parts_.flights.reset();
      parts_.copies.reset();
      parts_.events.reset();
      parts_.graphs.reset();
      parts_.launcher.reset();
      parts_.streams.reset();
      parts_.ring.reset();
      parts_.memory.reset();
      parts_.context.reset();
    }
    if (fault_) return tl::make_unexpected(*fault_);
    return {};
  }
  CounterSet counters() const override {
    const std::lock_guard lock(state_mutex_);
    return counters_;
  }

 private:
  [[nodiscard]] Result<void> put(const OpInstance& first, std::uint32_t count, double factor) {
    BUBBLESIM_CUDA(parts_.context->driver(), set_current, parts_.streams->context());
    const auto has_slot = [&](std::uint32_t op) {
      return parts_.flights->launched_count(op) - parts_.flights->ended_count(op) < kSlots;
    };
    for (std::uint32_t op = first.op; op < first.op + count; ++op) {
      if (has_slot(op)) continue;
      this->count(kSlotWaits);
      if (!wait([&] { return has_slot(op); })) return {};
    }
    Graph* const graph = count > 1 ? parts_.graphs->find(first.op, count) : nullptr;
    if (graph != nullptr) return put_graph(first, *graph, factor);
    for (OpInstance op = first; op.op < first.op + count; ++op.op)
      BUBBLESIM_RETURN_IF_ERROR(put_one(op, factor));
    return {};
  }
  [[nodiscard]] Result<void> put_one(const OpInstance& op, double factor) {
    const std::uint32_t stream = plan_->program.ops[op.op].stream;
    BUBBLESIM_RETURN_IF_ERROR(order_after_edges(op.op, op.pass, stream));
    if (failed_) return {};
    const bool stamped = !parts_.copies->tells(op.op);
    BUBBLESIM_RETURN_IF_ERROR(
        parts_.launcher->enqueue(op.op, parts_.streams->at(stream), factor, 0, stamped));
    if (!stamped) {
      BUBBLESIM_RETURN_IF_ERROR(parts_.copies->record(
          op.op, parts_.flights->launched_count(op.op) + 1, parts_.streams->at(stream)));
    }
    BUBBLESIM_RETURN_IF_ERROR(mark_unit(op.op, op.pass));
    record_launch(op, 1);
    return {};
  }
  [[nodiscard]] Result<void> put_graph(const OpInstance& first, Graph& graph, double factor) {
    const Driver& driver = parts_.context->driver();
    const StreamHandle main = parts_.streams->at(graph.stream);
    for (std::uint32_t op = graph.first; op < graph.first + graph.count; ++op)
      BUBBLESIM_RETURN_IF_ERROR(order_after_edges(op, first.pass, graph.stream));
    if (failed_) return {};
    for (const std::uint32_t other : graph.other_streams) {
      const EventHandle event = parts_.events->stream_event(other);
      BUBBLESIM_CUDA(driver, event_record, event, parts_.streams->at(other));
      BUBBLESIM_CUDA(driver, stream_wait_event, main, event, 0);
    }
    if (graph.scale_set != factor) {
      BUBBLESIM_CUDA(driver, set_words, graph.scale,
                     std::bit_cast<std::uint32_t>(static_cast<float>(factor)), 1, main);
      graph.scale_set = factor;
      if (graph.copies > 0) count(kGraphCopiesUnscaled, graph.copies);
    }
    BUBBLESIM_CUDA(driver, graph_launch, graph.exec, main);
    BUBBLESIM_RETURN_IF_ERROR(mark_unit(graph.first, first.pass));
    if (!graph.other_streams.empty()) {
      const EventHandle event = parts_.events->stream_event(graph.stream);
      BUBBLESIM_CUDA(driver, event_record, event, main);
      for (const std::uint32_t other : graph.other_streams)
        BUBBLESIM_CUDA(driver, stream_wait_event, parts_.streams->at(other), event, 0);
    }
    record_launch(first, graph.count);
    return {};
  }
  [[nodiscard]] Result<void> order_after_edges(std::uint32_t op, std::uint64_t pass,
                                               std::uint32_t stream) {
    const program::Op& plan = plan_->program.ops[op];
    for (std::uint32_t i = 0; i < plan.edge_count; ++i) {
      const auto& [before, lag, passes_back] = plan_->program.edges[plan.first_edge + i];
      if (passes_back > pass) continue;
      if (passes_back == 0 && parts_.events->unit(before) == parts_.events->unit(op)) continue;
      BUBBLESIM_RETURN_IF_ERROR(order_after(before, pass - passes_back, stream));
    }
    return {};
  }
  /// A wait for an event means the event's last recording before the call: earlier operations must
  /// have been launched by now.
  [[nodiscard]] Result<void> order_after(std::uint32_t before, std::uint64_t pass,
                                         std::uint32_t stream) {
    const Flights& flights = *parts_.flights;
    if (flights.launched_count(before) <= pass) {
      count(kEdgeWaits);
      launch_mutex_.unlock();
      const bool launched =
          wait([&] { return flights.launched_count(before) > pass; }, options_.edge_limit);
      launch_mutex_.lock();
      if (!launched) {
        if (!failed_) count(kEdgesGivenUp);
        return {};
      }
    }
    const std::uint32_t unit = parts_.events->unit(before);
    if (flights.ended_count(before) > pass || parts_.events->stream(unit) == stream) return {};
    const EventHandle event = parts_.events->event(unit, pass);
    if (event == nullptr || flights.launched_count(before) > pass + kEventPasses) {
      wait([&] { return flights.ended_count(before) > pass; });
      return {};
    }
    BUBBLESIM_CUDA(parts_.context->driver(), stream_wait_event, parts_.streams->at(stream), event,
                   0);
    return {};
  }
  [[nodiscard]] Result<void> mark_unit(std::uint32_t unit, std::uint64_t pass) {
    const EventHandle event = parts_.events->event(unit, pass);
    if (event == nullptr) return {};
    const StreamHandle stream = parts_.streams->at(parts_.events->stream(unit));
    BUBBLESIM_CUDA(parts_.context->driver(), event_record, event, stream);
    return {};
  }
  void record_launch(const OpInstance& first, std::uint32_t count) {
    const std::lock_guard lock(look_mutex_);
    const HostTime now = clock_.now();
    if (parts_.flights->in_flight() == 0) last_sign_ = to_ns(now);
    OpInstance op = first;
    for (; op.op < first.op + count; ++op.op)
      parts_.flights->launched(op, plan_->program.ops[op.op].stream, now);
  }
  /// First reads records in a loop, then between short sleeps. False: the device failed, or `limit`
  /// passed.
  template <class Done>
  bool wait(const Done& done, std::optional<Duration> limit = std::nullopt) {
    if (parts_.flights == nullptr) return false;
    const HostTime begun = clock_.now();
    HostTime healthy = begun;
    while (true) {
      look();
      if (failed_) return false;
      if (done()) return true;
      const HostTime now = clock_.now();
      if (limit && now > begun + *limit) return false;
      if (now > healthy + kHealthStep) {
        check_health(now);
        healthy = now;
      }
      if (now > begun + kSpin) clock_.sleep_until(now + kWaitStep);
    }
  }
  bool look() {
    const std::lock_guard lock(look_mutex_);
    const std::uint64_t latest = parts_.flights->latest_end_ns();
    if (failed_ || !parts_.flights->look(parts_.clock, clock_.now(), listener_)) return false;
    const HostTime now = clock_.now();
    last_sign_ = to_ns(now);
    if (parts_.flights->latest_end_ns() > latest) {
      parts_.clock.saw(now, parts_.flights->latest_end_ns());
    }
    return true;
  }
  /// An error of the device stays in its context: calls on any stream return it.
  void check_health(HostTime now) {
    if (parts_.flights->in_flight() == 0) return;
    const Driver& driver = parts_.context->driver();
    (void)driver.set_current(parts_.streams->context());
    bool busy = false;
    for (std::uint32_t i = 0; i < parts_.streams->size(); ++i) {
      const Status status = driver.stream_query(parts_.streams->at(i));
      busy |= status == Status::kNotReady;
      if (status == Status::kSuccess || status == Status::kNotReady) continue;
      fault(Error{parts_.context->facts().name, {}, driver.failure("stream_query", status)});
      return;
    }
    const Duration silent{to_ns(now) - last_sign_};
    if (silent <= options_.hang_limit) return;
    const std::lock_guard lock(look_mutex_);
    fault(Error{parts_.context->facts().name,
                {},
                "no operation started or ended for " + std::to_string(to_ns(silent) / 1'000'000) +
                    " ms, and " + std::to_string(parts_.flights->in_flight()) + " are in flight: " +
                    (busy ? "it hangs" : "its streams are done, so records are lost") + " (" +
                    parts_.flights->waited_for() + ")"});
  }
  void watch() {
    const auto part = clock_.join(Turn::kDevice);
    while (!stop_) {
      const bool progressed = look();
      const HostTime now = clock_.now();
      if (progressed) continue;
      clock_.sleep_until(now + (parts_.flights->in_flight() > 0 ? kWaitStep : kIdleStep));
    }
  }
  void count(const CounterSpec& spec, std::uint64_t amount = 1) {
    const std::lock_guard lock(state_mutex_);
    counters_.add(spec, amount);
  }
  void fault(Error error) {
    const std::lock_guard lock(state_mutex_);
    if (fault_) return;
    fault_ = std::move(error);
    counters_.add(kDeviceFault);
    failed_ = true;
  }
  void end_watch() {
    stop_ = true;
    if (watcher_.joinable()) watcher_.join();
  }
  void note_drift() {
    DeviceContext& context = *parts_.context;
    (void)context.driver().set_current(parts_.streams->context());
    if (parts_.streams->size() == 0) return;
    const auto now = measure_offset(context, clock_, parts_.streams->at(0), options_.hang_limit);
    if (!now) return fault(now.error());
    const auto error = static_cast<std::uint64_t>(std::abs(parts_.clock.error_ns(*now)));
    count(kDrift, static_cast<std::uint64_t>(std::abs(parts_.clock.moved_ns(*now))));
    count(kDriftLeft, error);
    if (error > kDriftNoticed) count(kDriftLarge);
  }

  HostClock& clock_;
  CudaOptions options_;
  DeviceParts parts_;
  const JobPlan* plan_ = nullptr;
  DeviceListener* listener_ = nullptr;
  std::mutex launch_mutex_;         ///< the order of calls is the order on streams; the outermost
                                    ///< mutex
  std::mutex look_mutex_;           ///< for flights and listener
  mutable std::mutex state_mutex_;  ///< for counters and fault; the innermost mutex
  CounterSet counters_;
  std::optional<Error> fault_;
  std::atomic<bool> failed_{false};
  std::atomic<std::int64_t> last_sign_{0};  ///< ns of the clock: of life
  std::atomic<bool> stop_{false};
  std::thread watcher_;
  bool closed_ = false;
};

}  // namespace
}  // namespace cuda

Result<std::unique_ptr<Device>> open_cuda_device(std::uint32_t index, HostClock& clock,
                                                 const CudaOptions& options) {
  BUBBLESIM_ASSIGN_OR_RETURN(auto context, cuda::DeviceContext::open(options.library, index));
  return std::unique_ptr<Device>(
      std::make_unique<cuda::CudaDevice>(std::move(context), clock, options));
}

}  // namespace bubblesim::capture
