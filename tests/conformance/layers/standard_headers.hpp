// Which standard header declares what: a header of the project includes those of the names that it
// uses, itself or through a project's header that it includes. A compiler cannot tell, since one
// standard header includes another as it likes.
#pragma once

#include <map>
#include <string_view>
#include <vector>

#include "tests/conformance/layers/rules.hpp"

namespace bubblesim::layers {

/// The headers of which one must be included by whoever uses `std::` and the name; cppreference's
/// page of the name says them. A name that is missing here is not held to anything.
[[nodiscard]] const std::multimap<std::string_view, std::string_view>& standard_names();

/// Headers outside the tests that use a name of std without any of its headers. `tree` holds every
/// file of the project that they include.
[[nodiscard]] Breaches check_standard_includes(const std::vector<SourceFile>& tree);

}  // namespace bubblesim::layers
