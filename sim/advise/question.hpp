// The question: a training job and possible fillers of its bubbles, the limits, and the system's
// features. configs/README.md documents the keys of a question's file; `bubblesim advise TRAINING`
// makes one from options.
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

/// 95th percentiles for services that write tokens. Empty: no limit, or not measured.
struct TokenLatency {
  std::optional<Duration> ttft;  ///< from a request's arrival to its first token
  std::optional<Duration> tpot;  ///< mean over a request's further tokens
  friend bool operator==(const TokenLatency&, const TokenLatency&) = default;
};

/// Limits that a recommended setting keeps.
struct Limits {
  double keep = 0.98;           ///< least training_normalised_fraction, (0, 1]
  std::optional<Duration> p95;  ///< of every online filler; nothing: not overloaded suffices
  TokenLatency slo = {};        ///< of every online filler that writes tokens
};

/// The limits with all latencies times `part`.
[[nodiscard]] Limits with_latencies_scaled(Limits limits, double part);

/// The features of the operator's system.
struct SystemChoice {
  std::optional<std::vector<policy::SystemFeature>> can;  ///< nothing: all
  std::vector<policy::SystemFeature> cannot;
  std::vector<std::string> policies;  ///< policies to try; empty: all

  [[nodiscard]] bool has(policy::SystemFeature feature) const;
};

/// Whether online fillers' load is searched too.
enum class Load : std::uint8_t { kSearched, kAsGiven };

/// The length of the runs that confirm settings before they are reported.
enum class ConfirmedAt : std::uint8_t {
  kAskedLength,      ///< the base's length, whatever the budget is
  kAffordedLength,   ///< as half of the budget allows: no length was asked for
  kSearchedLength,   ///< the trials' length: for many questions with one budget
};

inline constexpr Duration kDefaultBudget = std::chrono::seconds(60);

struct Question {
  std::string file;  ///< its name in faults
  std::string name;
  sweep::BaseParts base;  ///< paths absolute; its policies are ignored
  Limits limits;
  SystemChoice system;
  Load load = Load::kSearched;
  /// Load of every online filler, as a share of its capacity on GPUs of its own; nothing: see
  /// `load`. A file has no such key: it has rates.
  std::optional<double> load_share;
  std::vector<sweep::SweepAxis> axes;  ///< further values of the base to search
  Duration budget = kDefaultBudget;    ///< of search.hpp
  ConfirmedAt confirmed_at = ConfirmedAt::kAskedLength;
};

/// Reads and checks a question's file and its base; all faults at once.
[[nodiscard]] CheckedResult<Question> read_question(const std::string& path,
                                                    const policy::Registry& registry);

/// Reads a question as above from a text; `path` names it in faults, and its folder is where
/// relative paths begin.
[[nodiscard]] CheckedResult<Question> read_question_text(const std::string& text,
                                                         const std::string& path,
                                                         const policy::Registry& registry);

/// Parses the file without reading its base, and declares the keys.
[[nodiscard]] CheckedResult<Question> parse_question(const JsonDocument& document,
                                                     const policy::Registry& registry);

/// The features of a list of words. Faults, at `place`: unknown words.
[[nodiscard]] std::vector<policy::SystemFeature> read_features(
    const std::vector<std::string>& words, const Error& place, Errors& faults);

/// Contradictions among limits and system, found before anything is loaded.
[[nodiscard]] Errors check_question(const Question& question, const policy::Registry& registry);

// Questions that have no answer, found before anything is searched.

/// No filler to advise on; a filler larger than every GPU's free memory (the fault says the largest
/// that fits); a p95 that a service cannot keep even with a GPU of its own (with the least
/// possible); limits on tokens without a language-model server. A job that does not fit its GPU
/// cannot be loaded: sim/run reports it.
[[nodiscard]] Errors check_job(const Question& question, const run::LoadedRun& loaded);

}  // namespace bubblesim::advise
