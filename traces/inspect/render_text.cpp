#include "traces/inspect/render_text.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <numeric>
#include <optional>
#include <set>
#include <vector>

#include <fmt/format.h>

#include "sim/base/json.hpp"
#include "sim/text/text_table.hpp"
#include "traces/inspect/labels.hpp"
#include "traces/record_names.hpp"

namespace bubblesim::traces {
namespace {

// Text of an inspection: what a cluster engineer asks first comes first.

constexpr std::size_t kNameColumns = 52;
constexpr std::size_t kColumns = 100;

std::string cover_text(const WindowUse& use) {
  return use.sm_cover() ? fmt::format("{:.1f} %", 100 * *use.sm_cover()) : "-";
}

BubbleCause main_cause(const CauseTimes& times) {
  const auto most = std::ranges::max_element(times);
  return static_cast<BubbleCause>(most - times.begin());
}

/// Nothing: there are no bubbles.
std::optional<BubbleCause> main_cause_of(const WindowUse& use) {
  return use.bubble() <= Duration{} ? std::nullopt : std::optional(main_cause(use.by_cause));
}

std::string main_cause_label(const WindowUse& use) {
  const std::optional<BubbleCause> cause = main_cause_of(use);
  return std::string(cause ? bubble_cause_label(*cause) : "-");
}

std::string heading(const JobInspection& job) {
  std::set<std::string> devices;
  std::set<std::string> formats;
  for (const RankInspection& rank : job.ranks) {
    devices.insert(device_label(rank.device));
    if (!rank.provenance.format.empty()) formats.insert(rank.provenance.format);
  }
  std::string text = fmt::format("{} rank{}", job.ranks.size(), job.ranks.size() == 1 ? "" : "s");
  if (!job.ranks.empty() && job.ranks.front().world_size > job.ranks.size()) {
    text += fmt::format(" of {}", job.ranks.front().world_size);
  }
  for (const std::string& device : devices) text += ", " + device;
  for (const std::string& format : formats) text += ", " + format;
  return text + "\n";
}

// Lines of at most 100 columns, broken at blanks.
std::string wrapped(std::string text) {
  std::size_t begin = 0;
  while (text.size() - begin > kColumns) {
    const std::size_t blank = text.rfind(' ', begin + kColumns);
    if (blank == std::string::npos || blank <= begin) break;
    text[blank] = '\n';
    begin = blank + 1;
  }
  return text + "\n";
}

std::string window_line(const JobInspection& job) {
  std::string text = wrapped("Iterations: " + job.iterations_text);
  if (job.iteration_time > Duration{}) {
    text += fmt::format("{:.3f} ms an iteration; shares are of the iterations used, repeated.\n",
                        1e3 * to_seconds(job.iteration_time));
  }
  return text;
}

std::string iteration_text(const Iterations& iterations) {
  if (!iterations.marked) return "none marked";
  return fmt::format("{} x {}", iterations.used, short_duration(iterations.steady_mean()));
}

std::string rank_table(const JobInspection& job) {
  TextTable table({"rank", "span", "iterations", "busy", "own work", "SM cover", "bubble",
                   "main cause"},
                  {Align::kRight, Align::kRight, Align::kRight, Align::kRight, Align::kRight,
                   Align::kRight, Align::kRight, Align::kLeft});
  const bool mixed = job.steady_ranks > 0 && job.steady_ranks < job.ranks.size();
  for (const RankInspection& rank : job.ranks) {
    const WindowUse& use = rank.representative();
    if (rank.operations.operations == 0) {
      table.row({fmt::format("{}", rank.rank), "-", "-", "-", "-", "-", "-",
                 "no device operation in the trace"});
      continue;
    }
    table.row({fmt::format("{}{}", rank.rank, mixed && !rank.steady ? "*" : ""),
               short_duration(rank.whole.length), iteration_text(rank.iterations),
               percent(use.busy, use.length), percent(use.own, use.length), cover_text(use),
               percent(use.bubble(), use.length), main_cause_label(use)});
  }
  if (job.ranks.size() > 1) {
    const WindowUse& use = job.representative;
    table.row({"all", short_duration(job.whole.length), "", percent(use.busy, use.length),
               percent(use.own, use.length), cover_text(use), percent(use.bubble(), use.length),
               main_cause_label(use)});
  }
  return table.text();
}

std::string cause_table(const WindowUse& use) {
  std::vector<std::size_t> order(kBubbleCauseCount);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::greater<>{},
                           [&](std::size_t cause) { return use.by_cause[cause]; });
  TextTable table({"cause", "time", "of bubbles", "of window"}, {Align::kLeft});
  for (const std::size_t cause : order) {
    const Duration time = use.by_cause[cause];
    if (time <= Duration{}) continue;
    table.row({std::string(bubble_cause_label(static_cast<BubbleCause>(cause))),
               short_duration(time), percent(time, use.bubble()), percent(time, use.length)});
  }
  return table.text();
}

std::string length_table(const WindowUse& use) {
  TextTable table({"length", "bubbles", "time", "of bubbles", "main cause"},
                  {Align::kLeft, Align::kRight, Align::kRight, Align::kRight, Align::kLeft});
  for (std::size_t i = 0; i < kLengthBucketCount; ++i) {
    const LengthBucket& bucket = use.lengths[i];
    if (bucket.count == 0) continue;
    table.row({std::string(length_bucket_label(i)), fmt::format("{}", bucket.count),
               short_duration(bucket.total), percent(bucket.total, use.bubble()),
               std::string(bubble_cause_label(main_cause(bucket.by_cause)))});
  }
  return table.text();
}

std::string bubble_section(const WindowUse& use) {
  if (use.bubble() <= Duration{}) return "\nNo bubbles.\n";
  std::string text = fmt::format(
      "\nBubbles: {} in {}, longest {}; device empty {} ({} gaps >= 100 us, {} >= 1 ms)\n",
      short_duration(use.bubble()), use.bubbles, short_duration(use.longest_bubble),
      percent(use.idle(), use.length), use.gaps_100us, use.gaps_1ms);
  return text + cause_table(use) + "\n" + length_table(use);
}

template <class Kind>
std::string transfer_table(std::string title, const std::vector<TransferUse<Kind>>& uses) {
  TextTable table({std::move(title), "count", "time", "bytes"}, {Align::kLeft});
  for (const TransferUse<Kind>& use : uses) {
    std::string bytes = use.without_bytes == use.count ? "-" : short_bytes(use.bytes);
    if (use.without_bytes > 0 && use.without_bytes < use.count) {
      bytes += fmt::format(" ({} unsized)", use.without_bytes);
    }
    table.row({std::string(name_of(use.kind)), fmt::format("{}", use.count),
               short_duration(use.total), std::move(bytes)});
  }
  return table.text();
}

std::string communication_section(const JobInspection& job) {
  const WindowUse& use = job.representative;
  if (job.operations.collectives.empty()) return "\nNo communication kernels.\n";
  std::string text = fmt::format(
      "\nCommunication: {} of the window, {} of it behind the rank's own work, {} exposed\n",
      percent(use.communication, use.length), percent(use.overlapped, use.communication),
      short_duration(use.communication - use.overlapped));
  return text + transfer_table("collective", job.operations.collectives);
}

std::string kernel_section(const OperationUse& use) {
  if (use.kernels.empty()) return "";
  std::string text = fmt::format("\nKernels: {} of {} names, by time; whole window\n",
                                 use.kernels.size(), use.kernel_names);
  TextTable table({"share", "total", "count", "mean", "name"},
                  {Align::kRight, Align::kRight, Align::kRight, Align::kRight, Align::kLeft});
  for (const KernelUse& kernel : use.kernels) {
    table.row({percent(kernel.total, use.total), short_duration(kernel.total),
               fmt::format("{}", kernel.count),
               short_duration(kernel.total / static_cast<std::int64_t>(kernel.count)),
               shortened(kernel.name, kNameColumns)});
  }
  return text + table.text();
}

std::string memory_line(const JobInspection& job) {
  MemoryUse most;
  for (const RankInspection& rank : job.ranks) {
    most.samples += rank.memory.samples;
    most.allocated_high_water_bytes =
        std::max(most.allocated_high_water_bytes, rank.memory.allocated_high_water_bytes);
    most.reserved_high_water_bytes =
        std::max(most.reserved_high_water_bytes, rank.memory.reserved_high_water_bytes);
  }
  if (most.samples == 0) return "\nMemory: not recorded.\n";
  return fmt::format("\nMemory: at most {} allocated, {} reserved on one rank ({} samples)\n",
                     short_bytes(most.allocated_high_water_bytes),
                     short_bytes(most.reserved_high_water_bytes), most.samples);
}

std::string copy_section(const JobInspection& job) {
  if (job.operations.copies.empty()) return "";
  return "\n" + transfer_table("copy", job.operations.copies);
}

std::string counter_section(const CounterSet& counters) {
  if (counters.empty()) return "\nData quality: nothing dropped or guessed.\n";
  TextTable table({"count", "severity", "name"}, {Align::kRight, Align::kLeft, Align::kLeft});
  for (const auto& [name, entry] : counters) {
    table.row({fmt::format("{}", entry.count), std::string(severity_name(entry.severity)), name});
  }
  return "\nData quality\n" + table.text();
}

}  // namespace

