#include "sim/policy/policy.hpp"

#include <string>

#include "sim/base/units.hpp"

namespace bubblesim::policy {

ClientSharing Policy::share(const ClientInfo&) { return {}; }

Admission Policy::admit(const ClientInfo& filler, Bytes used, const GpuInfo& gpu) {
  if (!filler.memory_known || gpu.memory == Bytes{}) return {};
  if (used + filler.memory <= gpu.memory) return {};
  return {false, "needs " + format_bytes(filler.memory) + " beside " + format_bytes(used) +
                     " in use, the GPU has " + format_bytes(gpu.memory)};
}

Verdict Policy::on_launch(const LaunchInfo&, Instant, Actions&) { return Verdict::kAdmit; }
void Policy::on_completion(const CompletionInfo&, Instant, Actions&) {}
void Policy::on_bubble_begin(const BubbleInfo&, Instant, Actions&) {}
void Policy::on_bubble_end(Instant, Actions&) {}
void Policy::on_iteration(const IterationInfo&, Instant, Actions&) {}
void Policy::on_gone(ClientId, Instant, Actions&) {}
std::optional<Instant> Policy::next_tick() const { return std::nullopt; }
void Policy::on_tick(Instant, Actions&) {}
void Policy::add_counts(CounterSet&) const {}

}  // namespace bubblesim::policy
