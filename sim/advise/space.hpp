// What may be proposed: every policy that the system can run, with its declared parameters, and the
// places that are searched besides. A Space also gives a search's first proposals, and the
// neighbours of a proposal.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/advise/proposal.hpp"

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

}  // namespace bubblesim::advise
