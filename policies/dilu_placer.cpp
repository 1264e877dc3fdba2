#include "policies/dilu_placer.hpp"

#include <algorithm>

#include "policies/spare_memory_placer.hpp"
#include "sim/policy/declare.hpp"

namespace bubblesim::policies {
namespace {

/// Rounding of sums of shares: 0.1 + 0.2 + 0.7 counts as 1.
constexpr double kRounding = 1e-9;

}  // namespace

using namespace policy;

std::vector<Placement> DiluPlacer::place(std::span<const JobInfo> waiting,
                                         std::span<const GpuState> gpus, Instant) {
  std::vector<GpuState> state(gpus.begin(), gpus.end());
  std::erase_if(placed_, [&](const auto& placed) {
    const auto gpu = std::ranges::find(state, placed.second, &GpuState::id);
    return gpu == state.end() || gpu->jobs == 0;
  });
  std::vector<Placement> placements;
  for (const JobInfo& job : waiting) {
    const bool spread =
        std::ranges::any_of(placed_, [&](const auto& placed) { return placed.first == job.kind; });
    GpuState* best = nullptr;
    for (const bool without_instance : {true, false}) {
      if (best != nullptr || (without_instance && !spread)) continue;
      for (GpuState& gpu : state) {
        if (!can_take(gpu, job) || (without_instance && has_instance(job.kind, gpu.id))) continue;
        if (best == nullptr || score(gpu, job) < score(*best, job)) best = &gpu;
      }
    }
    if (best == nullptr) continue;
    best->used = best->used + job.memory;
    best->request += request(job);
    best->limit += limit(job);
    ++best->jobs;
    slots_.place(job, best->id);
    placed_.emplace_back(job.kind, best->id);
    placements.push_back({job.id, best->id});
  }
  return placements;
}

bool DiluPlacer::can_take(const GpuState& gpu, const JobInfo& job) const {
  const double requests = constants_.training_request + gpu.request + request(job);
  const double limits = constants_.training_limit + gpu.limit + limit(job);
  return slots_.can_take(gpu, job) && requests <= constants_.requests + kRounding &&
         limits <= constants_.limits + kRounding && fits(gpu, job, constants_.reserve);
}

double DiluPlacer::score(const GpuState& gpu, const JobInfo& job) const {
  const double requests = constants_.training_request + gpu.request + request(job);
  const double memory = gpu.memory == Bytes{} ? 0
                                              : static_cast<double>((gpu.used + job.memory).value) /
                                                    static_cast<double>(gpu.memory.value);
  return constants_.sm_weight * (1 - requests) + (1 - constants_.sm_weight) * (1 - memory);
}

double DiluPlacer::request(const JobInfo& job) const {
  return job.request > 0 ? job.request : constants_.job_request;
}

double DiluPlacer::limit(const JobInfo& job) const {
  return job.limit > 0 ? job.limit : std::max(constants_.job_limit, request(job));
}

bool DiluPlacer::has_instance(std::uint32_t kind, GpuId gpu) const {
  return std::ranges::find(placed_, std::pair(kind, gpu)) != placed_.end();
}

std::unique_ptr<Placer> make_dilu_placer(const ParameterSet& given) {
  if (given.text("placement") == "as_configured") return nullptr;
  return std::make_unique<DiluPlacer>(DiluPlacerConstants{
      .requests = given.number("oversubscribed_requests"),
      .limits = given.number("oversubscribed_limits"),
      .sm_weight = given.number("sm_weight"),
      .training_request = given.number("training_request"),
      .training_limit = given.number("training_limit"),
      .job_request = given.number("service_request"),
      .job_limit = given.number("service_limit"),
      .reserve = {static_cast<std::uint64_t>(given.integer("reserve_mib")) << 20}});
}

std::vector<ParameterSpec> dilu_placer_parameters() {
  const std::string code = "Dilu scheduling/scheduler.py";
  const DiluPlacerConstants own;
  return {
      declare_choice("placement", {"dilu", "as_configured"},
                     {"",
                      "Which GPU a fill job, or one of a filler's instances, goes to: where "
                      "Dilu's scheduler packs it, or the first that has room.",
                      code}),
      declare_number("oversubscribed_requests", own.requests, 0.01, 100,
                     {"", "Requests on a GPU sum up to this at most.", code + ": Omega"}),
      declare_number("oversubscribed_limits", own.limits, 0.01, 100,
                     {"", "Limits on a GPU sum up to this at most.", code + ": gamma"}),
      declare_number("sm_weight", own.sm_weight, 0, 1,
                     {"", "Weight of SM shares in the best fit; the rest is memory's.",
                      code + ": alpha 0.6, beta 0.4"}),
  };
}

}  // namespace bubblesim::policies
