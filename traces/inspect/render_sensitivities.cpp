#include "traces/inspect/render_sensitivities.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "sim/base/json.hpp"
#include "traces/inspect/labels.hpp"
#include "sim/text/text_table.hpp"

namespace bubblesim::traces {
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
