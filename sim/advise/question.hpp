// What is asked: a training job and what may fill its bubbles, the limits, and what the system has.
// configs/README.md documents the keys of a question's file; `bubblesim advise TRAINING` makes one
// from options.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/base/result.hpp"
#include "sim/base/time.hpp"
#include "sim/policy/declaration.hpp"
#include "sim/run/loaded_run.hpp"
#include "sim/sweep/sweep_config.hpp"

namespace bubblesim {
class JsonDocument;
}  // namespace bubblesim

namespace bubblesim::advise {

/// 95th percentiles of services that write tokens. An empty one: no limit, or not measured.
struct TokenLatency {
  std::optional<Duration> ttft;  ///< from a request's arrival to its first token
  std::optional<Duration> tpot;  ///< a request's mean time of each further token
  friend bool operator==(const TokenLatency&, const TokenLatency&) = default;
};

/// What a setting must keep to be recommended.
struct Limits {
  double keep = 0.98;           ///< least training_normalised_fraction, (0, 1]
  std::optional<Duration> p95;  ///< of every online filler; nothing: it must not be overloaded
  TokenLatency slo = {};        ///< of every online filler that writes tokens
};

/// The limits with all latencies times `part`.
[[nodiscard]] Limits with_latencies_scaled(Limits limits, double part);

/// What the operator's system has.
struct SystemChoice {
  std::optional<std::vector<policy::SystemFeature>> can;  ///< nothing: all
  std::vector<policy::SystemFeature> cannot;
  std::vector<std::string> policies;  ///< that are tried; empty: all

  [[nodiscard]] bool has(policy::SystemFeature feature) const;
};

/// Whether online fillers' load is searched too.
enum class Load : std::uint8_t { kSearched, kAsGiven };

/// The length of the runs that settings are confirmed in before they are reported.
enum class ConfirmedAt : std::uint8_t {
  kAskedLength,      ///< the base's, whatever the budget is
  kAffordedLength,   ///< what half of the budget allows: no length was asked for
  kSearchedLength,   ///< that of trials: for many questions that share a budget
};

inline constexpr Duration kDefaultBudget = std::chrono::seconds(60);

struct Question {
  std::string file;  ///< that faults name
  std::string name;
  std::string base;  ///< a run config, JSON, paths absolute; its policies do not count
  std::string base_file;
  Limits limits;
  SystemChoice system;
  Load load = Load::kSearched;
  /// Load of every online filler, as a share of what it could serve on GPUs of its own; nothing: as
  /// `load` says. A file has no such key: it has rates.
  std::optional<double> load_share;
  std::vector<sweep::SweepAxis> axes;  ///< places of the base that are searched besides
  Duration budget = kDefaultBudget;    ///< of search.hpp
  ConfirmedAt confirmed_at = ConfirmedAt::kAskedLength;
};

/// Reads and checks a question's file and its base; all faults at once.
[[nodiscard]] CheckedResult<Question> read_question(const std::string& path,
                                                    const policy::Registry& registry);

/// Reads a question as above from a text; `path` names it in faults and is what paths are relative
/// to.
[[nodiscard]] CheckedResult<Question> read_question_text(const std::string& text,
                                                         const std::string& path,
                                                         const policy::Registry& registry);

/// Parses the file without reading its base, and declares the keys.
[[nodiscard]] CheckedResult<Question> parse_question(const JsonDocument& document,
                                                     const policy::Registry& registry);

/// The features of a list of words. Faults, at `place`: unknown words.
[[nodiscard]] std::vector<policy::SystemFeature> read_features(
    const std::vector<std::string>& words, const Error& place, Errors& faults);

/// "ttft=500ms,tpot=50ms", as the option --slo has it. Faults name the option.
[[nodiscard]] TokenLatency read_slo(const std::string& text, Errors& faults);

/// What contradicts itself in limits and system, before anything is loaded.
[[nodiscard]] Errors check_question(const Question& question, const policy::Registry& registry);

// Questions that have no answer, found before anything is searched.

/// No filler to advise on; a filler that is larger than every GPU's free memory, with the largest
/// that would do; a p95 that a service could not keep with a GPU of its own, with the least that it
/// could; limits on tokens where no filler is a language-model server. A job that does not fit its
/// GPU cannot be loaded: that fault is sim/run's.
[[nodiscard]] Errors check_job(const Question& question, const run::LoadedRun& loaded);

}  // namespace bubblesim::advise