std::string render_text(const JobInspection& job) {
  if (job.ranks.empty()) return "No ranks.\n";
  return heading(job) + loss_lines(job.counters) + window_line(job) + "\n" + rank_table(job) +
         bubble_section(job.representative) + sensitivities_text(job) +
         explanation_text(job.explained) + communication_section(job) +
         kernel_section(job.operations) + copy_section(job) + memory_line(job) +
         counter_section(job.counters);
}

namespace {

Duration time_of(BubbleCause cause, const WindowUse& use) {
  return use.by_cause[static_cast<std::size_t>(cause)];
}

}  // namespace

DeviceShares device_shares(const JobInspection& job) {
  const WindowUse& use = job.representative;
  return {fraction(use.own, use.length), fraction(use.communication, use.length),
          fraction(use.communication - use.overlapped, use.length)};
}

namespace {

Sensitivities bubble_sensitivities(const JobInspection& job) {
  return of_bubbles(*job.sensitivities, device_shares(job).own);
}

}  // namespace

std::string sensitivities_text(const JobInspection& job) {
  if (!job.sensitivities) return "";
  const Sensitivities& found = *job.sensitivities;
  TextTable table({"sensitivity to", "", ""}, {Align::kLeft, Align::kRight, Align::kLeft});
  for (const auto& [what, sensitivity] : bottleneck_sensitivities(found)) {
    table.row({std::string(bottleneck_name(what)), fmt::format("{:.2f}", sensitivity),
               near_zero_reason(what, found, device_shares(job))});
  }
  table.row({"(fixed)", fmt::format("{:.2f}", found.fixed),
             found.fixed < kNearZero ? "" : "stays: latencies, and what is unexplained"});
  std::string text = fmt::format(
      "\nSensitivities of the replayed iteration, {}: 1 if it halves where this is twice as fast\n",
      short_duration(found.iteration));
  text += table.text();
  const WindowUse& use = job.representative;
  if (const auto cause = main_cause_of(use)) {
    text += fmt::format("Bubbles: {} of them {}. Cause: {}.\n",
                        percent(time_of(*cause, use), use.bubble()), bubble_cause_label(*cause),
                        confirmed_cause(*cause, bubble_sensitivities(job)));
  }
  return text;
}

