// What the prompts of a measured bundle share, from the token ids of the workload that it was
// measured with (LLMServingSim's workloads/*.jsonl: `input_toks`, `input_tok_ids`), which the
// bundle itself does not hold.
#pragma once

#include <string>

#include "sim/base/result.hpp"
#include "sim/validate/serving/bundle.hpp"

namespace bubblesim::validate {

/// Sets MeasuredRequest::shared. Line n of the file is the request "bench-n"; a hash stands for a
/// block of the engine and all before it, and a block that a prompt does not fill has none.
/// Faults: a line without token ids, another number of requests or of tokens than were measured.
[[nodiscard]] Result<void> add_prompt_tokens(ServingBundle& bundle, const std::string& path);

}  // namespace bubblesim::validate
