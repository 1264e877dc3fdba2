// The answer to a question, as plain values: the setting to run, its gain and cost, how sure they
// are, and what limits the gain. Its settings point into the registry that was searched.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/advise/question.hpp"
#include "sim/advise/search.hpp"
#include "sim/base/counters.hpp"
#include "sim/base/json_fwd.hpp"
#include "sim/base/result.hpp"

namespace bubblesim::advise {

/// Bubble time of one cause, as shares of the measured window; means over GPUs.
struct CauseShare {
  std::string cause;
  double share = 0;
  double filled = 0;  ///< share of the window that fillers used
};

/// The training job alone.
struct JobAlone {
  std::string device;
  std::uint32_t gpus = 0;          ///< simulated
  std::uint32_t gpus_each = 1;     ///< GPUs that each simulated GPU stands for
  Duration iteration{};
  double bubble = 0;               ///< share of the time
  std::vector<CauseShare> causes;  ///< without fillers
  std::vector<OwnFiller> fillers;  ///< offline, each on one GPU of its own
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
  /// The time that the recommendation leaves unfilled, by cause. Without a gain: that of the
  /// setting that breaks the limits least.
  std::vector<CauseShare> unfilled;
  std::vector<std::string> refused;  ///< why the recommended setting does not admit some instances
  std::optional<TrialResult> with_memory;  ///< the result if all were admitted; empty: all are
  bool tools_asked = false;          ///< `measure` and `fill` were asked; their answers follow
  std::string why_not_measured;      ///< why `measure` refuses it; empty: it does not
  std::uint32_t measured_rank = 0;   ///< the rank that it runs: one that has a filler
  std::string why_not_live;          ///< why `fill` refuses the recommendation; empty: it does not
  std::vector<KnownError> errors;    ///< of the recommended policy; empty: nothing was measured
  CounterSet counters;               ///< of the recommended run and its inputs
  std::string run_config;            ///< for `run` and `measure`, JSON
  bool stopped = false;              ///< stopped before the search had ended
  std::size_t simulated = 0;         ///< runs, now
  std::size_t stored = 0;            ///< runs that the store had
};

// An answer as one screen of text, and as JSON for programs.

/// `config`: the file that the recommendation's run config is written to.
[[nodiscard]] std::string advice_text(const Advice& advice, const std::string& config);
/// configs/README.md ("A question") explains the keys.
[[nodiscard]] Json advice_json(const Advice& advice, const std::string& config);

// Texts beside the recommendation: why others lost, known errors, how to run it.

/// "it keeps 0.975 of training, 0.005 below the limit": how a setting lost to the best.
[[nodiscard]] std::string why_it_lost(const Tried& lost, const Tried& best, const Limits& limits);

/// Slightly looser limits, each with the text of the loosened one: "keep 0.95".
[[nodiscard]] std::vector<std::pair<std::string, Limits>> looser_limits(const Limits& limits);

/// For each broken limit the value that the result would keep: "keep 0.953, p95 63.1 ms"; empty: it
/// keeps all.
[[nodiscard]] std::string needed_limits(const TrialResult& result, const Limits& limits);
/// "breaks keep, p95"; empty: it keeps all.
[[nodiscard]] std::string broken_limits(const TrialResult& result, const Limits& limits);

/// A setting is reported if it gains this many times the best one's gain.
inline constexpr double kWorthTelling = 1.05;

/// Policies that the system cannot run but that would keep the limits and gain at least 5 % more.
[[nodiscard]] std::vector<Tried> worth_having(const Advice& advice);

/// "12.3 ms".
[[nodiscard]] std::string milliseconds(Duration span);

// Commands for a recommendation: lines for `run`, `measure` and `fill`.

struct Practice {
  std::string word;     ///< "simulate", "measure", "live"
  std::string command;  ///< for a shell, in the folder that `config` is relative to
  std::string note;     ///< difference from the recommendation; may be empty
};

/// Empty without a recommendation. `config`: the file of the recommendation's run config.
[[nodiscard]] std::vector<Practice> practice_of(const Advice& advice, const std::string& config);

// Measured errors of the simulator under a policy: configs/validation/errors.csv, whose figures are
// those of docs/validation.md.

/// The rows of a policy, in the order of the file; empty: not measured. `device`: the device's name
/// in its file.
[[nodiscard]] CheckedResult<std::vector<KnownError>> known_errors(const std::string& config_folder,
                                                                  const std::string& policy,
                                                                  const std::string& device);

}  // namespace bubblesim::advise
