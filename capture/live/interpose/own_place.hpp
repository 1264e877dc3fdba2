// The place that this very process holds at a gate, given up from outside of its GateClient: after
// an exec, whose new image knows nothing of the old one's client, and at an exit while threads are
// still at the gate.
#pragma once

#include <memory>
#include <string>

#include "capture/clock/shared_segment.hpp"
#include "capture/live/live_folder.hpp"
#include "sim/base/ids.hpp"

namespace bubblesim::capture::interpose {

/// Frees the place for the next process or image, and gives back the rows of all threads; waiting
/// threads go on. False, with nothing done: it is not certain that this process holds the place, or
/// there is no such gate.
bool give_up_own_place(const std::string& gate, ClientId client) noexcept;

// The files of a job's processes: their counts, and notes for the user.

/// The counts of this client in `folder`; without such a file, counts that no process reads. The
/// counts stay mapped.
[[nodiscard]] LiveCounts& open_counts(const std::string& folder, const std::string& client);

/// Adds a line to the folder's notes: "client 1: process 4711 (python3) WHAT". No folder: to
/// standard error.
void note(const std::string& folder, const std::string& client, const std::string& what);

// Tells on which GPU a thread launches, and whether the gate watches this GPU.
//
// A gate decides about one GPU: the filler's. The tool that runs the programs names it if it is
// sure; otherwise the filler's first launch does, and training's launches until then bypass the
// gate. So the training rank on that GPU is the client, whichever rank launches first.

/// Thread-safe. If the driver or the gate does not say, every launch counts as on the gate's GPU.
class OwnGpu {
 public:
  OwnGpu(const std::string& gate, ClientId client);

  enum class Where : std::uint8_t { kHere, kElsewhere, kNotKnownYet };
  /// Where a launch into the calling thread's context goes. Some 20 ns once the context is known.
  [[nodiscard]] Where where() const;

 private:
  std::unique_ptr<SharedSegment> memory_;  ///< null: there is no such gate
  ClientId client_;
};

}  // namespace bubblesim::capture::interpose
