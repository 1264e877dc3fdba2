// One run of a sweep: where it stands in the plan, what is set, and the key by which a store
// knows it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace bubblesim::store {

/// What an axis sets in this run: a JSON pointer into the run config and the value as JSON text.
struct Setting {
  std::string pointer;
  std::string value;
  friend bool operator==(const Setting&, const Setting&) = default;
};

struct PlannedRun {
  std::uint64_t index = 0;        ///< in the plan, from 0
  std::string key;                ///< 32 hexadecimal digits: sim/sweep/run_key.hpp
  std::string point;              ///< 16 digits: what is set, without seed and repetition
  std::vector<Setting> settings;  ///< in the order of the axes
  std::uint64_t seed = 1;
  std::uint32_t repetition = 0;   ///< of its point, from 0
  std::string config;             ///< the whole run config, compact JSON, paths absolute
};

}  // namespace bubblesim::store
