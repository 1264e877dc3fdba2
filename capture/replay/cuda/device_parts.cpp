#include "capture/replay/cuda/device_parts.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <string>
#include <thread>

#include "capture/replay/cuda/cuda_counters.hpp"
#include "sim/base/time.hpp"

namespace bubblesim::capture::cuda {
namespace {

// Lets one process at a time measure on a GPU: a lock that ends with its process, in any case.

class DeviceLock {
 public:
  /// Waits until no other process has the lock, at most `patience` of the machine's time, and calls
  /// `waiting` about once a second. An empty folder, or one that cannot be written to, gives no
  /// lock.
  DeviceLock(const std::string& folder, const std::string& uuid, Duration patience,
             const std::function<void()>& waiting = {});
  ~DeviceLock();
  DeviceLock(const DeviceLock&) = delete;
  DeviceLock& operator=(const DeviceLock&) = delete;
  [[nodiscard]] bool held() const { return held_; }

 private:
  int file_ = -1;
  bool held_ = false;
};

DeviceLock::DeviceLock(const std::string& folder, const std::string& uuid, Duration patience,
                       const std::function<void()>& waiting) {
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

DeviceLock::~DeviceLock() {
  if (file_ >= 0) ::close(file_);
}

constexpr Duration kLockPatience = std::chrono::minutes(15);

/// A stream of the primary context for measurements while preparing.
class MeasuringStream {
 public:
  explicit MeasuringStream(const Driver& driver) : driver_(driver) {}
  ~MeasuringStream() {
    if (stream_ != nullptr) (void)driver_.stream_destroy(stream_);
  }
  MeasuringStream(const MeasuringStream&) = delete;
  MeasuringStream& operator=(const MeasuringStream&) = delete;
  [[nodiscard]] Result<StreamHandle> make() {
    BUBBLESIM_CUDA(driver_, stream_create, &stream_, kStreamNonBlocking, 0);
    return stream_;
  }

 private:
  const Driver& driver_;
  StreamHandle stream_ = nullptr;
};

Result<void> measure(DeviceParts& parts, const DeviceJob& job, HostClock& clock,
                     const CudaOptions& options, CounterSet& counters) {
  DeviceContext& context = *parts.context;
  const auto waiting = [&job] {
    if (job.progress) job.progress("waits until another process has measured its kernels");
  };
  const DeviceLock lock(options.lock_folder, context.facts().uuid, kLockPatience, waiting);
  if (!options.lock_folder.empty() && !lock.held()) counters.add(kLockNotHeld);
  MeasuringStream measuring(context.driver());
  BUBBLESIM_ASSIGN_OR_RETURN(const StreamHandle stream, measuring.make());
  FitCache cache(options.fit_cache, context.facts());
  const StandIns::Needs needs{context,      clock,           *parts.memory,
                              *parts.ring,  cache,           counters,
                              job.progress, options.warm_up, options.hang_limit,
                              options.fit_budget, options.whole_gpu};
  BUBBLESIM_ASSIGN_OR_RETURN(auto stand_ins, StandIns::make(needs, *job.plan));
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

}  // namespace

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
  const StreamWish wish{plan.program.stream_count, plan.priority, plan.sms};
  BUBBLESIM_ASSIGN_OR_RETURN(parts.streams, StreamSet::make(context, wish, counters));
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

UnitEvents::UnitEvents(const Driver& driver, const JobPlan& plan, const GraphSet& graphs)
    : driver_(driver), plan_(plan), graphs_(graphs), events_(plan.program.ops.size()) {
  for (std::uint32_t op = 0; op < plan.program.ops.size(); ++op)
    streams_.push_back(plan.program.ops[unit(op)].stream);
}

std::uint32_t UnitEvents::unit(std::uint32_t op) const {
  const Graph* graph = graphs_.holding(op);
  return graph == nullptr ? op : graph->first;
}

Result<void> UnitEvents::make() {
  stream_events_.resize(plan_.program.stream_count);
  for (EventHandle& event : stream_events_)
    BUBBLESIM_CUDA(driver_, event_create, &event, kEventDisableTiming);
  for (std::uint32_t op = 0; op < plan_.program.ops.size(); ++op) {
    for (std::uint32_t i = 0; i < plan_.program.ops[op].edge_count; ++i) {
      const std::uint32_t before =
          unit(plan_.program.edges[plan_.program.ops[op].first_edge + i].before);
      if (before == unit(op) || streams_[before] == streams_[op]) continue;
      for (EventHandle& event : events_[before])
        if (event == nullptr)
          BUBBLESIM_CUDA(driver_, event_create, &event, kEventDisableTiming);
    }
  }
  return {};
}

EventHandle UnitEvents::event(std::uint32_t unit, std::uint64_t pass) const {
  return events_[unit][pass % kEventPasses];
}
EventHandle UnitEvents::stream_event(std::uint32_t stream) const { return stream_events_[stream]; }

UnitEvents::~UnitEvents() {
  for (const auto& of_unit : events_)
    for (EventHandle event : of_unit)
      if (event != nullptr) (void)driver_.event_destroy(event);
  for (EventHandle event : stream_events_)
    if (event != nullptr) (void)driver_.event_destroy(event);
}

}  // namespace bubblesim::capture::cuda
