// A job's streams: with the job's priority and, if it asks for some, on SMs of its own (a green
// context).
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "capture/replay/cuda/device_context.hpp"
#include "capture/replay/job_plan.hpp"
#include "sim/base/counters.hpp"
#include "sim/base/result.hpp"

namespace bubblesim::capture::cuda {

class StreamSet {
 public:
  /// The plan's streams, priority (clamped to the driver's range, and counted) and SMs. Jobs of
  /// one process get different SMs as long as there are enough; SMs that the driver adds or that
  /// overlap are counted. Fault: the driver's; SMs were asked of a driver without green contexts.
  [[nodiscard]] static Result<std::unique_ptr<StreamSet>> make(DeviceContext& context,
                                                               const JobPlan& plan,
                                                               CounterSet& counters);
  ~StreamSet();
  StreamSet(const StreamSet&) = delete;
  StreamSet& operator=(const StreamSet&) = delete;

  [[nodiscard]] StreamHandle at(std::uint32_t stream) const { return streams_[stream]; }
  [[nodiscard]] std::uint32_t size() const { return static_cast<std::uint32_t>(streams_.size()); }
  /// The context that threads using these streams have current: always the primary one. A stream
  /// keeps its green context, and a green context may be current to one thread only.
  [[nodiscard]] ContextHandle context() const { return context_.primary(); }
  [[nodiscard]] std::uint32_t sms() const { return sms_; }

 private:
  explicit StreamSet(DeviceContext& context) : context_(context) {}
  [[nodiscard]] Result<void> make_green(std::uint32_t sms, CounterSet& counters);
  [[nodiscard]] Result<void> add_streams(std::uint32_t count, int priority);

  DeviceContext& context_;
  GreenHandle green_ = nullptr;
  std::uint32_t sms_ = 0;
  std::vector<StreamHandle> streams_;
};

inline constexpr CounterSpec kPriorityClamped{"cuda_stream_priority_clamped", Severity::kNotice,
    "Jobs whose priority is beyond CUDA's range; equal streams then compete as equals."};
inline constexpr CounterSpec kSmsRounded{"cuda_green_context_sms_rounded", Severity::kNotice,
    "SMs that a green context has more than the job asked for: the driver gives them in groups."};
inline constexpr CounterSpec kSmsOverlap{"cuda_green_contexts_overlap", Severity::kNotice,
    "Jobs whose SMs are also another job's of this process, for too few were left."};

}  // namespace bubblesim::capture::cuda
