// The run config that a file is about, and what the file changes of it: the keys "name", "comment",
// "base" and "set" of a sweep and of a question (sim/advise).
#pragma once

#include <string>
#include <vector>

#include "sim/base/json_fwd.hpp"
#include "sim/base/result.hpp"
#include "sim/store/planned_run.hpp"

namespace bubblesim {
class ObjectReader;
}

namespace bubblesim::sweep {

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
