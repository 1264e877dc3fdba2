// The files of template/, as they were when this was built (CMake writes the definitions).
#pragma once

#include <string_view>

namespace bubblesim::plugin::texts {

[[nodiscard]] std::string_view cmakelists_txt();
[[nodiscard]] std::string_view policy_cpp();
[[nodiscard]] std::string_view policy_test_cpp();
[[nodiscard]] std::string_view readme_md();

}  // namespace bubblesim::plugin::texts
