// Any bytes as a run config: faults that say where, or a config that keeps its promises.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "policies/builtin.hpp"
#include "sim/run/run_config.hpp"

namespace {

using namespace bubblesim;

void require(bool condition) {
  if (!condition) std::abort();
}

const policy::Registry& known_policies() {
  static const policy::Registry registry = policies::builtin_policies();
  return registry;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(data, data + size);
  const auto config = run::parse_run_config(text, "fuzz/config.json", known_policies());
  if (!config) {
    require(!config.error().empty());
    for (const Error& error : config.error()) require(!error.message.empty());
    return 0;
  }
  require(!config->name.empty() && !config->policies.empty());
  require(config->training.synth.has_value() == config->training.traces.empty());
  require(config->duration.has_value() != config->iterations.has_value());
  for (const run::FillerConfig& filler : config->fillers) {
    require(filler.arrivals.has_value() == (filler.mode == observe::FillerMode::kOnline));
    require(filler.batching.max_batch >= 1 && filler.batching.requests_per_pass >= 1);
  }
  return 0;
}
