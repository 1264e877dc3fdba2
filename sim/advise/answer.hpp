// Answers a question: runs the job alone, searches, explains the result.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <string>

#include "sim/advise/advice.hpp"
#include "sim/base/result.hpp"
#include "sim/policy/declaration.hpp"
#include "sim/store/results_store.hpp"

namespace bubblesim::advise {

struct AnswerOptions {
  std::string config_folder;             ///< holds devices/, models/, ...
  std::string version;                   ///< version of the program; part of keys
  std::size_t threads = 1;               ///< answers do not depend on the number
  store::ResultsStore* store = nullptr;  ///< null: nothing is kept
  const std::atomic<bool>* stop = nullptr;  ///< true: end at once; null: never
  std::function<void(const std::string& step)> begins = nullptr;
  std::function<void(const SearchPlan&)> planned = nullptr;  ///< called before the search begins
  std::function<void(const Trial&, const TrialResult&)> tried = nullptr;  ///< for each, in order
  /// Why `bubblesim fill` would refuse a setting, and `bubblesim measure` one rank of a run config;
  /// an empty text: no refusal. Set both or neither; without them the search ignores refusals.
  std::function<std::string(const Proposal&, policy::Role filler)> why_not_live = nullptr;
  std::function<std::string(const std::string& run_config, std::uint32_t rank)> why_not_measured =
      nullptr;
};

/// Faults: of the base; a job that does not fit its GPU; a filler that fits nowhere beside it;
/// limits that the service could not keep with a GPU of its own. Each fault names what would help.
/// Another fault: all runs of a policy that the system can run fail.
[[nodiscard]] CheckedResult<Advice> answer(const Question& question,
                                           const policy::Registry& registry,
                                           const AnswerOptions& options);

}  // namespace bubblesim::advise
