// The settings that may be proposed: every policy that the system can run, with its declared
// parameters, and further places of the base. A Space also gives a search's first proposals, and
// the neighbours of a proposal.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/advise/question.hpp"
#include "sim/base/json_fwd.hpp"
#include "sim/base/time.hpp"
#include "sim/policy/declaration.hpp"

namespace bubblesim::advise {

// A setting that could be recommended (a policy with parameters, values of searched places), its
// trial, and the trial's result.

struct Proposal {
  const policy::PolicySpec* policy = nullptr;
  std::map<std::string, policy::Value> parameters;  ///< others have their defaults
  std::map<std::string, std::string> places;        ///< JSON pointer, value as JSON text
  friend bool operator==(const Proposal&, const Proposal&) = default;
};

/// "mps filler_percentage=30, /fillers/0/arrivals/rate_per_s=12": unique, and for people.
[[nodiscard]] std::string proposal_text(const Proposal& proposal);
/// All values, defaults included.
[[nodiscard]] policy::ParameterSet parameters_of(const Proposal& proposal);
/// The features that the proposal needs.
[[nodiscard]] std::vector<policy::SystemFeature> demanded(const Proposal& proposal);
/// The proposal as an element of a run config's "policies".
[[nodiscard]] Json policy_entry(const Proposal& proposal);

/// How a proposal is simulated.
struct Trial {
  Proposal proposal;
  Duration length{};        ///< simulated
  Duration warmup{};
  std::uint64_t seed = 1;
  double slowdown = 1;      ///< on all of training's durations
};

/// How long the policy measures and tries at its start. `iteration`: its length alone.
[[nodiscard]] Duration settling_of(const Proposal& proposal, Duration iteration);
/// The trial with a warm-up in which its policy settles; the measured time stays.
[[nodiscard]] Trial settled(Trial trial, Duration iteration);

/// The units of a filler's gain.
struct OwnFiller {
  double requests_per_s = 0;      ///< served offline, on one GPU of its own
  double tokens_per_request = 0;  ///< of its output; 0: none, or not known
};

/// The result of a trial.
struct TrialResult {
  bool done = false;
  std::string reason;              ///< why it was not done
  double kept = 0;                 ///< of training, 1: as alone
  double gain = 0;                 ///< fillers' throughput, in GPUs of their own
  double requests_per_s = 0;       ///< of all fillers
  double tokens_per_s = 0;         ///< output of all fillers; 0: none, or not known
  double offered_per_s = 0;        ///< of online ones
  std::optional<Duration> p95;     ///< of the worst online filler
  TokenLatency tokens;             ///< of the worst such filler
  bool p95_is_lower_bound = false; ///< too many requests had not completed when the run ended
  bool overloaded = false;
  bool refused = false;            ///< some of the arrivals, but not all
  /// Its cost in events of the simulation; doubled if a filler's setting differs, since that filler
  /// is simulated alone, too.
  double events = 0;
  std::string key;                 ///< of its run
};

/// A latency of a result, and its limit.
struct LimitedLatency {
  const char* name;   ///< as limits are written: "ttft"
  const char* words;  ///< "p95 to the first token"
  std::optional<Duration> limit;
  std::optional<Duration> found;
  [[nodiscard]] bool is_broken() const { return limit && found && *found > *limit; }
};
[[nodiscard]] std::array<LimitedLatency, 3> latencies_of(const TrialResult& result,
                                                         const Limits& limits);

/// How far the result exceeds the limits, as a share of them; 0: it keeps them.
[[nodiscard]] double violation(const TrialResult& result, const Limits& limits);

/// Whether `left` is the better answer. A result at most `slack` beyond a limit counts as within
/// it. Gains within 0.3 % of each other are equal; then the higher share of training kept decides,
/// then the lower p95.
[[nodiscard]] bool is_better(const TrialResult& left, const TrialResult& right,
                             const Limits& limits, double slack = 0);

/// The best trial so far, to show during a search: never one under an oracle.
struct BestTrial {
  std::size_t trials = 0;             ///< all that were noted
  std::optional<TrialResult> result;  ///< nothing: none was done
  std::string text;                   ///< proposal_text() of the best trial

  void note(const Trial& trial, const TrialResult& found, const Limits& limits);
};

/// A place of the base that is searched.
struct PlaceRange {
  std::string pointer;
  std::vector<std::string> values;  ///< JSON texts; where searches begin
  /// If set, all numbers from the first to the last value are allowed, too.
  std::optional<std::pair<double, double>> range = std::nullopt;
  /// Searches start at the base's own value and step from there to the first of `values`: for
  /// places that seldom matter.
  bool begins_at_base = false;
};

/// A neighbour of a proposal.
struct SpaceStep {
  std::string dimension;  ///< the parameter or the place that differs
  Proposal proposal;
};

class Space {
 public:
  Space(const policy::Registry& registry, SystemChoice system, std::vector<PlaceRange> places);

  /// Each policy with its defaults at each combination of the places' values (64 at most, spread
  /// evenly); at the middle combination also with every other word of its parameters and with
  /// numbers far from the defaults. Oracles, and policies that the system cannot run, with their
  /// defaults alone.
  [[nodiscard]] std::vector<Proposal> starts() const;

  /// Neighbours of `from`: with another word, or a number larger or smaller by `factor` > 1, within
  /// declared ranges; without values that the system cannot have. `only`: these dimensions; empty:
  /// all.
  [[nodiscard]] std::vector<SpaceStep> steps(const Proposal& from, double factor,
                                             const std::vector<std::string>& only) const;

  /// Whether it may be recommended: it is no oracle, the question did not leave its policy out, and
  /// the system has all that it needs.
  [[nodiscard]] bool is_available(const Proposal& proposal) const;
  /// The features that the proposal needs and the system lacks.
  [[nodiscard]] std::vector<policy::SystemFeature> lacking(const Proposal& proposal) const;
  /// The proposal with every load times `factor`, within their ranges.
  [[nodiscard]] Proposal with_load(const Proposal& proposal, double factor) const;

 private:
  [[nodiscard]] bool is_tried(const std::string& policy) const;
  [[nodiscard]] std::vector<std::map<std::string, std::string>> combinations() const;
  void add_others(const Proposal& at, std::vector<Proposal>& starts) const;

  const policy::Registry& registry_;
  SystemChoice system_;
  std::vector<PlaceRange> places_;
};

// The places of the base that a search varies besides policies and their parameters: loads, batch
// sizes, the GPUs of fillers, and the question's own axes.

/// The job and its fillers, each measured alone.
struct PartsAlone {
  std::vector<OwnFiller> fillers{};        ///< by RunConfig::fillers
  std::vector<std::uint32_t> ranks{};      ///< of the job, as a run config numbers them
  std::vector<std::size_t> filler_gpus{};  ///< how many each filler may run on
  std::vector<double> gpu_bubbles{};       ///< share of the time, by GPU
};

/// A load is searched between 0.2 % and 120 % of the capacity of the service's own GPUs; a batch
/// size at a quarter of the base's, the base's, and four times it; the GPUs are the base's, then
/// the idlest half of them, and half of that, if GPUs differ. A question's axis replaces the
/// values of its place and of places inside it.
[[nodiscard]] std::vector<PlaceRange> searched_places(const Question& question, const Json& base,
                                                      const PartsAlone& alone);

}  // namespace bubblesim::advise
