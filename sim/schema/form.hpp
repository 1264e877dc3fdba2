// The form of a kind of file, as its reader declared it in many readings: which keys each object
// may have, what they hold, which of them are required, and what that depends on.
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "sim/base/read_recorder.hpp"

namespace bubblesim::schema {

/// All that was read of one key.
struct KeyForm {
  std::vector<std::pair<JsonCount, JsonShape>> shapes;  ///< different ones, as first read
  std::vector<JsonDefault> defaults;  ///< different ones: more than one depends on other keys

  [[nodiscard]] bool was_looked_for() const;  ///< by has, kind or raw
  /// The names, if the key is a text among names and nothing else.
  [[nodiscard]] std::vector<std::string> choices() const;
};

/// One reading of one object that was there.
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
  std::set<std::vector<std::string>> one_of;  ///< of each of these lists one key is there
};

/// The form of each object by path: a JSON pointer with "*" for every element of a list; the root's
/// is "".
using Form = std::map<std::string, ObjectForm>;

/// Path of a key's object, or of the elements of its list.
[[nodiscard]] std::string path_of(const std::string& object, std::string_view key,
                                  JsonCount count);

}  // namespace bubblesim::schema
