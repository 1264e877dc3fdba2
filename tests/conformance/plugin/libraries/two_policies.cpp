// Two good policies: `capped` caps fillers' SMs; `broken` throws when it is made, or at a launch.
#include <stdexcept>

#include "sim/plugin/policy_library.hpp"
#include "sim/policy/declare.hpp"

namespace {

using namespace bubblesim::policy;

class Capped final : public Policy {
 public:
  explicit Capped(const ParameterSet& given) : percentage_(given.integer("percentage")) {}
  Sharing start(const GpuInfo&, std::span<const ClientInfo>) override {
    return {SharingMode::kMps};
  }
  ClientSharing share(const ClientInfo& client) override {
    if (client.id == bubblesim::ClientId{0}) return {};
    return {.sm_percentage = static_cast<std::uint32_t>(percentage_)};
  }

 private:
  std::int64_t percentage_;
};

class Broken final : public Policy {
 public:
  explicit Broken(const ParameterSet& given) {
    if (given.text("throws") == "made") throw std::runtime_error("cannot be made today");
  }
  Sharing start(const GpuInfo&, std::span<const ClientInfo>) override { return {}; }
  Verdict on_launch(const LaunchInfo&, Instant, Actions&) override {
    throw std::runtime_error("did not expect a launch");
  }
};

PolicySpec capped_spec() {
  PolicySpec spec;
  spec.name = "capped";
  spec.summary = "Fillers have fewer SMs";
  spec.parameters = {declare_integer("percentage", 30, 1, 100, {"%", "Of the SMs.", "a test"})};
  spec.make = [](const ParameterSet& given) { return std::make_unique<Capped>(given); };
  return spec;
}

PolicySpec broken_spec() {
  PolicySpec spec;
  spec.name = "broken";
  spec.summary = "Throws";
  spec.parameters = {declare_choice("throws", {"made", "launch"}, {"", "When.", "a test"})};
  spec.make = [](const ParameterSet& given) { return std::make_unique<Broken>(given); };
  return spec;
}

}  // namespace

BUBBLESIM_POLICY_LIBRARY(capped_spec, broken_spec)
