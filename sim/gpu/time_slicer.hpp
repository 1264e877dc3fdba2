// Decides which context has the GPU when contexts share it in time.
//
// Round robin over the contexts that have work. A turn begins when the GPU comes to a context from
// another one, and lasts one slice (each context may have a length of its own). After the turn, the
// next context with work gets the GPU. If no other context has work, the turn goes on and a new
// context pays only the switch (hardware::LoneSlice::kExpired); or (kRenewed) the lone context
// begins slice after slice while its channel has work to fetch, and a new context waits for the end
// of a slice. A context that runs out of work gives up the GPU at once when another has work, and
// may continue its old turn if no other context took the GPU (kRenewed: it begins a new turn). A
// context is not out of work while its next operation is in its channel (`announced`). Each passing
// of the GPU costs a switch, during which no context has the GPU, even if the old context had no
// work for long.
//
// So while a context has work, the GPU is idle only in switches, and between operations of a
// stream.
//
// A context that gave up the GPU for lack of work, and gets work in the same instant, gets the GPU
// back: completions of an instant come before the dispatches of the same instant.
//
// Source: NVIDIA open-gpu-doc, dev_ram and dev_pbdma of GV100 and GA100: a slice's clock starts
// when its context is on the front end and stands while state is loaded; a channel group is left
// before its slice ends when each of its channels is out of work; an expired slice causes no switch
// while no other context has work. A GPU that idles keeps the state of the last context: 136 us
// from a launch to its start (quartiles 135 and 137, n 54, both ways between two processes on an
// H200 that had idled for 20 us and more), where the same process starts 1 us after its launch
// (tests/validation/h200/README.md, *Single operations*).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "sim/base/time.hpp"
#include "sim/hardware/gpu_spec.hpp"

namespace bubblesim::gpu {

/// The cost of passing the GPU on. Between `empty` and `full` the cost is linear in the SMs whose
/// state is saved and restored: those that blocks of the leaving and of the coming context cover.
struct SwitchCost {
  Duration full;   ///< both cover all SMs
  Duration empty;  ///< neither context covers an SM; at most `full`
};

/// The slicer's questions about a context, asked only if the answer matters.
struct ContextState {
  /// The share of the SMs that its resident blocks cover: where costs differ.
  std::function<double(std::size_t context)> cover;
  /// Whether the context has launched more than runs: asked of a lone context that renews its
  /// slices.
  std::function<bool(std::size_t context)> has_more;
};

class TimeSlicer {
 public:
  /// Precondition: slice > 0, costs >= 0.
  TimeSlicer(Duration slice, SwitchCost cost, hardware::LoneSlice lone_slice, ContextState state)
      : slice_(slice), cost_(cost), lone_slice_(lone_slice), state_(std::move(state)) {}

  void add_context() {
    has_work_.push_back(false);
    announced_.push_back(false);
    slices_.push_back(slice_);
  }
  /// Sets the length of the context's future turns; > 0.
  void set_slice(std::size_t context, Duration slice) { slices_[context] = slice; }
  [[nodiscard]] bool has_work(std::size_t context) const { return has_work_[context]; }

  /// The context had no work, and has some now.
  void gets_work(std::size_t context, SimTime now);
  /// The context has no work left: all is done, or its kernels are kept off the GPU.
  void runs_dry(std::size_t context, SimTime now);
  /// Whether the context's next operation is in its channel, soon to arrive as work. It keeps its
  /// context's turn, and asks for none.
  void set_announced(std::size_t context, bool announced, SimTime now);
  /// Ends turns and switches that are due.
  void advance(SimTime now);

  /// The context that has the GPU now; nothing: during a switch.
  [[nodiscard]] std::optional<std::size_t> live() const {
    return switching_ ? std::nullopt : owner_;
  }
  /// When advance() must be called next; SimTime::max(): never.
  [[nodiscard]] SimTime next() const;

 private:
  /// A turn that was given up for lack of work.
  struct Yielded {
    std::size_t context;
    SimTime at;
    SimTime turn_end;
  };

  [[nodiscard]] bool dry() const {
    return owner_ && !switching_ && !has_work_[*owner_] && !announced_[*owner_];
  }
  [[nodiscard]] std::optional<std::size_t> contender() const;
  [[nodiscard]] SimTime yield_at() const;
  void begin_turn(std::size_t context, SimTime now);
  void renew_slices(SimTime now);
  bool take_back(std::size_t context, SimTime now);
  void pass_on(std::size_t to, SimTime now);
  [[nodiscard]] Duration cost_of(std::size_t from, std::size_t to) const;

  Duration slice_;
  SwitchCost cost_;
  hardware::LoneSlice lone_slice_;
  ContextState state_;
  std::vector<bool> has_work_;
  std::vector<bool> announced_;
  std::vector<Duration> slices_;
  std::optional<std::size_t> owner_;  ///< has the GPU, or gets it after the switch
  bool switching_ = false;
  SimTime switch_end_{};
  SimTime turn_end_{};      ///< from then on any context with work may have the GPU
  SimTime dry_since_{};     ///< of the owner, while it has no work
  std::optional<Yielded> yielded_;
};

}  // namespace bubblesim::gpu
