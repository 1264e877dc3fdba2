// Whose turn it is when contexts share the GPU in time.
//
// Round robin over the contexts that have work. A turn lasts one slice (each context may have a
// length of its own), counted from the moment the context gets the GPU; a context that is the only
// one with work keeps the GPU, its slices following each other without a switch, and one that comes
// waits for the end of the current slice. A context without work gives the GPU up at once when
// another has work, after `linger` (the gap between two kernels of one stream, during which the
// next one already waits in the channel). Passing the GPU on costs `switch_cost`, during which
// nobody has it; taking it when nobody had work costs nothing.
//
// A context that gave the GPU up for lack of work, and gets work in the same instant, has it back:
// completions of an instant come before the dispatches of the same instant.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/base/time.hpp"

namespace bubblesim::gpu {

class TimeSlicer {
 public:
  /// Precondition: slice > 0, switch_cost >= 0, linger >= 0.
  TimeSlicer(Duration slice, Duration switch_cost, Duration linger)
      : slice_(slice), switch_cost_(switch_cost), linger_(linger) {}

  void add_context() {
    has_work_.push_back(false);
    slices_.push_back(slice_);
  }
  /// Of the context's turns that begin from now on; > 0.
  void set_slice(std::size_t context, Duration slice) { slices_[context] = slice; }
  [[nodiscard]] bool has_work(std::size_t context) const { return has_work_[context]; }

  /// The context had no work, and has some.
  void gets_work(std::size_t context, SimTime now);
  /// The context, which has the GPU, has no work left.
  void runs_dry(SimTime now);
  /// The context may not run its work any more; if it has the GPU, it gives it up now.
  void driven_off(std::size_t context, SimTime now);
  /// Ends turns and switches that are due.
  void advance(SimTime now);

  /// Who has the GPU now; nobody during a switch.
  [[nodiscard]] std::optional<std::size_t> live() const {
    return switching_ ? std::nullopt : owner_;
  }
  /// When advance() has something to do; SimTime::max() if it has nothing.
  [[nodiscard]] SimTime next() const;

 private:
  /// A turn that was given up for lack of work.
  struct Yielded {
    std::size_t context;
    SimTime at;
    SimTime turn_start;
    SimTime turn_end;
  };

  [[nodiscard]] bool dry() const { return owner_ && !switching_ && !has_work_[*owner_]; }
  [[nodiscard]] std::optional<std::size_t> contender() const;
  [[nodiscard]] SimTime slice_end_after(SimTime turn_start, SimTime instant) const;
  [[nodiscard]] SimTime yield_at() const;
  void begin_turn(std::size_t context, SimTime now);
  void take_back();
  void pass_on(std::size_t to, SimTime now);

  Duration slice_;
  Duration switch_cost_;
  Duration linger_;
  std::vector<bool> has_work_;
  std::vector<Duration> slices_;
  std::optional<std::size_t> owner_;  ///< has the GPU, or gets it when the switch is over
  bool switching_ = false;
  SimTime switch_end_{};
  SimTime turn_start_{};
  SimTime turn_end_ = SimTime::max();  ///< set as soon as another context has work
  SimTime dry_since_{};                ///< of the owner, while it has no work
  std::optional<Yielded> yielded_;
};

}  // namespace bubblesim::gpu
