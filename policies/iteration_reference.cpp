#include "policies/iteration_reference.hpp"

#include <algorithm>

#include "sim/base/nearest_rank.hpp"
#include "sim/policy/declare.hpp"

namespace bubblesim::policies {

using namespace policy;
using namespace std::chrono_literals;

IterationReference::IterationReference(const ReferenceConstants& constants)
    : constants_(constants) {
  lengths_.reserve(static_cast<std::size_t>(constants_.iterations));
  if (constants_.given > Duration{}) value_ = constants_.given;
}

void IterationReference::add(Duration length, Instant now) {
  if (!is_measuring(now)) return;
  lengths_.insert(std::ranges::upper_bound(lengths_, length), length);
  value_ = percentile_of(lengths_, 50);
}

bool IterationReference::is_measuring(Instant now) const {
  return constants_.given == Duration{} && now < constants_.longest &&
         lengths_.size() < static_cast<std::size_t>(constants_.iterations);
}

ReferenceConstants reference_constants(const ParameterSet& given) {
  return {.given = given.duration("reference"),
          .iterations = given.integer("reference_iterations")};
}

std::vector<ParameterSpec> reference_parameters() {
  const std::string ours = "reconstructed: the sources take a run of training alone";
  return {
      declare_duration(
          "reference", 0ns, 0ns, 100000s,
          {"", "An iteration's length without fillers; 0: measured at the start.", ours}),
      declare_integer("reference_iterations", ReferenceConstants{}.iterations, 1, 100000,
                      {"iterations",
                       "So many first iterations are measured, fillers kept out; their median "
                       "counts.",
                       ours}),
  };
}

}  // namespace bubblesim::policies
