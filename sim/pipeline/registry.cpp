#include "sim/pipeline/registry.hpp"

#include <algorithm>

#include "sim/base/nearest.hpp"
#include "sim/pipeline/check.hpp"
#include "sim/pipeline/generators/generators.hpp"

namespace bubblesim::pipeline {
namespace {

Result<void> check_range(const char* what, std::uint64_t found, std::uint64_t most) {
  if (found >= 1 && found <= most) return {};
  return fail("found " + std::to_string(found) + " " + what + "; expected 1 to " +
              std::to_string(most) + "; nearest: " + (found == 0 ? "1" : std::to_string(most)));
}

Result<void> check_request(const ScheduleSpec& spec, const ScheduleRequest& request) {
  BUBBLESIM_RETURN_IF_ERROR(check_range("ranks", request.ranks, kMaxRanks));
  BUBBLESIM_RETURN_IF_ERROR(check_range("micro-batches", request.micro_batches, kMaxActions));
  const std::uint64_t chunks = std::max<std::uint64_t>(request.chunks, spec.default_chunks);
  BUBBLESIM_RETURN_IF_ERROR(check_range("chunks a rank", chunks, kMaxRanks));
  const std::uint64_t per_micro_batch = std::uint64_t{3} * request.ranks * chunks;
  const std::uint64_t most = kMaxActions / per_micro_batch;
  if (request.micro_batches > most) {
    return fail("found " + std::to_string(request.micro_batches) + " micro-batches on " +
                std::to_string(request.ranks * chunks) + " stages; a table holds at most " +
                std::to_string(kMaxActions) + " actions; nearest: " + std::to_string(most) +
                " micro-batches");
  }
  if (request.group != 0 && spec.name != "interleaved") {
    return fail(spec.name + " has no groups of micro-batches; found group " +
                std::to_string(request.group) + "; expected none, or interleaved");
  }
  if (request.graph && spec.name != "graph") {
    return fail(spec.name + " runs a chain of stages; a graph needs the schedule \"graph\"");
  }
  if (spec.name != "interleaved" && request.chunks != 0 &&
      request.chunks != spec.default_chunks) {
    return fail(spec.name + " has " + std::to_string(spec.default_chunks) +
                " stages a rank; found " + std::to_string(request.chunks) +
                " chunks; nearest: " + std::to_string(spec.default_chunks) +
                " chunks, or interleaved with " + std::to_string(request.chunks));
  }
  return {};
}

std::vector<ScheduleSpec> all_specs() {
  const char* zero_bubble = "Qi et al., Zero Bubble Pipeline Parallelism, arXiv 2401.10241";
  const char* pytorch = "torch.distributed.pipelining, schedules.py";
  const char* deepseek = "github.com/deepseek-ai/DualPipe";
  return {
      {"sequential", "Naive model parallel: one micro-batch at a time through all stages.",
       "any p and m", "no pipeline at all; the job that SpecInF calls MP", 1, make_sequential},
      {"gpipe", "All forwards, then all backwards.", "any p and m",
       "Huang et al., GPipe, arXiv 1811.06965", 1, make_gpipe},
      {"1f1b", "Warm-up, then one forward, one backward; PipeDream-flush, DAPPLE.", "any p and m",
       "Narayanan et al., arXiv 2006.09503 and 2104.04473", 1, make_1f1b},
      {"interleaved", "1F1B with several chunks of the model on each rank.",
       "m a multiple of p; or of a group of at least p micro-batches, the last at least p",
       "Narayanan et al., arXiv 2104.04473; Megatron-LM, schedules.py, "
       "get_pp_rank_microbatches", 2, make_interleaved},
      {"zb-h1", "Split backward; as much memory as 1F1B, a third of its bubble.", "any p and m",
       zero_bubble, 1, make_zb_h1},
      {"zb-h2", "Split backward; twice the memory of 1F1B, no bubble in a stage's span.",
       "any p and m", zero_bubble, 1, make_zb_h2},
      {"zb-v", "Split backward, two chunks a rank placed as a V; memory of 1F1B on every rank.",
       "any p and m", std::string(pytorch) + ", ScheduleZBVZeroBubble; arXiv 2405.15362", 2,
       make_zb_v},
      {"dualpipe", "Two directions, two copies of the model; forwards overlap with backwards.",
       "p even, m even and at least 2p", std::string(deepseek) + ", dualpipe.py", 2,
       make_dualpipe},
      {"dualpipev", "DualPipe cut in half: one copy, two chunks a rank placed as a V.",
       "m at least 2p", std::string(deepseek) + ", dualpipev.py; " + pytorch +
       ", ScheduleDualPipeV", 2, make_dualpipev},
      {"chimera", "Two directions, two copies of the model; 1F1B of each fills the other's gaps.",
       "p even, m even", "Li and Hoefler, Chimera, arXiv 2107.06925", 2, make_chimera},
      {"graph", "1F1B on a graph of stages; kFkB where micro-batch sizes differ.",
       "any graph without a cycle, one stage a rank",
       "Jeon et al., GraphPipe, arXiv 2406.17145, section 6", 1, make_graph},
  };
}

}  // namespace

const std::vector<ScheduleSpec>& schedule_specs() {
  static const std::vector<ScheduleSpec> specs = all_specs();
  return specs;
}

namespace {

Result<const ScheduleSpec*> find_schedule(std::string_view name) {
  std::vector<std::string> names;
  for (const ScheduleSpec& spec : schedule_specs()) {
    if (spec.name == name) return &spec;
    names.push_back(spec.name);
  }
  return fail(unknown_name_message("schedule", name, names));
}

}  // namespace

Result<PlannedSchedule> make_schedule(std::string_view name, const ScheduleRequest& request) {
  BUBBLESIM_ASSIGN_OR_RETURN(const ScheduleSpec* spec, find_schedule(name));
  BUBBLESIM_RETURN_IF_ERROR(check_request(*spec, request));
  BUBBLESIM_ASSIGN_OR_RETURN(PlannedSchedule plan, spec->make(request));
  plan.schedule.name = spec->name;
  const Errors faults = check(plan.schedule, plan.graph);
  if (!faults.empty()) return tl::make_unexpected(faults.front());
  return plan;
}

}  // namespace bubblesim::pipeline
