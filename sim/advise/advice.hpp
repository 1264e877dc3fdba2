// The answer to a question, as plain values: what to run, what it gains and costs, how sure that is
// and what stands in the way of more. Its settings point into the registry that was searched.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/advise/question.hpp"
#include "sim/advise/search.hpp"
#include "sim/base/counters.hpp"
#include "sim/base/json_fwd.hpp"

namespace bubblesim::advise {

/// Bubble time of one cause, as shares of the measured window; means over GPUs.
struct CauseShare {
  std::string cause;
  double share = 0;
  double filled = 0;  ///< of the window: recovered
};

/// The training job alone.
struct JobAlone {
  std::string device;
  std::uint32_t gpus = 0;          ///< simulated
  std::uint32_t gpus_each = 1;     ///< that each of them stands for
  Duration iteration{};
  double bubble = 0;               ///< share of the time
  std::vector<CauseShare> causes;  ///< without fillers
  std::vector<OwnFiller> fillers;  ///< offline, on one GPU of their own
  Duration filler_longest{};       ///< their longest operation
  Duration filler_pass{};          ///< their longest pass; 0: none has passes
  bool memory_known = true;        ///< of training; false: it counts as 0
  bool fillers_have_memory = false;
};

/// A measured error of the simulator under a policy: mean of |simulated / measured - 1|.
struct KnownError {
  std::string policy;
  std::string device;  ///< as the measurement names it
  std::string figure;  ///< "training", "filler", "p95"
  double error_percent = 0;
  std::string source;  ///< table of docs/validation.md
  bool same_device = false;  ///< measured on the device that was asked about
};

struct Advice {
  Question question;
  JobAlone alone;
  Found found;
  /// Under the recommendation, by cause; where that gains nothing, under the least violation.
  std::vector<CauseShare> unfilled;
  std::vector<std::string> refused;  ///< why the same setting does not admit some instances
  std::optional<TrialResult> with_memory;  ///< the result if it admitted all; empty: it does
  bool tools_asked = false;          ///< of `measure` and `fill`; the next three are their answers
  std::string why_not_measured;      ///< by `measure`; empty: it can be
  std::uint32_t measured_rank = 0;   ///< the rank that it runs: one that has a filler
  std::string why_not_live;          ///< why `fill` refuses the recommendation; empty: it does not
  std::vector<KnownError> errors;    ///< of the recommended policy; empty: nothing was measured
  CounterSet counters;               ///< of the recommended run and its inputs
  std::string run_config;            ///< of the recommendation, JSON, for `run` and `measure`
  bool stopped = false;              ///< before the search had ended
  std::size_t simulated = 0;         ///< runs, now
  std::size_t stored = 0;            ///< runs that the store had
};

// An answer as one screen of text, and as JSON for programs.

/// `config`: the file that the recommendation's run config is written to.
[[nodiscard]] std::string advice_text(const Advice& advice, const std::string& config);
/// Keys are in configs/README.md ("A question").
[[nodiscard]] Json advice_json(const Advice& advice, const std::string& config);

}  // namespace bubblesim::advise
