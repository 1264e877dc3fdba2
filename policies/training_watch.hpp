// The Bubble Monitor of specinf: tells whether training computes now, from its launches and late
// completions, as a hook in the driver library sees them.
//
// A bubble is a time in which no computing kernel of training can run: none is outstanding, or the
// oldest outstanding one stands behind an older collective. A hook does not see streams, so it does
// not see whether the kernel waits for that collective. The kernel is taken to wait if training
// idled at this place of the last iteration, or if the kernel is overdue by twice its own length.
//
// The length of a bubble is learned for its place: the count of kernels since the iteration began
// or, for a new place, the last eight kernels. A bubble at whose end fillers ran can shorten the
// learned length, never lengthen it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "policies/front_queue.hpp"
#include "policies/seen_kernel_times.hpp"
#include "sim/policy/policy.hpp"

namespace bubblesim::policies {

class TrainingWatch {
 public:
  /// Idle times behind a collective that are shorter than `shortest` count as noise.
  explicit TrainingWatch(Duration shortest) : shortest_(shortest) {}

  /// Training's launch goes to the driver. Only kernels and collectives count.
  void launch(const policy::LaunchInfo& launch, policy::Instant now);
  /// `disturbed`: a filler was on the GPU after training had resumed.
  void complete(const policy::CompletionInfo& completion, bool disturbed, policy::Instant now);
  /// Launches from now on belong to the next iteration.
  void begin_iteration() { place_ = 0; }
  /// Time has passed: a kernel may be overdue now.
  void look(policy::Instant now) { settle(now); }

  [[nodiscard]] bool computes() const { return computes_; }
  /// When the present bubble began. Precondition: not computes().
  [[nodiscard]] policy::Instant bubble_begin() const { return bubble_begin_; }
  /// When the bubble at this place ended last time; nothing: not known.
  [[nodiscard]] std::optional<policy::Instant> expected_end() const { return expected_end_; }
  /// When the kernel that seems to run will be overdue; nothing: none can be.
  [[nodiscard]] std::optional<policy::Instant> overdue_at() const { return overdue_at_; }
  /// How much longer than expected the last kernel and the gap before it took; nothing: that gap
  /// was not seen in an earlier iteration.
  [[nodiscard]] std::optional<Duration> delay() const { return delay_; }

 private:
  struct Launch {
    std::uint64_t number = 0;
    std::uint64_t key = 0;
    std::uint64_t context = 0;  ///< of the kernels before it
    std::size_t place = 0;
    std::uint32_t operations = 0;
    bool computes = false;
    policy::Instant launched{};
  };

  void learn(const Launch& kernel, bool disturbed, policy::Instant now);
  void settle(policy::Instant now);
  void begin_bubble(policy::Instant since, std::optional<Duration> length);
  [[nodiscard]] std::optional<Duration> known_gap(std::size_t place, std::uint64_t context) const;
  [[nodiscard]] const Launch* next_kernel();
  void note_kernel(std::uint64_t key);

  Duration shortest_;
  SeenKernelTimes times_;
  FrontQueue<Launch> queue_;  ///< outstanding, and ended ones behind an outstanding one
  std::uint64_t first_ = 0;   ///< how many launches have left the queue
  std::uint64_t next_ = 0;    ///< no launch before it is an outstanding kernel
  std::size_t kernels_ = 0;  ///< computing, outstanding
  std::size_t place_ = 0;
  std::array<std::uint64_t, 8> recent_{};  ///< keys of the last kernels launched
  std::size_t recent_at_ = 0;
  std::uint64_t context_ = 0;              ///< hash of `recent_` in the order of launches
  std::optional<policy::Instant> last_end_;  ///< of a kernel
  policy::Instant last_collective_{};        ///< end of a collective older than the next kernel
  std::vector<Duration> gaps_;               ///< by place; negative: not seen
  std::unordered_map<std::uint64_t, Duration> gaps_by_context_;  ///< looked up, never iterated
  std::optional<Duration> delay_;
  bool computes_ = false;
  policy::Instant bubble_begin_{};
  std::optional<policy::Instant> expected_end_;
  std::optional<policy::Instant> overdue_at_;
};

}  // namespace bubblesim::policies
