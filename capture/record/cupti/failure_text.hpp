// What a refusal of CUPTI means, in words for the person who asked for the recording.
#pragma once

#include <string>
#include <string_view>

#include "capture/record/cupti/api.hpp"

namespace bubblesim::capture {

/// CUPTI's name of the result with its number, and what to do about it. `holder`: who has CUPTI,
/// as far as CUPTI says; empty: unknown.
[[nodiscard]] std::string failure_text(const CuptiApi& api, cupti::Result result,
                                       std::string_view holder = {});

/// Says this CUPTI or driver only that it has no such thing? Else something is wrong.
[[nodiscard]] bool is_refusal(cupti::Result result);

}  // namespace bubblesim::capture
