// PipeFill's execution plan: cuts what fillers launch, in order, to the durations and the free
// memory of measured bubbles. Times are planned, from profiles: one launch after the other.
//
// In a bubble of length L that begins at b, a launch fits if
//     max(now, end of the plan) + its duration + switch_cost <= b + f * L.
// A launch that fits no bubble by this rule, but fits the whole of the longest one (duration +
// switch_cost <= L), runs there alone: first, and nothing after it. The longest bubble is known
// once an iteration of training has ended.
//
// Memory: fillers come into a bubble one after the other, with their first launch in it. Fillers in
// one bubble must together fit into its free memory. With offloading, memory that does not fit is
// moved: fillers' memory beyond what training's peak leaves of the device comes in at the bubble's
// beginning and goes out at its end; of training's memory, as much as the bubble lacks goes out and
// comes back. Both moves take bytes / bandwidth of the host link, are planned, and count against
// f * L. The simulator does not occupy the link, and the reported high-water mark adds memory of
// different times. The paper also adapts batch size and checkpointing; here they stay as they are.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/policy/policy.hpp"

namespace bubblesim::policies {

enum class Offload : std::uint8_t { kNever, kWhatDoesNotFit };

struct FillConstants {
  double fraction = 1;          ///< f
  Duration switch_cost{};
  Offload offload = Offload::kNever;
  BytesPerSecond host_link{};  ///< 0: not known, so nothing is moved
  /// Memory that training's peak leaves of the device.
  std::optional<Bytes> beside_training = std::nullopt;
};

class FillPlan {
 public:
  /// `memory` by client; 0: not known, or none.
  FillPlan(const FillConstants& constants, std::vector<Bytes> memory);

  void begin_bubble(Duration length, Bytes free_memory, policy::Instant now);
  void end_bubble() { open_ = false; }
  /// Call when all bubbles of an iteration have been seen.
  void end_iteration();

  /// Plans the launch at `now` if it fits; O(1).
  [[nodiscard]] bool take(ClientId client, Duration length, policy::Instant now);
  /// When the client's memory, now being moved, will be on the device; only after a take() that
  /// failed.
  [[nodiscard]] std::optional<policy::Instant> ready(ClientId client) const;

  /// Whether a launch of this length has a place in any bubble seen so far.
  [[nodiscard]] bool has_place(Duration length) const;
  /// True if lack of memory has kept the client out of every bubble.
  [[nodiscard]] bool lacks_memory(ClientId client) const;
  /// Launches that ran alone in a longest bubble, beyond the fill fraction.
  [[nodiscard]] std::uint64_t alone() const { return alone_; }
  [[nodiscard]] Duration moved() const { return moved_; }

 private:
  struct Client {
    Bytes memory;
    bool inside = false;    ///< whether the filler runs in this bubble
    bool entered = false;   ///< entered any bubble
    bool refused = false;   ///< ever refused for lack of memory
    policy::Instant ready{};
  };

  [[nodiscard]] bool enter(Client& client, Duration length, policy::Instant now);
  [[nodiscard]] std::optional<Duration> move_time(Bytes inside) const;
  [[nodiscard]] bool take_alone(Duration length, policy::Instant now);

  FillConstants constants_;
  std::vector<Client> clients_;
  bool open_ = false;
  bool untouched_ = true;         ///< no launch is planned in the bubble
  policy::Instant bubble_end_{};  ///< measured
  policy::Instant fill_end_{};    ///< no launch is planned beyond it
  policy::Instant plan_end_{};
  Duration length_{};
  Bytes free_;
  Bytes inside_;                  ///< memory of the fillers in the bubble
  Duration seen_{};               ///< longest bubble of this iteration so far
  std::optional<Duration> longest_;  ///< of an iteration that has ended
  Duration longest_usable_{};
  std::uint64_t alone_ = 0;
  Duration moved_{};
};

}  // namespace bubblesim::policies