Json sensitivities_json(const JobInspection& job) {
  const Sensitivities& found = *job.sensitivities;
  Json json;
  json["iteration_ns"] = to_ns(found.iteration);
  json["near_zero"] = Json::object();
  for (const auto& [what, sensitivity] : bottleneck_sensitivities(found)) {
    const std::string name(bottleneck_name(what));
    json[name] = sensitivity;
    const std::string reason = near_zero_reason(what, found, device_shares(job));
    if (!reason.empty()) json["near_zero"][name] = reason;
  }
  json["rest"] = found.rest();
  json["fixed"] = found.fixed;
  json["bottleneck"] = bottleneck_name(bottleneck(found));
  const WindowUse& use = job.representative;
  const auto cause = main_cause_of(use);
  json["main_cause"] = cause ? Json(bubble_cause_name(*cause)) : Json(nullptr);
  json["main_cause_fraction"] = cause ? fraction(time_of(*cause, use), use.bubble()) : 0.0;
  json["confirmed_cause"] =
      cause ? Json(confirmed_cause(*cause, bubble_sensitivities(job))) : Json(nullptr);
  return json;
}

namespace {

// JSON of an inspection.

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

template <class Kind>
Json transfers_json(const std::vector<TransferUse<Kind>>& uses, const std::string& key) {
  Json list = Json::array();
  for (const TransferUse<Kind>& use : uses) {
    list.push_back({{key, name_of(use.kind)},
                    {"count", use.count},
                    {"total_ns", to_ns(use.total)},
                    {"bytes", use.bytes},
                    {"without_bytes", use.without_bytes}});
  }
  return list;
}

Json operations_json(const OperationUse& use) {
  Json json;
  json["operations"] = use.operations;
  json["total_ns"] = to_ns(use.total);
  json["kernel_names"] = use.kernel_names;
  json["top_kernels"] = kernels_json(use);
  json["collectives"] = transfers_json(use.collectives, "kind");
  json["copies"] = transfers_json(use.copies, "direction");
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
