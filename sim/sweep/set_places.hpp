// Which places of a run config are set, one after another: no later one may overwrite an earlier
// one, which would be lost. Inside of sim/sweep and of sim/advise.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/base/json_fwd.hpp"
#include "sim/sweep/sweep_config.hpp"

namespace bubblesim::sweep {

class SetPlaces {
 public:
  /// `what` says in faults what sets the place: "the axis of ". `config` is the one that is set, by
  /// which elements of lists are called by number or by name. `group`: of an axis that may have a
  /// condition. The text of the fault; empty: what was added before stays.
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
