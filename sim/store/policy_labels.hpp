// What policies are called where several runs are put side by side: the name, with the parameters
// in which those of its name differ.
#pragma once

#include <map>
#include <set>
#include <string>

#include "sim/store/results_store.hpp"

namespace bubblesim::store {

class PolicyLabels {
 public:
  /// `parameters`: "name=value;name=value", as the column policy_parameters has them.
  void see(const std::string& policy, const std::string& parameters);
  /// "mps", or "mps(filler_percentage=30)" where the parameters of the seen ones differ in that.
  /// Precondition: it was seen.
  [[nodiscard]] std::string label(const std::string& policy, const std::string& parameters) const;

 private:
  std::map<std::string, std::set<std::string>> seen_;
};

/// Is the setting one of the point at which policies are compared: neither a policy nor the seed?
[[nodiscard]] bool is_of_point(const Setting& setting);

}  // namespace bubblesim::store
