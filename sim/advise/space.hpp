// What may be proposed: every policy that the system can run, with its declared parameters, and the
// places that are searched besides. A Space also gives a search's first proposals, and the
// neighbours of a proposal.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "sim/advise/proposal.hpp"
#include "sim/advise/question.hpp"
#include "sim/base/json_fwd.hpp"

namespace bubblesim::advise {

/// A place of the base that is searched.
struct PlaceRange {
  std::string pointer;
  std::vector<std::string> values;  ///< JSON texts; where searches begin
  /// Numbers between the first and the last value, and up to these, are values too.
  std::optional<std::pair<double, double>> range = std::nullopt;
  /// Searches begin with the base as it is and step to the first value from there: places that
  /// seldom matter.
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
  /// evenly), and at the middle one with every other word of its parameters and with numbers far
  /// from the defaults. Oracles, and policies that the system cannot have, with their defaults
  /// alone.
  [[nodiscard]] std::vector<Proposal> starts() const;

  /// Every other word, and numbers larger and smaller by `factor` > 1, within declared ranges; what
  /// the system cannot have is left out. `only`: these dimensions; empty: all.
  [[nodiscard]] std::vector<SpaceStep> steps(const Proposal& from, double factor,
                                             const std::vector<std::string>& only) const;

  /// May it be recommended? Not an oracle, not a policy left out by the question, not one whose
  /// demands the system lacks.
  [[nodiscard]] bool is_available(const Proposal& proposal) const;
  /// The features that the proposal demands and the system lacks.
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

// Which places of the base a search varies besides policies and their parameters: loads, batch
// sizes, the GPUs of fillers, and the question's own axes.

/// What the job and its fillers did alone.
struct PartsAlone {
  std::vector<OwnFiller> fillers;         ///< by RunConfig::fillers
  std::vector<std::size_t> filler_gpus;   ///< how many each may run on
  std::vector<double> gpu_bubbles;        ///< share of the time, by GPU
};

/// A load is searched between 0.2 % and 120 % of what the service's own GPUs could serve; a batch
/// size is a quarter, the base's, four times as many; the GPUs are the base's, then the half of
/// them with the most idle time, and half of that, where GPUs differ. A question's axis of a place
/// stands in for these, and for those inside it.
[[nodiscard]] std::vector<PlaceRange> searched_places(const Question& question, const Json& base,
                                                      const PartsAlone& alone);

}  // namespace bubblesim::advise
