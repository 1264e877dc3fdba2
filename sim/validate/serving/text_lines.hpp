// The lines of a text, one after another.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>

#include "sim/base/result.hpp"

namespace bubblesim::validate {

/// Calls visit(line, number) for each line of `text`, blank ones too; numbers begin at 1. Ends at
/// the first fault that `visit` returns.
template <class Visit>
[[nodiscard]] Result<void> each_line(std::string_view text, Visit visit) {
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    BUBBLESIM_RETURN_IF_ERROR(visit(text.substr(0, end), number));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return {};
}

}  // namespace bubblesim::validate
