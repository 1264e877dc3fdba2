#include "sim/sweep/set_places.hpp"

#include <utility>

#include "sim/base/json.hpp"
#include "sim/base/nearest.hpp"
#include "sim/sweep/config_edit.hpp"

namespace bubblesim::sweep {
namespace {

bool has_condition(const AxisGroup* group) { return group != nullptr && !group->when.empty(); }

}  // namespace

// Two conditions may exclude each other; axes of one zip share theirs.
std::string SetPlaces::fault_of_pair(const Place& earlier, const Place& later) {
  const bool conditions = has_condition(earlier.group) && has_condition(later.group);
  if (earlier.group != later.group && conditions) return {};
  const std::string or_when = later.group != nullptr ? ", or each with a \"when\" of its own" : "";
  if (earlier.number == later.number) {
    return "found " + later.named + " after " + earlier.named +
           ", which is the same place; expected one of them" + or_when;
  }
  if (!earlier.number.starts_with(later.number + '/')) return {};
  return "found " + later.named + " after " + earlier.named +
         ", which it overwrites; expected one of them, or the larger place first" + or_when;
}

std::string SetPlaces::add(const Json& config, std::string_view what, const std::string& pointer,
                           const AxisGroup* group) {
  if (pointer.empty()) return {};  // a fault of its own
  Place later{std::string(what) + quote_found(pointer), numbered(config, pointer), group};
  for (const Place& earlier : before_) {
    if (std::string fault = fault_of_pair(earlier, later); !fault.empty()) return fault;
  }
  before_.push_back(std::move(later));
  return {};
}

}  // namespace bubblesim::sweep
