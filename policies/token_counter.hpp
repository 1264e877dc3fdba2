// The Kernel Barrier's account of one process, as Dilu's client hook keeps it and the SpecInF
// reconstruction after it: thread blocks launched and not yet covered by a grant. A kernel passes
// while the count is not above the grant (test before add, so one may overshoot by its whole
// size); each period the count falls by the new grant, so debt is carried over.
#pragma once

#include <algorithm>
#include <cstdint>

namespace bubblesim::policies {

struct TokenCounter {
  std::int64_t count = 0;     ///< blocks not yet covered by a grant
  std::int64_t launched = 0;  ///< blocks in this period
  std::int64_t grant = 0;     ///< blocks for this period; below 0: closed

  [[nodiscard]] bool is_open() const { return count <= grant; }
  void launch(std::uint64_t blocks) {
    count += static_cast<std::int64_t>(blocks);
    launched += static_cast<std::int64_t>(blocks);
  }
  /// The next period begins, with this grant.
  void begin_period(std::int64_t next_grant) {
    grant = next_grant;
    count = std::max<std::int64_t>(0, count - std::max<std::int64_t>(0, grant));
    launched = 0;
  }
};

}  // namespace bubblesim::policies
