// JSON: the shape of RunReport, with units in the keys. Keys are defined in OUTPUTS.md.
#include "sim/base/json.hpp"
#include "sim/observe/report.hpp"
#include "sim/observe/summary.hpp"
#include "sim/text/text_table.hpp"

namespace bubblesim::observe {
namespace {

template <class T>
Json optional_json(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json span_json(const std::optional<Duration>& span) {
  return span ? Json(to_ns(*span)) : Json(nullptr);
}

Json training_json(const TrainingResult& training) {
  Json ranks = list_json(training.ranks, [](const RankIterations& rank) -> Json {
    return {
        {"rank", rank.rank},
        {"first_counted", rank.first_counted},
        {"iteration_times_ns", list_json(rank.times, [](Duration time) { return to_ns(time); })}};
  });
  return {{"iterations", training.iterations},
          {"iteration_mean_ns", to_ns(training.mean_iteration)},
          {"iteration_min_ns", to_ns(training.min_iteration)},
          {"iteration_max_ns", to_ns(training.max_iteration)},
          {"iterations_per_s", training.iterations_per_s},
          {"stands_still", training.stands_still},
          {"samples_per_s", optional_json(training.samples_per_s)},
          {"normalised_fraction", optional_json(training.normalised_to_alone)},
          {"redone_iterations", optional_json(training.redone)},
          {"goodput_per_s", optional_json(training.goodput_per_s)},
          {"ranks", std::move(ranks)}};
}

Json value_json(const LatencyValue& value) {
  return {{"value_ns", to_ns(value.value)}, {"lower_bound", value.bound == Bound::kLower}};
}

Json latency_json(const LatencyDistribution& latency) {
  const auto summary = latency.summary();
  if (!summary) return nullptr;
  return {{"samples_completed", latency.completed()},
          {"samples_unfinished", latency.unfinished()},
          {"p50", value_json(summary->p50)},
          {"p90", value_json(summary->p90)},
          {"p95", value_json(summary->p95)},
          {"p99", value_json(summary->p99)},
          {"max", value_json(summary->max)},
          {"mean", value_json(summary->mean)}};
}

Json instance_json(const InstanceResult& instance) {
  return {{"gpu", instance.gpu.value},
          {"admitted", instance.admitted},
          {"reason", instance.reason},
          {"passes", instance.passes},
          {"requests_completed", instance.requests_completed},
          {"memory_bytes", instance.memory.value}};
}

Json job_json(const FillJob& job) {
  return {{"requests", job.requests},
          {"requests_completed", job.requests_completed},
          {"submitted_ns", to_ns(job.submitted)},
          {"deadline_ns", span_json(job.deadline)},
          {"gpu", job.gpu ? Json(job.gpu->value) : Json(nullptr)},
          {"placed_ns", job.gpu ? Json(to_ns(job.placed)) : Json(nullptr)},
          {"started_ns", span_json(job.started)},
          {"ended_ns", span_json(job.ended)}};
}

Json jobs_json(const std::optional<FillJobs>& jobs) {
  if (!jobs) return nullptr;
  return {{"submitted", jobs->submitted},
          {"finished", jobs->finished},
          {"running", jobs->running},
          {"waiting", jobs->waiting},
          {"makespan_ns", span_json(jobs->makespan)},
          {"mean_completion_ns", span_json(jobs->mean_completion)},
          {"deadlines_met", jobs->deadlines_met},
          {"deadlines_missed", jobs->deadlines_missed},
          {"deadlines_open", jobs->deadlines_open},
          {"list", list_json(jobs->list, job_json)}};
}

Json limits_json(const std::optional<ServiceLimits>& limits) {
  if (!limits) return nullptr;
  return {{"ttft_ns", span_json(limits->ttft)},
          {"tpot_ns", span_json(limits->tpot)},
          {"latency_ns", span_json(limits->latency)}};
}

Json tbt_json(const LatencyHistogram& gaps) {
  const auto span = [&gaps](double percent) {
    const auto value = gaps.percentile(percent);
    return span_json(value ? std::optional(value->value) : std::nullopt);
  };
  return {{"samples", gaps.completed()},
          {"p50_ns", span(50)},
          {"p95_ns", span(95)},
          {"p99_ns", span(99)},
          {"max_ns", span(100)}};
}

Json server_json(const ServerResult& server) {
  return {{"ttft", latency_json(server.ttft)},
          {"tpot", latency_json(server.tpot)},
          {"tbt", tbt_json(server.tbt)},
          {"output_tokens", server.output_tokens},
          {"output_tokens_per_s", server.output_tokens_per_s},
          {"steps", server.steps},
          {"preemptions", server.preemptions},
          {"recomputed_tokens", server.recomputed_tokens},
          {"prefix_hit_tokens", server.prefix_hit_tokens},
          {"kv_mean_fraction", server.mean_kv_fraction},
          {"kv_most_fraction", server.most_kv_fraction},
          {"limits", limits_json(server.limits)},
          {"requests_within_limits", optional_json(server.within_limits)},
          {"goodput_per_s", optional_json(server.goodput_per_s)}};
}

Json filler_json(const FillerResult& filler) {
  const bool online = filler.mode == FillerMode::kOnline;
  Json json = {{"name", filler.name},
          {"mode", filler_mode_name(filler.mode)},
          {"passes", filler.passes},
          {"requests_before", filler.requests_before},
          {"requests_arrived", filler.requests_arrived},
          {"requests_completed", filler.requests_completed},
          {"requests_unfinished", filler.requests_unfinished},
          {"requests_refused", filler.requests_refused},
          {"requests_within_deadline", optional_json(filler.requests_within_deadline)},
          {"offered_per_s", optional_json(filler.offered_per_s)},
          {"requests_per_s", filler.requests_per_s},
          {"overloaded", online ? Json(filler.overloaded) : Json(nullptr)},
          {"normalised_fraction", optional_json(filler.normalised_to_own_gpu)},
          {"latency", latency_json(filler.latency)},
          {"memory_bytes", filler.memory.value},
          {"jobs", jobs_json(filler.jobs)},
          {"instances_unplaced", filler.instances_unplaced},
          {"instances", list_json(filler.instances, instance_json)}};
  if (filler.server) json["server"] = server_json(*filler.server);
  if (filler.energy_j) json["energy_j"] = *filler.energy_j;
  return json;
}

/// Null: not known.
Json known_bytes(Bytes bytes) { return bytes == Bytes{} ? Json(nullptr) : Json(bytes.value); }

Json power_json(const PowerUse& power) {
  return {{"energy_j", power.energy_j},
          {"filler_energy_j", power.filler_j},
          {"mean_w", power.mean_w},
          {"peak_w", power.peak_w},
          {"clock_mean_mhz", power.clock_mhz},
          {"periods_over_cap", power.periods_over_cap},
          {"over_cap_w", power.over_cap_w}};
}

Json bubble_json(const BubbleShare& bubble) {
  return {{"cause", bubble.cause},
          {"time_ns", to_ns(bubble.time)},
          {"recovered_ns", to_ns(bubble.recovered)}};
}

Json gpu_json(const GpuUse& gpu) {
  Json json = {{"gpu", gpu.gpu.value},
          {"busy_fraction", gpu.busy_fraction},
          {"busy_without_collectives_fraction", gpu.busy_without_collectives_fraction},
          {"training_sm_fraction", gpu.training_sm_fraction},
          {"filler_sm_fraction", gpu.filler_sm_fraction},
          {"bubble_fraction", gpu.bubble_fraction},
          {"bubbles", list_json(gpu.bubbles, bubble_json)},
          {"recovered_fraction", gpu.recovered_fraction},
          {"memory_high_water_bytes", known_bytes(gpu.memory_high_water)}};
  if (gpu.power) json["power"] = power_json(*gpu.power);
  return json;
}

Json host_json(const HostActivity& host) {
  return {{"substrate", host.substrate},
          {"decisions", host.decisions},
          {"decision_p50_ns", to_ns(host.decision_p50)},
          {"decision_p95_ns", to_ns(host.decision_p95)},
          {"decision_p99_ns", to_ns(host.decision_p99)},
          {"decision_max_ns", to_ns(host.decision_max)},
          {"policy_call_mean_ns", to_ns(host.policy_call_mean)},
          {"gate_time_ns", to_ns(host.gate_time)}};
}

Json measured_json(const Measurement& measured) {
  return {{"place", measured.place},
          {"date", measured.date},
          {"driver", measured.driver},
          {"rank", measured.rank},
          {"round", measured.round},
          {"sm_clock_before_mhz", optional_json(measured.sm_clock_before_mhz)},
          {"sm_clock_after_mhz", optional_json(measured.sm_clock_after_mhz)}};
}

/// A part of how a GPU is used; null where that was not measured.
Json use_json(const std::optional<UseAlone>& use, double UseAlone::*part) {
  return use ? Json((*use).*part) : Json(nullptr);
}

Json memory_json(const std::optional<UseAlone>& use) {
  return use ? Json(use->memory_high_water.value) : Json(nullptr);
}

Json figure_json(const KnownFigure& known) {
  return {{"figure", known.figure},
          {"filler", known.filler},
          {"wanted_fraction", known.wanted},
          {"half_width_fraction", optional_json(known.found)},
          {"reached", known.reached},
          {"overloaded", known.overloaded}};
}

Json precision_json(const RunPrecision& precision) {
  return {{"confidence", precision.confidence},
          {"figures", list_json(precision.figures, figure_json)}};
}

Json policy_json(const PolicyResult& policy) {
  Json parameters = list_json(policy.parameters, [](const auto& parameter) -> Json {
    return {{"name", parameter.first}, {"value", parameter.second}};
  });
  const PolicyActivity& activity = policy.activity;
  Json json = {{"policy", policy.policy},
          {"parameters", std::move(parameters)},
          {"oracle", policy.oracle},
          {"reconstruction", policy.reconstruction},
          {"simulated_ns", to_ns(policy.simulated)},
          {"warmup_ns", to_ns(policy.warmup)},
          {"training", training_json(policy.training)},
          {"fillers", list_json(policy.fillers, filler_json)},
          {"gpus", list_json(policy.gpus, gpu_json)},
          {"activity", {{"calls", activity.calls},
                        {"holds", activity.holds},
                        {"hold_mean_ns", to_ns(activity.mean_hold)},
                        {"hold_total_ns", to_ns(activity.total_hold)}}},
          {"events", policy.events},
          {"counters", counter_list(policy.counters)},
          {"notices", policy.notices}};
  if (const auto power = power_of(policy)) {
    json["training"]["iteration_energy_j"] = optional_json(power->iteration_j);
  }
  if (policy.host) json["host"] = host_json(*policy.host);
  if (policy.precision) json["precision"] = precision_json(*policy.precision);
  return json;
}

Json bubbles_json(const BubbleBaseline& bubbles) {
  const auto bytes = [](const std::optional<Bytes>& size) {
    return size ? Json(size->value) : Json(nullptr);
  };
  return {{"gpu", bubbles.gpu.value},
          {"bubbles", bubbles.bubbles},
          {"time_ns", to_ns(bubbles.time)},
          {"pipeline_time_ns", to_ns(bubbles.pipeline_time)},
          {"free_memory_least_bytes", bytes(bubbles.free_memory_least)},
          {"free_memory_mean_bytes", bytes(bubbles.free_memory_mean)}};
}

Json power_limit_json(const PowerLimitCost& cost) {
  return {{"unlimited_iterations_per_s", cost.unlimited_iterations_per_s},
          {"kept_fraction", cost.kept},
          {"unlimited_mean_w", cost.unlimited_w},
          {"limited_mean_w", cost.limited_w}};
}

Json baseline_json(const Baseline& baseline) {
  Json fillers = list_json(baseline.fillers, [](const FillerBaseline& filler) -> Json {
    return {{"name", filler.name},
            {"requests_per_s", filler.requests_per_s},
            {"busy_fraction", use_json(filler.use, &UseAlone::busy_fraction)},
            {"sm_fraction", use_json(filler.use, &UseAlone::sm_fraction)},
            {"memory_high_water_bytes", memory_json(filler.use)}};
  });
  const std::optional<UseAlone>& training = baseline.training_use;
  Json json = {{"training_iterations_per_s", baseline.training_iterations_per_s},
          {"training_iteration_mean_ns", to_ns(baseline.training_mean_iteration)},
          {"training_busy_fraction", use_json(training, &UseAlone::busy_fraction)},
          {"training_sm_fraction", use_json(training, &UseAlone::sm_fraction)},
          {"training_bubble_fraction", use_json(training, &UseAlone::bubble_fraction)},
          {"training_memory_high_water_bytes", memory_json(training)},
          {"recorded_iteration_mean_ns", span_json(baseline.recorded_mean_iteration)},
          {"replay_error_fraction", optional_json(baseline.replay_error)},
          {"iterations_recorded", baseline.iterations_recorded},
          {"iterations_used", baseline.iterations_used},
          {"iterations_reason", baseline.iterations_text},
          {"fillers", std::move(fillers)},
          {"bubbles", list_json(baseline.bubbles, bubbles_json)}};
  if (baseline.power_limit) json["power_limit"] = power_limit_json(*baseline.power_limit);
  return json;
}

Json filler_counters_json(const RunReport& report) {
  Json list = Json::array();
  for (std::size_t i = 0; i < report.filler_counters.size(); ++i) {
    list.push_back({{"name", report.baseline.fillers.at(i).name},
                    {"counters", counter_list(report.filler_counters[i])}});
  }
  return list;
}

}  // namespace

std::string report_json(const RunReport& report) {
  Json json = {{"config", report.config},
                     {"seed", report.seed},
                     {"device", report.device},
                     {"ranks", report.ranks},
                     {"ranks_per_gpu", report.ranks_per_gpu},
                     {"world_size", report.world_size},
                     {"baseline", baseline_json(report.baseline)},
                     {"policies", list_json(report.policies, policy_json)},
                     {"interrupted_policies", report.interrupted},
                     {"counters", counter_list(report.counters)},
                     {"training_counters", counter_list(report.training_counters)},
                     {"filler_counters", filler_counters_json(report)}};
  if (report.measured) json["measured"] = measured_json(*report.measured);
  return indented_text(json, 2) + "\n";
}

}  // namespace bubblesim::observe
