// Text of an inspection: what a cluster engineer asks first comes first.
#include "traces/inspect/render_text.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <numeric>
#include <optional>
#include <set>
#include <vector>

#include "sim/base/json.hpp"
#include "sim/text/counter_text.hpp"
#include "sim/text/text_table.hpp"
#include "traces/inspect/labels.hpp"
#include "traces/record_names.hpp"

namespace bubblesim::traces {
namespace {

constexpr std::size_t kNameColumns = 52;
constexpr std::size_t kColumns = 100;

std::string cover_text(const WindowUse& use) {
  return use.sm_cover() ? fmt::format("{:.1f} %", 100 * *use.sm_cover()) : "-";
}

BubbleCause main_cause(const CauseTimes& times) {
  const auto most = std::max_element(times.begin(), times.end());
  return static_cast<BubbleCause>(most - times.begin());
}

std::string main_cause_label(const WindowUse& use) {
  if (use.bubble() <= Duration{}) return "-";
  return std::string(bubble_cause_label(main_cause(use.by_cause)));
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
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return use.by_cause[a] > use.by_cause[b];
  });
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

template <class Use, class Kind>
std::string transfer_table(std::string title, const std::vector<Use>& uses, Kind Use::*kind) {
  TextTable table({std::move(title), "count", "time", "bytes"}, {Align::kLeft});
  for (const Use& use : uses) {
    std::string bytes = use.without_bytes == use.count ? "-" : short_bytes(use.bytes);
    if (use.without_bytes > 0 && use.without_bytes < use.count) {
      bytes += fmt::format(" ({} unsized)", use.without_bytes);
    }
    table.row({std::string(name_of(use.*kind)), fmt::format("{}", use.count),
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
  return text + transfer_table("collective", job.operations.collectives, &CollectiveUse::kind);
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
  return "\n" + transfer_table("copy", job.operations.copies, &CopyUse::direction);
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

struct Row {
  Bottleneck what;
  double sensitivity;
};

std::array<Row, 4> rows(const Sensitivities& job) {
  return {{{Bottleneck::kKernels, job.kernels},
           {Bottleneck::kCopies, job.copies},
           {Bottleneck::kLink, job.link},
           {Bottleneck::kHost, job.host}}};
}

std::optional<BubbleCause> main_cause_of(const WindowUse& use) {
  if (use.bubble() <= Duration{}) return std::nullopt;
  const auto most = std::max_element(use.by_cause.begin(), use.by_cause.end());
  return static_cast<BubbleCause>(most - use.by_cause.begin());
}

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
  TextTable table({"sensitivity to", "", ""}, {Align::kLeft, Align::kRight,
                                                                 Align::kLeft});
  for (const Row& row : rows(found)) {
    table.row({std::string(bottleneck_name(row.what)), fmt::format("{:.2f}", row.sensitivity),
               near_zero_reason(row.what, found, device_shares(job))});
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
  for (const Row& row : rows(found)) {
    const std::string name(bottleneck_name(row.what));
    json[name] = row.sensitivity;
    const std::string reason = near_zero_reason(row.what, found, device_shares(job));
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

}  // namespace bubblesim::traces
