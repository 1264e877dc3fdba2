// Everything that a job has on the device, made in order and released in reverse.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "capture/replay/cuda/cuda_device.hpp"
#include "capture/replay/cuda/flights.hpp"
#include "capture/replay/cuda/graph_set.hpp"
#include "capture/replay/cuda/operation_launcher.hpp"
#include "capture/replay/cuda/stream_set.hpp"

namespace bubblesim::capture::cuda {

/// Passes whose events are kept. The host itself waits for an operation whose event was reused.
inline constexpr std::uint64_t kEventPasses = 4;

/// Events of launch units: an operation launched by itself, or a graph (by its first operation), if
/// an operation of another stream waits for the unit.
class UnitEvents {
 public:
  UnitEvents(const Driver& driver, const JobPlan& plan, const GraphSet& graphs);
  ~UnitEvents();
  UnitEvents(const UnitEvents&) = delete;
  UnitEvents& operator=(const UnitEvents&) = delete;
  [[nodiscard]] Result<void> make();

  /// The launch unit of `op`.
  [[nodiscard]] std::uint32_t unit(std::uint32_t op) const;
  [[nodiscard]] std::uint32_t stream(std::uint32_t unit) const { return streams_[unit]; }
  /// Null: no operation waits for the unit. `pass` counts from 0.
  [[nodiscard]] EventHandle event(std::uint32_t unit, std::uint64_t pass) const;
  /// The event of a stream that joins a graph's launch.
  [[nodiscard]] EventHandle stream_event(std::uint32_t stream) const;

 private:
  const Driver& driver_;
  const JobPlan& plan_;
  const GraphSet& graphs_;
  std::vector<std::uint32_t> streams_;  ///< by operation: where its unit is launched
  std::vector<std::array<EventHandle, kEventPasses>> events_;
  std::vector<EventHandle> stream_events_;
};

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

/// Fills `parts`, whose context exists. Measures with the whole GPU, before it makes the job's own
/// streams, which may have only a part of it.
[[nodiscard]] Result<void> make_parts(DeviceParts& parts, const DeviceJob& job, HostClock& clock,
                                      const CudaOptions& options, CounterSet& counters);

}  // namespace bubblesim::capture::cuda
