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
  std::vector<CauseShare> causes;  ///< nothing is filled
};

/// A measured error of the simulator under a policy: mean of |simulated / measured - 1|.
struct KnownError {
  std::string policy;
  std::string device;  ///< as the measurement names it
  std::string figure;  ///< "training", "filler", "p95"
  double percent = 0;
  std::string source;  ///< table of docs/validation.md
};

struct Advice {
  Question question;
  JobAlone alone;
  std::vector<double> own_per_s;  ///< of each filler, offline, on one GPU of its own
  Found found;
  std::vector<CauseShare> unfilled;  ///< under the recommendation, by cause
  std::vector<KnownError> errors;    ///< of the recommended policy; empty: nothing was measured
  CounterSet counters;               ///< of the recommended run and its inputs
  std::string run_config;            ///< of the recommendation, JSON, for `run` and `measure`
  bool stopped = false;              ///< before the search had ended
  std::size_t simulated = 0;         ///< runs, now
  std::size_t stored = 0;            ///< runs that the store had
};

}  // namespace bubblesim::advise
