// Which places of the base a search varies besides policies and their parameters: loads, batch
// sizes, the GPUs of fillers, and the question's own axes.
#pragma once

#include <cstddef>
#include <vector>

#include "sim/advise/question.hpp"
#include "sim/advise/space.hpp"
#include "sim/base/json_fwd.hpp"

namespace bubblesim::advise {

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
