// Puts one operation on a stream: its stand-in, or a copy or memset, between two stamps that record
// when it began and ended where no event tells (flights.hpp). The same calls put it into a
// graph while the stream is captured.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "capture/replay/cuda/device_context.hpp"
#include "capture/replay/cuda/record_ring.hpp"
#include "capture/replay/cuda/stand_ins.hpp"

namespace bubblesim::capture::cuda {

class OperationLauncher {
 public:
  OperationLauncher(DeviceContext& context, const JobPlan& plan, const DeviceMemory& memory,
                    const RecordRing& ring, std::vector<StandIn> stand_ins)
      : context_(context), plan_(plan), memory_(memory), ring_(ring),
        stand_ins_(std::move(stand_ins)) {}

  /// Finds the stamp kernels. Measures the speed of copies whose bytes the plan does not say: one
  /// chunk of each path, by `clock`, with the device idle.
  [[nodiscard]] Result<void> prepare(HostClock& clock, StreamHandle stream, Duration patience);

  /// `scale`: the graph's or 0; `stamped`: of copies, memsets. The stream's context is current.
  [[nodiscard]] Result<void> enqueue(std::uint32_t op, StreamHandle stream, double factor,
                                     DevicePointer scale, bool stamped = true) const;
  [[nodiscard]] const StandIn& stand_in(std::uint32_t op) const { return stand_ins_[op]; }

 private:
  [[nodiscard]] Result<void> enqueue_kernel(std::uint32_t op, StreamHandle stream, double factor,
                                            DevicePointer scale) const;
  [[nodiscard]] Result<void> enqueue_copy(std::uint32_t op, StreamHandle stream, double factor,
                                          bool stamped) const;
  [[nodiscard]] Result<void> stamp(KernelHandle kernel, std::uint32_t op,
                                   StreamHandle stream) const;
  [[nodiscard]] Result<void> move(std::size_t path, std::uint64_t bytes,
                                  StreamHandle stream) const;
  [[nodiscard]] Result<double> measure_rate(std::size_t path, HostClock& clock,
                                            StreamHandle stream, Duration patience) const;

  DeviceContext& context_;
  const JobPlan& plan_;
  const DeviceMemory& memory_;
  const RecordRing& ring_;
  std::vector<StandIn> stand_ins_;
  KernelHandle begin_ = nullptr;
  KernelHandle end_ = nullptr;
  std::array<double, 4> bytes_per_ns_{};  ///< by path; memsets last
};

}  // namespace bubblesim::capture::cuda
