// A pipeline schedule as a table: what each rank does, in order. It holds no times; execute.hpp
// gives it some. Which stage waits for which is in the StageGraph beside it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "sim/pipeline/action.hpp"

namespace bubblesim::pipeline {

struct Schedule {
  std::string name;
  std::uint32_t ranks = 0;
  std::uint32_t stages = 0;         ///< both directions' copies counted (DualPipe, Chimera)
  std::uint32_t micro_batches = 0;  ///< of the smallest size, if sizes differ by stage
  std::vector<std::uint32_t> rank_of_stage;   ///< by stage
  std::vector<std::vector<Action>> actions;   ///< by rank, in the order of execution

  [[nodiscard]] std::size_t action_count() const {
    std::size_t count = 0;
    for (const auto& list : actions) count += list.size();
    return count;
  }
  friend bool operator==(const Schedule&, const Schedule&) = default;
};

}  // namespace bubblesim::pipeline
