#include "capture/replay/cuda/cuda_device.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <fcntl.h>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <sys/file.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include "capture/replay/cuda/cuda_counters.hpp"
#include "capture/replay/cuda/flights.hpp"
#include "capture/replay/cuda/graph_set.hpp"
#include "capture/replay/cuda/operation_launcher.hpp"
#include "capture/replay/cuda/stream_set.hpp"
#include "sim/base/time.hpp"

namespace bubblesim::capture {
namespace cuda {
namespace {

/// Passes whose events are kept. The host itself waits for an operation whose event was reused.
constexpr std::uint64_t kEventPasses = 4;

/// Events of launch units: an operation launched by itself, or a graph (by its first operation), if
/// an operation of another stream waits for the unit.
class UnitEvents {
 public:
  UnitEvents(const Driver& driver, const JobPlan& plan, const GraphSet& graphs)
      : driver_(driver), plan_(plan), graphs_(graphs), events_(plan.program.ops.size()) {
    for (std::uint32_t op = 0; op < plan.program.ops.size(); ++op)
      streams_.push_back(plan.program.ops[unit(op)].stream);
  }
  [[nodiscard]] Result<void> make() {
    stream_events_.resize(plan_.program.stream_count);
    for (OwnEvent& event : stream_events_) {
      BUBBLESIM_ASSIGN_OR_RETURN(event, make_event(driver_));
    }
    for (std::uint32_t op = 0; op < plan_.program.ops.size(); ++op) {
      for (std::uint32_t i = 0; i < plan_.program.ops[op].edge_count; ++i) {
        const std::uint32_t before =
            unit(plan_.program.edges[plan_.program.ops[op].first_edge + i].before);
        if (before == unit(op) || streams_[before] == streams_[op]) continue;
        for (OwnEvent& event : events_[before]) {
          if (event != nullptr) continue;
          BUBBLESIM_ASSIGN_OR_RETURN(event, make_event(driver_));
        }
      }
    }
    return {};
  }

  /// The launch unit of `op`.
  [[nodiscard]] std::uint32_t unit(std::uint32_t op) const {
    const Graph* graph = graphs_.holding(op);
    return graph == nullptr ? op : graph->first;
  }
  [[nodiscard]] std::uint32_t stream(std::uint32_t unit) const { return streams_[unit]; }
  /// Null: no operation waits for the unit. `pass` counts from 0.
  [[nodiscard]] EventHandle event(std::uint32_t unit, std::uint64_t pass) const {
    return events_[unit][pass % kEventPasses].get();
  }
  /// The event of a stream that joins a graph's launch.
  [[nodiscard]] EventHandle stream_event(std::uint32_t stream) const {
    return stream_events_[stream].get();
  }

