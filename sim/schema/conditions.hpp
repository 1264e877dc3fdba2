// What the keys of an object depend on: on the name that a choice holds, and on whether another
// key is there. Only what pairs of readings show that differ in that one key alone, and no other
// reading contradicts. Inside of sim/schema.
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "sim/schema/form.hpp"

namespace bubblesim::schema {

/// While a choice has one of these names.
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
  std::map<std::string, std::set<std::string>> needs;  ///< a key, and those that must be with it
  std::set<std::pair<std::string, std::string>> alternatives;  ///< at least one of the two
};

[[nodiscard]] Conditions conditions_of(const ObjectForm& object);

/// The choices of an object that decide which other keys are read.
[[nodiscard]] std::set<std::string> deciding_choices(const ObjectForm& object);

}  // namespace bubblesim::schema
