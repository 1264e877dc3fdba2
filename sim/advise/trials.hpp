// Trials as runs of a sweep: planned as run configs, simulated on threads, kept in a store. A trial
// that the store or this process already has is not simulated again. Results do not depend on
// threads.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <unordered_set>
#include <vector>

#include "sim/advise/answer.hpp"
#include "sim/base/result.hpp"
#include "sim/policy/declaration.hpp"
#include "sim/store/results_store.hpp"
#include "sim/sweep/execute.hpp"
#include "sim/sweep/run_key.hpp"

namespace bubblesim::advise {

class Trials {
 public:
  /// All but the parts must outlive it.
  Trials(const Question& question, const policy::Registry& registry, sweep::SharedWork& shared,
         PartsAlone parts, const AnswerOptions& options);

  /// A result for each, in order; a stopped trial's is not `done`.
  [[nodiscard]] Result<std::vector<TrialResult>> run(const std::vector<Trial>& trials);
  /// The run config of a trial.
  [[nodiscard]] Json config_of(const Trial& trial) const;
  [[nodiscard]] std::size_t simulated() const { return simulated_; }
  [[nodiscard]] std::size_t found() const { return found_; }

 private:
  [[nodiscard]] CheckedResult<store::PlannedRun> plan(const Trial& trial);
  [[nodiscard]] Result<bool> look_up(const std::string& key);
  [[nodiscard]] Result<void> simulate(const std::vector<store::PlannedRun>& runs);
  [[nodiscard]] TrialResult result_of(const store::RunRecord& record) const;

  const Question& question_;
  const policy::Registry& registry_;
  sweep::SharedWork& shared_;
  PartsAlone parts_;
  const AnswerOptions& options_;
  const std::shared_ptr<const Json> base_;
  sweep::FileHashes files_;
  std::unordered_set<std::string> stored_;  // keys of the store
  bool store_read_ = false;
  std::map<std::string, TrialResult> known_;  // by key
  std::size_t planned_ = 0;
  std::size_t simulated_ = 0;
  std::size_t found_ = 0;
};

}  // namespace bubblesim::advise
