// Which keys an object requires or forbids, depending on the value of a choice and on whether
// another key is present. A condition is inferred from two readings that differ in that key alone,
// and dropped if another reading contradicts it. Private to sim/schema.
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "sim/schema/form.hpp"

namespace bubblesim::schema {

/// What holds while the choice `key` has one of `names`.
struct ChoiceCondition {
  std::string key;
  std::vector<std::string> names;
  bool if_absent = false;  ///< one of the names is the default
  std::set<std::string> required;
  std::set<std::string> forbidden;
};

struct Conditions {
  std::set<std::string> required;  ///< always
  std::vector<ChoiceCondition> choices;
  std::map<std::string, std::set<std::string>> needs;  ///< a key, and the keys that it requires
  std::set<std::pair<std::string, std::string>> alternatives;  ///< at least one of the two
};

[[nodiscard]] Conditions conditions_of(const ObjectForm& object);

/// The choices of an object that decide which other keys are read.
[[nodiscard]] std::set<std::string> deciding_choices(const ObjectForm& object);

}  // namespace bubblesim::schema
