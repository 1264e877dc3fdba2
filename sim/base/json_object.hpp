// Inside of json_reader: what one ObjectReader and its copies share. Only json_*.cpp of this
// room include this file.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/json_tree.hpp"

namespace bubblesim::json_detail {

/// Allowed at the root of every file.
inline constexpr std::string_view kSchemaKey = "$schema";

struct ObjectState {
  const Tree* tree = nullptr;
  Errors* errors = nullptr;
  const Object* object = nullptr;  // null: not present, read in silence
  std::unique_ptr<Object> spelled_out;  // the object that a text is short for
  std::string pointer;
  std::set<std::string, std::less<>> declared;
  // Readers of children by key, so that reading a key twice gives the same declarations.
  std::map<std::string, std::vector<std::shared_ptr<ObjectState>>, std::less<>> children;
  bool finished = false;
};

}  // namespace bubblesim::json_detail
