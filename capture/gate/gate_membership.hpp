// A process's place at a gate, and the row of each of its threads.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "capture/clock/shared_segment.hpp"
#include "capture/gate/gate_rows.hpp"
#include "sim/base/result.hpp"

namespace bubblesim::capture {

/// What one thread has at one gate.
struct GateSeat {
  HeldRow held;                   ///< none: all rows are in use
  std::uint64_t last_launch = 0;  ///< its number
};

class GateMembership {
 public:
  /// Joins the gate `name`; parameters and faults are those of GateClient::open.
  [[nodiscard]] static Result<std::shared_ptr<GateMembership>> join(const std::string& name,
                                                                    ClientId client,
                                                                    Duration patience);
  ~GateMembership();
  GateMembership(const GateMembership&) = delete;
  GateMembership& operator=(const GateMembership&) = delete;

  /// Gives up the place and all rows, unless this is a forked child.
  void leave() noexcept;
  /// This process came out of the one that joined.
  [[nodiscard]] bool is_forked() const noexcept;
  [[nodiscard]] GateSegment& segment() const { return segment_; }
  [[nodiscard]] GatePlace& place() const { return segment_.places[client_.index()]; }
  [[nodiscard]] ClientId client() const { return client_; }
  /// Differs from those of all other memberships of the process.
  [[nodiscard]] std::uint64_t number() const { return number_; }

  /// The calling thread's; made at its first call, given back when the thread ends. A thread sits
  /// at no more gates than kMostGateClients: null.
  [[nodiscard]] static GateSeat* seat(const std::shared_ptr<GateMembership>& membership) noexcept;

 private:
  GateMembership(std::unique_ptr<SharedSegment> memory, ClientId client);

  std::unique_ptr<SharedSegment> memory_;
  GateSegment& segment_;
  ClientId client_;
  std::uint64_t number_;
  std::uint64_t forks_;  ///< of this process and its ancestors, when it joined
  bool left_ = false;
};

}  // namespace bubblesim::capture
