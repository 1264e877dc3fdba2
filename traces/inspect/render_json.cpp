// JSON of an inspection; keys in render_json.hpp.
#include "traces/inspect/render_json.hpp"

#include "sim/base/json.hpp"
#include "sim/text/counter_text.hpp"
#include "traces/inspect/labels.hpp"
#include "traces/inspect/render_text.hpp"
#include "traces/record_names.hpp"

namespace bubblesim::traces {
namespace {

Json interval_json(Interval span) {
  return {{"begin_ns", to_ns(span.begin)}, {"end_ns", to_ns(span.end)}};
}

Json causes_json(const CauseTimes& times) {
  Json json = Json::object();
  for (std::size_t i = 0; i < kBubbleCauseCount; ++i) {
    json[std::string(bubble_cause_name(static_cast<BubbleCause>(i))) + "_ns"] = to_ns(times[i]);
  }
  return json;
}

Json lengths_json(const WindowUse& use) {
  Json list = Json::array();
  for (std::size_t i = 0; i < kLengthBucketCount; ++i) {
    const LengthBucket& bucket = use.lengths[i];
    Json entry;
    entry["from_ns"] = i == 0 ? 0 : to_ns(kLengthBucketLimits[i - 1]);
    entry["below_ns"] =
        i + 1 < kLengthBucketCount ? Json(to_ns(kLengthBucketLimits[i])) : Json(nullptr);
    entry["bubbles"] = bucket.count;
    entry["total_ns"] = to_ns(bucket.total);
    entry["by_cause"] = causes_json(bucket.by_cause);
    list.push_back(std::move(entry));
  }
  return list;
}

Json use_json(const WindowUse& use) {
  Json json;
  json["length_ns"] = to_ns(use.length);
  json["busy_ns"] = to_ns(use.busy);
  json["own_ns"] = to_ns(use.own);
  json["idle_ns"] = to_ns(use.idle());
  json["bubble_ns"] = to_ns(use.bubble());
  json["communication_ns"] = to_ns(use.communication);
  json["overlapped_ns"] = to_ns(use.overlapped);
  json["exposed_communication_ns"] = to_ns(use.communication - use.overlapped);
  json["busy_fraction"] = fraction(use.busy, use.length);
  json["own_fraction"] = fraction(use.own, use.length);
  json["idle_fraction"] = fraction(use.idle(), use.length);
  json["bubble_fraction"] = fraction(use.bubble(), use.length);
  json["communication_fraction"] = fraction(use.communication, use.length);
  json["overlapped_fraction"] = fraction(use.overlapped, use.communication);
  json["sm_cover"] = use.sm_cover() ? Json(*use.sm_cover()) : Json(nullptr);
  json["bubbles"] = use.bubbles;
  json["longest_bubble_ns"] = to_ns(use.longest_bubble);
  json["gaps"] = use.gaps;
  json["gaps_100us"] = use.gaps_100us;
  json["gaps_1ms"] = use.gaps_1ms;
  json["bubble_by_cause"] = causes_json(use.by_cause);
  json["bubble_by_length"] = lengths_json(use);
  return json;
}

Json kernels_json(const OperationUse& use) {
  Json list = Json::array();
  for (const KernelUse& kernel : use.kernels) {
    Json entry;
    entry["name"] = kernel.name;
    entry["kind"] = name_of(kernel.kind);
    entry["count"] = kernel.count;
    entry["total_ns"] = to_ns(kernel.total);
    entry["mean_ns"] = to_ns(kernel.total) / static_cast<std::int64_t>(kernel.count);
    entry["share"] = fraction(kernel.total, use.total);
    list.push_back(std::move(entry));
  }
  return list;
}

template <class Use>
Json transfer_json(const Use& use, std::string_view key, std::string_view name) {
  Json entry;
  entry[std::string(key)] = name;
  entry["count"] = use.count;
  entry["total_ns"] = to_ns(use.total);
  entry["bytes"] = use.bytes;
  entry["without_bytes"] = use.without_bytes;
  return entry;
}

Json operations_json(const OperationUse& use) {
  Json json;
  json["operations"] = use.operations;
  json["total_ns"] = to_ns(use.total);
  json["kernel_names"] = use.kernel_names;
  json["top_kernels"] = kernels_json(use);
  json["collectives"] = Json::array();
  for (const CollectiveUse& collective : use.collectives) {
    json["collectives"].push_back(
        transfer_json(collective, "kind", name_of(collective.kind)));
  }
  json["copies"] = Json::array();
  for (const CopyUse& copy : use.copies) {
    json["copies"].push_back(transfer_json(copy, "direction", name_of(copy.direction)));
  }
  json["memsets"] = use.memsets;
  json["memset_bytes"] = use.memset_bytes;
  return json;
}

Json iterations_json(const Iterations& iterations) {
  Json json;
  json["marked"] = iterations.marked;
  json["recorded"] = iterations.all.size();
  json["used"] = iterations.used;
  json["steady_mean_ns"] = to_ns(iterations.steady_mean());
  json["used_host_ns"] = to_ns(iterations.host_time);
  json["used_device_ns"] = to_ns(iterations.device_time);
  json["shortest_ns"] = to_ns(iterations.shortest());
  json["longest_ns"] = to_ns(iterations.longest());
  json["all"] = Json::array();
  for (const Iteration& iteration : iterations.all) {
    Json entry = interval_json(iteration.span);
    entry["number"] = iteration.number < 0 ? Json(nullptr) : Json(iteration.number);
    entry["use"] = iteration_use_name(iteration.use);
    entry["length_ns"] = to_ns(iteration.span.length());
    entry["busy_ns"] = to_ns(iteration.busy);
    entry["own_ns"] = to_ns(iteration.own);
    json["all"].push_back(std::move(entry));
  }
  return json;
}

Json device_json(const DeviceInfo& device) {
  return {{"name", device.name},
          {"sm_count", device.sm_count},
          {"compute_major", device.compute_major},
          {"compute_minor", device.compute_minor},
          {"memory_bytes", device.memory_bytes}};
}

Json rank_json(const RankInspection& rank) {
  Json json;
  json["rank"] = rank.rank;
  json["world_size"] = rank.world_size;
  json["source"] = rank.provenance.source;
  json["format"] = rank.provenance.format;
  json["device"] = device_json(rank.device);
  json["window"] = interval_json(rank.window);
  json["whole"] = use_json(rank.whole);
  json["steady_window"] = rank.steady_window ? interval_json(*rank.steady_window) : Json(nullptr);
  json["steady"] = rank.steady ? use_json(*rank.steady) : Json(nullptr);
  json["iterations"] = iterations_json(rank.iterations);
  json["operations"] = operations_json(rank.operations);
  json["memory"] = {{"samples", rank.memory.samples},
                    {"allocated_high_water_bytes", rank.memory.allocated_high_water_bytes},
                    {"reserved_high_water_bytes", rank.memory.reserved_high_water_bytes}};
  json["counters"] = counters_object(rank.counters);
  return json;
}

}  // namespace

std::string render_json(const JobInspection& job) {
  Json json;
  json["format"] = "bubblesim.inspect/1";
  const BubbleThresholds& thresholds = job.options.thresholds;
  json["thresholds"] = {{"launch_latency_limit_ns", to_ns(thresholds.launch_latency_limit)},
                        {"turnaround_limit_ns", to_ns(thresholds.turnaround_limit)},
                        {"host_silence_ns", to_ns(thresholds.host_silence)}};
  Json total;
  total["ranks"] = job.ranks.size();
  total["steady_ranks"] = job.steady_ranks;
  total["iterations_recorded"] = job.iterations_recorded;
  total["iterations_used"] = job.iterations_used;
  total["iterations_reason"] = job.iterations_text;
  total["iteration_mean_ns"] = to_ns(job.iteration_time);
  total["bubble_fraction"] =
      job.representative.length <= Duration{}
          ? Json(nullptr)
          : Json(to_seconds(job.representative.bubble()) / to_seconds(job.representative.length));
  total["whole"] = use_json(job.whole);
  total["representative"] = use_json(job.representative);
  total["operations"] = operations_json(job.operations);
  total["counters"] = counters_object(job.counters);
  if (job.sensitivities) total["sensitivities"] = sensitivities_json(job);
  json["job"] = std::move(total);
  json["ranks"] = Json::array();
  for (const RankInspection& rank : job.ranks) json["ranks"].push_back(rank_json(rank));
  for (std::size_t i = 0; i < job.explained.size(); ++i) {
    json["ranks"][i]["explanation"] = explanation_json(job.explained[i]);
  }
  return indented_text(json, 2) + "\n";
}

}  // namespace bubblesim::traces
