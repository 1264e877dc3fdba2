#include "traces/inspect/sensitivities.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <numeric>

#include "sim/base/json.hpp"
#include "sim/text/text_table.hpp"
#include "traces/inspect/labels.hpp"

namespace bubblesim::traces {

std::array<std::pair<Bottleneck, double>, 4> bottleneck_sensitivities(const Sensitivities& job) {
  return {{{Bottleneck::kKernels, job.kernels},
           {Bottleneck::kCopies, job.copies},
           {Bottleneck::kLink, job.link},
           {Bottleneck::kHost, job.host}}};
}

namespace {

bool is_wait(BubbleCause cause) {
  return cause == BubbleCause::kCollectiveWait || cause == BubbleCause::kPeerWait;
}

// ", ranks wait for rank 2, which comes 412.0 us late in the mean".
std::string straggler_text(const Sensitivities& job, std::string_view unnamed) {
  if (!job.straggler) return std::string(unnamed);
  return fmt::format(": ranks wait for rank {}, which comes {:.1f} us late in the mean",
                     job.straggler->rank, 1e6 * to_seconds(job.straggler->late));
}

// What bubbles come from if this is what makes them shorter.
std::string blame(BubbleCause cause, const Sensitivities& job) {
  switch (bottleneck(job)) {
    case Bottleneck::kKernels:
      return is_wait(cause)
                 ? "late kernels" +
                       straggler_text(job, ": ranks wait for the one whose kernels take longest")
                 : "slow kernels that others wait for";
    case Bottleneck::kCopies: return "slow copies that others wait for";
    case Bottleneck::kLink:
      return job.alone ? "slow links or late ranks: the other ranks were not recorded"
                       : "a slow link";
    case Bottleneck::kHost:
      return is_wait(cause) ? "late hosts" + straggler_text(job, "") : "slow hosts";
    case Bottleneck::kNothing: break;
  }
  if (job.fixed < kMatters) return "several things that take as long: none is faster by itself";
  return fmt::format("fixed latencies: {:.1f} % of the bubbles stay, whatever is faster",
                     100 * std::min(1.0, job.fixed));
}

std::string_view plural(Bottleneck bottleneck) {
  if (bottleneck == Bottleneck::kLink) return "links";
  return bottleneck == Bottleneck::kHost ? "hosts" : bottleneck_name(bottleneck);
}

double sensitivity_to(Bottleneck what, const Sensitivities& job) {
  const auto all = bottleneck_sensitivities(job);
  const auto found = std::ranges::find(all, what, &std::pair<Bottleneck, double>::first);
  return found == all.end() ? 0 : found->second;
}

// What runs longer than the thing that is asked for.
std::string limit_text(const Sensitivities& job) {
  const Bottleneck main = bottleneck(job);
  if (main == Bottleneck::kNothing) return "behind fixed latencies and waits";
  return fmt::format("behind {}", plural(main));
}

}  // namespace

Bottleneck bottleneck(const Sensitivities& job) {
  const auto all = bottleneck_sensitivities(job);
  const auto most = std::ranges::max_element(all, {}, &std::pair<Bottleneck, double>::second);
  return most->second < std::max(kMatters, job.fixed) ? Bottleneck::kNothing : most->first;
}

std::string_view bottleneck_name(Bottleneck bottleneck) {
  constexpr std::array<std::string_view, 5> kNames{"kernels", "copies", "link", "host", "none"};
  return kNames[static_cast<std::size_t>(bottleneck)];
}

Sensitivities of_bubbles(const Sensitivities& job, double own) {
  Sensitivities found = job;
  found.kernels = std::max(0.0, job.kernels - own);
  const double bubbles = 1 - own;
  if (bubbles <= 0) return found;
  for (double* share : {&found.kernels, &found.copies, &found.link, &found.host, &found.fixed}) {
    *share /= bubbles;
  }
  return found;
}

std::string confirmed_cause(BubbleCause cause, const Sensitivities& job) {
  const Bottleneck main = bottleneck(job);
  std::string text = blame(cause, job);
  if (main == Bottleneck::kNothing) return text;
  text += fmt::format(": {} twice as fast save {:.1f} % of the bubbles", plural(main),
                      50 * sensitivity_to(main, job));
  if (is_wait(cause) && main != Bottleneck::kLink) {
    text += fmt::format(", links {:.1f} %", 50 * job.link);
  }
  return text;
}

std::string near_zero_reason(Bottleneck what, const Sensitivities& job,
                             const DeviceShares& shares) {
  constexpr double kLittle = 0.1;
  if (what == Bottleneck::kNothing || sensitivity_to(what, job) >= kNearZero) return "";
  switch (what) {
    case Bottleneck::kKernels: {
      const std::string run = fmt::format("own work runs {:.1f} % of the time", 100 * shares.own);
      return shares.own < kLittle ? run : run + ", " + limit_text(job);
    }
    case Bottleneck::kLink:
      if (shares.communication == 0) return "no collectives";
      if (shares.exposed < kLittle) {
        return fmt::format("collectives alone run {:.1f} % of the time", 100 * shares.exposed);
      }
      return fmt::format("collectives alone run {:.1f} % of the time, nearly all of it waiting {}",
                         100 * shares.exposed, limit_text(job));
    case Bottleneck::kHost:
      return fmt::format("hosts are ahead of the device, {}", limit_text(job));
    default: return "copies are short, or hidden";
  }
}

namespace {

struct Words {
  std::string_view key;    ///< in JSON
  std::string_view label;  ///< for people
};

constexpr std::array<Words, kHeldByCount> kHolders{{{"launch", "launching call"},
                                                    {"stream", "stream order"},
                                                    {"edge", "recorded dependency"},
                                                    {"inferred", "inferred dependency"},
                                                    {"unknown", "not known"}}};
constexpr std::array<Words, kHostWaitCount> kWaits{{{"stream", "stream synchronisation"},
                                                    {"device", "device synchronisation"},
                                                    {"event", "event synchronisation"},
                                                    {"copy", "blocking copy"},
                                                    {"memory", "allocation or free"},
                                                    {"queue", "full launch queue"},
                                                    {"thread", "another thread"}}};
constexpr std::array<std::string_view, kWaitForCount> kReasons{"named", "inferred", "nothing",
                                                               "unknown"};

template <std::size_t count>
std::uint64_t sum(const std::array<std::uint64_t, count>& numbers) {
  return std::accumulate(numbers.begin(), numbers.end(), std::uint64_t{0});
}

// "-" for none, so that a table shows what there is.
std::string cell(std::uint64_t count) { return count == 0 ? "-" : fmt::to_string(count); }

std::string cell(Duration time, Duration window) {
  if (time == Duration{}) return "-";
  return fmt::format("{} ({})", short_duration(time), percent(time, window));
}

std::string starts_table(const Explanation& all) {
  TextTable table({"start held by", "operations", "unexplained"}, {Align::kLeft});
  for (std::size_t i = 0; i < kHeldByCount; ++i) {
    if (all.starts[i] == 0) continue;
    const bool unknown = i == static_cast<std::size_t>(HeldBy::kUnknown);
    table.row({std::string(kHolders[i].label), cell(all.starts[i]),
               cell(unknown ? all.late_starts : Duration{}, all.window)});
  }
  return table.text();
}

std::string waits_table(const Explanation& all) {
  TextTable table({"host wait", "for named work", "inferred", "nothing pending", "not known",
                   "unexplained"},
                  {Align::kLeft});
  for (std::size_t i = 0; i < kHostWaitCount; ++i) {
    const auto& counts = all.waits[i];
    if (sum(counts) == 0) continue;
    table.row({std::string(kWaits[i].label), cell(counts[0]), cell(counts[1]), cell(counts[2]),
               cell(counts[3]), cell(all.open_waits[i], all.window)});
  }
  return table.text();
}

}  // namespace

double Explanation::share() const { return std::min(1.0, fraction(unexplained, window)); }

void Explanation::add(const Explanation& other) {
  window += other.window;
  late_starts += other.late_starts;
  unexplained += other.unexplained;
  for (std::size_t i = 0; i < kHeldByCount; ++i) starts[i] += other.starts[i];
  for (std::size_t i = 0; i < kHostWaitCount; ++i) {
    open_waits[i] += other.open_waits[i];
    for (std::size_t j = 0; j < kWaitForCount; ++j) waits[i][j] += other.waits[i][j];
  }
}

std::string explanation_text(const std::vector<Explanation>& ranks) {
  if (ranks.empty()) return "";
  Explanation all;
  double most = 0;
  for (const Explanation& rank : ranks) {
    all.add(rank);
    most = std::max(most, rank.share());
  }
  std::string text =
      fmt::format("\nUnexplained: {:.2f} % of the iterations' time", 100 * all.share());
  if (ranks.size() > 1) text += fmt::format(", of one rank up to {:.2f} %", 100 * most);
  return text + "\n" + starts_table(all) + "\n" + waits_table(all);
}

Json explanation_json(const Explanation& found) {
  Json json;
  json["window_ns"] = to_ns(found.window);
  json["unexplained_ns"] = to_ns(found.unexplained);
  json["unexplained_fraction"] = found.share();
  for (std::size_t i = 0; i < kHeldByCount; ++i) {
    json["starts"][std::string(kHolders[i].key)] = found.starts[i];
  }
  json["starts"]["unexplained_ns"] = to_ns(found.late_starts);
  for (std::size_t i = 0; i < kHostWaitCount; ++i) {
    Json& wait = json["waits"][std::string(kWaits[i].key)];
    for (std::size_t j = 0; j < kWaitForCount; ++j) {
      wait[std::string(kReasons[j])] = found.waits[i][j];
    }
    wait["unexplained_ns"] = to_ns(found.open_waits[i]);
  }
  return json;
}

}  // namespace bubblesim::traces
