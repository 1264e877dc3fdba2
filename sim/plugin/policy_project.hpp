// The files of a project for a new policy.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/base/result.hpp"

namespace bubblesim::plugin {

struct ProjectFile {
  std::string name;  ///< without folder
  std::string text;
};

/// CMakeLists.txt, NAME.cpp, NAME_test.cpp and README.md of a working policy, for its author to
/// change. Fault: NAME is not snake_case, or a word of C++.
[[nodiscard]] Result<std::vector<ProjectFile>> policy_project(std::string_view name);

}  // namespace bubblesim::plugin
