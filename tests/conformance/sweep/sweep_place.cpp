#include "tests/conformance/sweep/sweep_place.hpp"

#include <gtest/gtest.h>

namespace bubblesim::app_test {

Json small_sweep(int repetitions) {
  Json base = parse_json(R"({
    "name": "small", "duration": "500ms", "warmup": "100ms",
    "training": {"trace": "traces/samples/training", "memory": "24GB",
                 "samples_per_iteration": 32},
    "fillers": [{"name": "encoder", "mode": "online",
                 "program": {"trace": "traces/samples/inference.json.gz"},
                 "requests_per_pass": 8, "max_batch": 8, "max_wait": "5ms", "memory": "2GB",
                 "arrivals": {"process": "poisson", "rate_per_s": 200}}],
    "policies": ["exclusive"]})");
  return {{"name", "small"},
          {"base", std::move(base)},
          {"axes", parse_json(R"([{"pointer": "/policies/0", "values": ["exclusive", "mps"]}])")},
          {"repetitions", repetitions}};
}

void write_sweep(const Workplace& place, const Json& sweep) {
  place.write("sweep.json", sweep.dump(2));
}

std::string exported(const Workplace& place, const std::string& store) {
  const Outcome rows = place.bubblesim("results " + store + " export");
  EXPECT_EQ(rows.code, 0) << rows.err;
  return rows.out;
}

Json last_event(const std::string& out) {
  const auto lines = lines_of(out);
  return lines.empty() ? Json() : parse_json(lines.back());
}

}  // namespace bubblesim::app_test
