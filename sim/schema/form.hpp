// The form of a kind of file, as its reader declared it in many readings: the keys of each object,
// their values, which keys are required, and the conditions for that.
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "sim/base/read_recorder.hpp"

namespace bubblesim::schema {

/// All readings of one key.
struct KeyForm {
  std::vector<std::pair<JsonCount, JsonShape>> shapes;  ///< distinct ones, as first read
  std::vector<JsonDefault> defaults;  ///< distinct ones: if there are several, they depend on other
                                      ///< keys

  [[nodiscard]] bool was_looked_for() const;  ///< by has, kind or raw
  /// The names, if the key is a text among names and nothing else.
  [[nodiscard]] std::vector<std::string> choices() const;
};

/// One reading of one present object.
struct Visit {
  std::map<std::string, std::string> values;  ///< key: compact JSON; lists and objects: "[", "{"
  std::set<std::string> declared;
  std::set<std::string> required;
  bool operator<(const Visit& other) const;
};

struct ObjectForm {
  std::vector<std::string> order;  ///< of the keys, as first read
  std::map<std::string, KeyForm> keys;
  std::set<Visit> visits;
  std::set<std::vector<std::string>> one_of;  ///< exactly one key of each of these lists is present
};

/// The form of each object by path: a JSON pointer with "*" for every element of a list; the root's
/// is "".
using Form = std::map<std::string, ObjectForm>;

/// Path of a key's object, or of the elements of its list.
[[nodiscard]] std::string path_of(const std::string& object, std::string_view key,
                                  JsonCount count);

// The conditions for an object's keys: the name that a choice holds, or the presence of another
// key. A condition is shown by pairs of readings that differ only in that key, and contradicted by
// no other reading. Inside of sim/schema.

/// True while a choice has one of these names.
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
