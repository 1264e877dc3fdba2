// On which GPU a thread launches, and whether the gate watches that one.
//
// A gate decides about one GPU: the filler's. Whoever runs the programs says which if it is sure;
// otherwise the filler's first launch does, and training's launches until then are none of the
// gate's. So the rank of training that is on that GPU is the client, whichever rank launches first.
#pragma once

#include <memory>
#include <string>

#include "capture/clock/shared_segment.hpp"
#include "capture/gate/gate_segment.hpp"
#include "sim/base/ids.hpp"

namespace bubblesim::capture::interpose {

/// Thread-safe. Where the driver or the gate does not say, every launch is on the gate's GPU.
class OwnGpu {
 public:
  OwnGpu(const std::string& gate, ClientId client);

  enum class Where : std::uint8_t { kHere, kElsewhere, kNotKnownYet };
  /// Of a launch into the calling thread's context. Some 20 ns once the context has been seen.
  [[nodiscard]] Where where() const;

 private:
  std::unique_ptr<SharedSegment> memory_;  ///< null: there is no such gate
  ClientId client_;
};

}  // namespace bubblesim::capture::interpose
