// The places of a run config that have been set: a later one must not overwrite an earlier one.
// Private to sim/sweep and sim/advise.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/base/json_fwd.hpp"
#include "sim/sweep/sweep_config.hpp"

namespace bubblesim::sweep {

class SetPlaces {
 public:
  /// Adds a place. `what` names in faults what sets it: "the axis of ". `config`, which is set,
  /// says which names of list elements are which numbers. `group`: the axis's, which may have a
  /// condition. Returns the text of the fault; empty: nothing added before is overwritten.
  [[nodiscard]] std::string add(const Json& config, std::string_view what,
                                const std::string& pointer, const AxisGroup* group = nullptr);

 private:
  struct Place {
    std::string named;   // what sets it, and its pointer, as they are shown
    std::string number;  // the pointer with elements by number
    const AxisGroup* group = nullptr;
  };

  [[nodiscard]] static std::string fault_of_pair(const Place& earlier, const Place& later);

  std::vector<Place> before_;
};

}  // namespace bubblesim::sweep
