#include "traces/inspect/sensitivities.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

namespace bubblesim::traces {
namespace {

std::array<std::pair<Bottleneck, double>, 4> bottleneck_sensitivities(const Sensitivities& job) {
  return {{{Bottleneck::kKernels, job.kernels},
           {Bottleneck::kCopies, job.copies},
           {Bottleneck::kLink, job.link},
           {Bottleneck::kHost, job.host}}};
}

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
  const auto found = std::find_if(all.begin(), all.end(),
                                  [&](const auto& entry) { return entry.first == what; });
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
  const auto most = std::max_element(all.begin(), all.end(), [](const auto& a, const auto& b) {
    return a.second < b.second;
  });
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

}  // namespace bubblesim::traces