 private:
  const Driver& driver_;
  const JobPlan& plan_;
  const GraphSet& graphs_;
  std::vector<std::uint32_t> streams_;  ///< by operation: where its unit is launched
  std::vector<std::array<OwnEvent, kEventPasses>> events_;
  std::vector<OwnEvent> stream_events_;
};

/// Everything that a job has on the device, made in order and released in reverse.
struct DeviceParts {
  std::unique_ptr<DeviceContext> context;
  std::unique_ptr<DeviceMemory> memory;
  std::unique_ptr<RecordRing> ring;
  std::unique_ptr<StreamSet> streams;
  std::unique_ptr<OperationLauncher> launcher;
  std::unique_ptr<GraphSet> graphs;
  std::unique_ptr<UnitEvents> events;
  std::unique_ptr<CopyEvents> copies;
  std::unique_ptr<Flights> flights;
  ClockTrack clock;
};

// Lets one process at a time measure on a GPU: a lock that ends with its process, in any case.

class DeviceLock {
 public:
  /// Waits until no other process has the lock, at most `patience` of the machine's time, and calls
  /// `waiting` about once a second. An empty folder, or one that cannot be written to, gives no
  /// lock.
  DeviceLock(const std::string& folder, const std::string& uuid, Duration patience,
             const std::function<void()>& waiting = {}) {
    if (folder.empty()) return;
    const std::string path = folder + "/bubblesim-measures-" + uuid;
    file_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    // In a folder such as /tmp Linux lets nobody open another user's file for creation.
    if (file_ < 0) file_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (file_ < 0) return;
    auto say = std::chrono::steady_clock::now();
    const auto until = std::chrono::steady_clock::now() + patience;
    while (!(held_ = ::flock(file_, LOCK_EX | LOCK_NB) == 0)) {
      const auto now = std::chrono::steady_clock::now();
      if (now >= until) return;
      if (waiting && now >= say) {
        waiting();
        say = now + std::chrono::seconds(1);
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }
  ~DeviceLock() {
    if (file_ >= 0) ::close(file_);
  }
  DeviceLock(const DeviceLock&) = delete;
  DeviceLock& operator=(const DeviceLock&) = delete;
  [[nodiscard]] bool held() const { return held_; }

 private:
  int file_ = -1;
  bool held_ = false;
};

constexpr Duration kLockPatience = std::chrono::minutes(15);

Result<void> measure(DeviceParts& parts, const DeviceJob& job, HostClock& clock,
                     const CudaOptions& options, CounterSet& counters) {
  DeviceContext& context = *parts.context;
  const auto waiting = [&job] {
    if (job.progress) job.progress("waits until another process has measured its kernels");
  };
  const DeviceLock lock(options.lock_folder, context.facts().uuid, kLockPatience, waiting);
  if (!options.lock_folder.empty() && !lock.held()) counters.add(kLockNotHeld);
  BUBBLESIM_ASSIGN_OR_RETURN(const OwnStream measuring, make_stream(context.driver()));
  const StreamHandle stream = measuring.get();
  FitCache cache(options.fit_cache, context.facts());
  const StandInNeeds needs{context, clock,    *parts.memory, *parts.ring,
                           cache,   counters, job.progress,  options};
  BUBBLESIM_ASSIGN_OR_RETURN(auto stand_ins, make_stand_ins(needs, *job.plan));
  parts.launcher = std::make_unique<OperationLauncher>(context, *job.plan, *parts.memory,
                                                       *parts.ring, std::move(stand_ins));
  BUBBLESIM_RETURN_IF_ERROR(parts.launcher->prepare(clock, stream, options.hang_limit));
  BUBBLESIM_ASSIGN_OR_RETURN(const ClockOffset offset,
                             measure_offset(context, clock, stream, options.hang_limit));
  parts.clock.measured(offset);
  counters.add(kTick, static_cast<std::uint64_t>(std::max<std::int64_t>(offset.tick_ns, 0)));
  counters.add(kOffsetSpan, static_cast<std::uint64_t>(offset.highest_ns - offset.lowest_ns));
  return {};
}

/// Fills `parts`, whose context exists. Measures with the whole GPU, before it makes the job's own
/// streams, which may have only a part of it.
Result<void> make_parts(DeviceParts& parts, const DeviceJob& job, HostClock& clock,
                        const CudaOptions& options, CounterSet& counters) {
  const JobPlan& plan = *job.plan;
  DeviceContext& context = *parts.context;
  const Driver& driver = context.driver();
  const auto operations = static_cast<std::uint32_t>(plan.program.ops.size());
  BUBBLESIM_CUDA(driver, set_current, context.primary());
  BUBBLESIM_ASSIGN_OR_RETURN(parts.memory, DeviceMemory::make(context, plan));
  BUBBLESIM_ASSIGN_OR_RETURN(parts.ring, RecordRing::make(driver, operations + 1));
  BUBBLESIM_RETURN_IF_ERROR(measure(parts, job, clock, options, counters));
  BUBBLESIM_ASSIGN_OR_RETURN(parts.streams, StreamSet::make(context, plan, counters));
  BUBBLESIM_ASSIGN_OR_RETURN(parts.graphs,
                             GraphSet::make(context, plan, *parts.memory, *parts.streams,
                                            *parts.launcher, counters));
  parts.events = std::make_unique<UnitEvents>(driver, plan, *parts.graphs);
  BUBBLESIM_RETURN_IF_ERROR(parts.events->make());
  parts.copies = std::make_unique<CopyEvents>(driver, parts.streams->context());
  BUBBLESIM_RETURN_IF_ERROR(parts.copies->make(plan, *parts.graphs));
  parts.flights = std::make_unique<Flights>(*parts.ring, *parts.copies, plan.program);
  return {};
}

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
      const DeviceParts released = std::move(parts_);
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
    BUBBLESIM_CUDA(driver, graph_launch, graph.exec.get(), main);
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
