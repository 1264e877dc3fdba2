// Files like a given one: each key left out, unknown keys added, and each value replaced by
// others, some of which readers accept.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "sim/base/json.hpp"

namespace bubblesim::schema_test {

/// By key: what files say there, as compact JSON.
using KnownValues = std::map<std::string, std::set<std::string>>;

void collect_values(const Json& file, KnownValues& known);

/// In a fixed order; each differs from the file in one place.
[[nodiscard]] std::vector<Json> variants(const Json& file, const KnownValues& known);

/// A key as JSON pointers have it.
[[nodiscard]] std::string escaped(const std::string& key);

}  // namespace bubblesim::schema_test
