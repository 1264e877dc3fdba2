// Run configs for tests: a small valid one, and ways to change it.
#pragma once

#include "policies/builtin.hpp"
#include "sim/base/json.hpp"
#include "sim/run/run_config.hpp"

namespace bubblesim::run {

inline Json valid_config() {
  return Json::parse(R"({
    "name": "test", "duration": "2s",
    "training": {"trace": "job"},
    "fillers": [
      {"name": "batch", "mode": "offline", "program": {"trace": "bert.json"}},
      {"name": "chat", "mode": "online", "program": {"kernel_table": "chat.csv"},
       "arrivals": {"process": "poisson", "rate_per_s": 20}}],
    "policies": ["exclusive"]})");
}

inline CheckedResult<RunConfig> parse(const Json& json) {
  return parse_run_config(json.dump(), "configs/test.json", policies::builtin_policies());
}

}  // namespace bubblesim::run
