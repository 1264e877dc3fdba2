// Which iterations of a recording a user asks for.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "sim/base/result.hpp"

namespace bubblesim::traces {

struct IterationChoice {
  enum class Kind : std::uint8_t {
    kSettled,  ///< all but warm-up
    kAll,      ///< whatever was recorded
    kRange,    ///< from `first` to `last`
  };
  Kind kind = Kind::kSettled;
  std::int64_t first = 0;  ///< numbers of markers; of recordings without numbers, places from 0 on
  std::int64_t last = 0;   ///< >= first
  friend bool operator==(const IterationChoice&, const IterationChoice&) = default;
};

/// "settled", "all", "7" or "5-9". Fault: anything else.
[[nodiscard]] Result<IterationChoice> parse_iteration_choice(std::string_view text);
/// What parse_iteration_choice reads.
[[nodiscard]] std::string iteration_choice_text(const IterationChoice& choice);

}  // namespace bubblesim::traces
