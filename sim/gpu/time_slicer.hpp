// Decides which context has the GPU when contexts share it in time.
//
// Round robin over the contexts that have work. A turn begins when the GPU comes to a context from
// another one, and lasts one slice (each context may have a length of its own). When it is over,
// the next context with work has the GPU; while there is none, the turn goes on, and a newcomer
// pays the switch only (hardware::LoneSlice::kExpired). Or (kRenewed) the lone context begins slice
// after slice while its channel has work to fetch, and a newcomer waits for a slice's end. A
// context that runs out of work gives the GPU up at once when another has work, and may go on in
// its old turn if no other context took the GPU (kRenewed: it begins a new one). It has not run out
// of work while its next operation is in its channel (`announced`). Passing the GPU on costs a
// switch, during which no context has it, also from a context that had no work for long.
//
// So while a context has work, the GPU is idle only in switches, and between operations of a
// stream.
//
// A context that gave the GPU up for lack of work, and gets work in the same instant, has it back:
// completions of an instant come before the dispatches of the same instant.
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

/// What passing the GPU on costs. Between `empty` and `full` the cost is linear in the SMs whose
/// state is saved and restored: those that the blocks of the context that leaves cover, and of the
/// one that comes.
struct SwitchCost {
  Duration full;   ///< both cover all SMs
  Duration empty;  ///< neither covers any; at most `full`
};

/// What the slicer asks of a context, and only where it matters.
struct ContextState {
  /// The share of the SMs that its resident blocks cover: where costs differ.
  std::function<double(std::size_t context)> cover;
  /// Whether it has launched more than runs: asked of a lone context that renews its slices.
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
  /// Sets the length of the context's turns that begin from now on; > 0.
  void set_slice(std::size_t context, Duration slice) { slices_[context] = slice; }
  [[nodiscard]] bool has_work(std::size_t context) const { return has_work_[context]; }

  /// The context had no work, and has some.
  void gets_work(std::size_t context, SimTime now);
  /// The context has no work left: it has done it, or its kernels are kept off the GPU.
  void runs_dry(std::size_t context, SimTime now);
  /// Whether the context's next operation is in its channel: work that is not there yet, but will
  /// be. It keeps its context's turn, and does not ask for one.
  void set_announced(std::size_t context, bool announced, SimTime now);
  /// Ends turns and switches that are due.
  void advance(SimTime now);

  /// The context that has the GPU now; nothing during a switch.
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
  std::optional<std::size_t> owner_;  ///< has the GPU, or gets it when the switch is over
  bool switching_ = false;
  SimTime switch_end_{};
  SimTime turn_end_{};      ///< from then on any context with work may have the GPU
  SimTime dry_since_{};     ///< of the owner, while it has no work
  std::optional<Yielded> yielded_;
};

}  // namespace bubblesim::gpu
