// The run config that a file is about, and what the file changes of it: the keys "name", "comment",
// "base" and "set" of a sweep and of a question (sim/advise).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/base/json_fwd.hpp"
#include "sim/base/result.hpp"
#include "sim/store/planned_run.hpp"
#include "sim/sweep/sweep_config.hpp"

namespace bubblesim {
class ObjectReader;
}  // namespace bubblesim

namespace bubblesim::sweep {

// Which places of a run config are set, one after another: no later one may overwrite an earlier
// one, which would be lost. Inside of sim/sweep and of sim/advise.

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

/// What a file says of its base.
struct BaseParts {
  std::string file;  ///< where the base is written
  std::string text;  ///< the base, if it is inside; else empty
  std::vector<store::Setting> set;
};

/// The keys "name", a text that is not empty, and "comment", which says nothing.
[[nodiscard]] std::string read_title(ObjectReader& root);
/// The keys "base" and "set" of the file.
[[nodiscard]] BaseParts read_base(ObjectReader& root, const std::string& file);
/// Pointers and the values at them.
[[nodiscard]] std::vector<store::Setting> read_settings(ObjectReader reader);
/// The base with what is set, checked as JSON; whether it is a run config, who reads it says.
[[nodiscard]] CheckedResult<Json> load_base(const BaseParts& parts, const std::string& file);

}  // namespace bubblesim::sweep
