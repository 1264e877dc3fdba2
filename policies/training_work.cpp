#include "policies/training_work.hpp"

#include <algorithm>

#include "sim/policy/declare.hpp"

namespace bubblesim::policies {

policy::ParameterSpec collectives_parameter() {
  return policy::declare_choice(
      "collectives", {"work", "idle"},
      {"", "Whether an outstanding collective of training counts as work, or as idle time.",
       "work: the system's code, made for one GPU; idle: reconstructed, for distributed jobs"});
}

Collectives collectives_of(const policy::ParameterSet& given) {
  return given.text("collectives") == "idle" ? Collectives::kIdle : Collectives::kWork;
}

bool TrainingWork::launched(const policy::LaunchInfo& launch) {
  if (!counts(launch)) {
    uncounted_.insert(uncounted_.end(), launch.operations, launch.launch);
    return false;
  }
  const bool was_idle = idle();
  work_ += launch.operations;
  return was_idle && !idle();
}

bool TrainingWork::ended(const policy::CompletionInfo& completion) {
  const auto place = std::ranges::find(uncounted_, completion.launch);
  if (place != uncounted_.end()) {
    uncounted_.erase(place);
    return false;
  }
  if (work_ == 0) return false;
  --work_;
  return true;
}

}  // namespace bubblesim::policies
