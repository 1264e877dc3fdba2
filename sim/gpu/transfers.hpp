// Copies and memsets: operations that last their own time and use no SM.
//
// A copy waits for one of the GPU's copy engines, first come first served (the direction of a copy
// is not known here, so any engine serves any copy). A memset never waits. Both continue while
// another context has the SMs, since copy engines work independently of the SMs.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/base/time.hpp"
#include "sim/gpu/gpu.hpp"

namespace bubblesim::gpu {

class Transfers {
 public:
  explicit Transfers(std::uint32_t copy_engines) : free_engines_(copy_engines) {}

  /// Nothing runs and nothing waits.
  [[nodiscard]] bool idle() const { return running_.empty() && waiting_.empty(); }
  void add_copy(WorkId work, Duration length);
  void add_memset(WorkId work, Duration length, SimTime now);

  /// Removes the earliest operation that has ended by now, ties in order of start. False: none has.
  bool take_ended(SimTime now, WorkId& work);
  /// Starts one waiting copy if an engine is free. False: none started.
  bool take_started(SimTime now, WorkId& work);
  /// When the next operation ends; SimTime::max() if none runs.
  [[nodiscard]] SimTime next_end() const;

 private:
  struct Running {
    SimTime end;
    WorkId work;
    bool holds_engine;
  };
  struct Waiting {
    WorkId work;
    Duration length;
  };

  std::uint32_t free_engines_;
  std::vector<Running> running_;  ///< in order of start
  std::vector<Waiting> waiting_;  ///< from head_ on, in order of arrival
  std::size_t head_ = 0;
};

}  // namespace bubblesim::gpu
