#include "sim/workload/what_if.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "sim/base/number_text.hpp"
#include "sim/program/rules.hpp"
#include "sim/workload/build_counters.hpp"

namespace bubblesim::workload {
namespace {

constexpr std::string_view kAllowed =
    "expected TARGET[@RANK]=SPEED with TARGET one of kernels, compute, memory, kernel:TEXT, "
    "copies, link, host, and SPEED from 1e-6 to below 1e9, for example compute=2 or host@3=0.8; "
    "several with commas between them change together";

// A slower speed would take recorded times out of the range of Duration.
constexpr double kSlowest = 1e-6;
constexpr double kFastest = 1e9;

constexpr std::array<std::pair<std::string_view, WhatIfTarget>, 6> kTargets{{
    {"kernels", WhatIfTarget::kAllKernels},
    {"compute", WhatIfTarget::kComputeKernels},
    {"memory", WhatIfTarget::kMemoryKernels},
    {"copies", WhatIfTarget::kCopies},
    {"link", WhatIfTarget::kLink},
    {"host", WhatIfTarget::kHost},
}};

tl::unexpected<Error> refuse(std::string_view text, std::string_view what) {
  return fail("--what-if", {},
              "found \"" + std::string(text) + "\": " + std::string(what) + "; " +
                  std::string(kAllowed));
}

bool set_target(std::string_view text, WhatIf& change) {
  if (text.starts_with("kernel:") && text.size() > 7) {
    change.target = WhatIfTarget::kNamedKernels;
    change.name = text.substr(7);
    return true;
  }
  for (const auto& [name, target] : kTargets) {
    if (name != text) continue;
    change.target = target;
    return true;
  }
  return false;
}

bool concerns(const WhatIf& change, const program::Program& program, const program::Op& op) {
  const bool kernel = op.kind == program::WorkKind::kKernel;
  const auto is_class = [&](program::KernelClass wanted) {
    return kernel && op.profile != program::kNoIndex &&
           program.profiles[op.profile].kernel_class == wanted;
  };
  switch (change.target) {
    case WhatIfTarget::kAllKernels: return kernel;
    case WhatIfTarget::kComputeKernels: return is_class(program::KernelClass::kCompute);
    case WhatIfTarget::kMemoryKernels: return is_class(program::KernelClass::kMemory);
    case WhatIfTarget::kNamedKernels:
      return kernel && program.names[op.name].find(change.name) != std::string::npos;
    case WhatIfTarget::kCopies:
      return op.kind == program::WorkKind::kCopy || op.kind == program::WorkKind::kMemset;
    case WhatIfTarget::kLink: return op.kind == program::WorkKind::kCollective;
    case WhatIfTarget::kHost: return false;
  }
  return false;
}

}  // namespace

Result<WhatIf> parse_what_if(std::string_view text) {
  const std::size_t equals = text.rfind('=');
  if (equals == std::string_view::npos) return refuse(text, "no '='");
  std::string_view target = text.substr(0, equals);
  WhatIf change;
  const auto speed = parse_number<double>(text.substr(equals + 1));
  if (!speed || !(*speed >= kSlowest) || !(*speed < kFastest)) {
    return refuse(text, "the speed is not a number in the allowed range");
  }
  change.speed = *speed;
  if (const std::size_t at = target.rfind('@'); at != std::string_view::npos) {
    change.rank = parse_number<std::uint32_t>(target.substr(at + 1));
    if (!change.rank) return refuse(text, "the rank after '@' is not a whole number");
    target = target.substr(0, at);
  }
  if (!set_target(target, change)) return refuse(text, "unknown target");
  return change;
}

Result<std::vector<WhatIf>> parse_what_ifs(std::string_view text) {
  std::vector<WhatIf> changes;
  std::size_t begin = 0;
  for (std::size_t comma = text.find(','); comma != std::string_view::npos;
       comma = text.find(',', comma + 1)) {
    // The comma of a kernel's name stands before the name's speed.
    const auto change = parse_what_if(text.substr(begin, comma - begin));
    if (!change) continue;
    changes.push_back(*change);
    begin = comma + 1;
  }
  BUBBLESIM_ASSIGN_OR_RETURN(WhatIf last, parse_what_if(text.substr(begin)));
  changes.push_back(std::move(last));
  return changes;
}

Result<void> check_concerns(const WhatIf& change, std::string_view text, const JobProgram& job) {
  std::string ranks;
  bool has_rank = false;
  bool has_kernel = change.target != WhatIfTarget::kNamedKernels;
  for (const program::Program& program : job.ranks) {
    ranks += (ranks.empty() ? "" : ", ") + std::to_string(program.rank);
    if (change.rank && program.rank != *change.rank) continue;
    has_rank = true;
    has_kernel = has_kernel || std::ranges::any_of(program.ops, [&](const program::Op& op) {
                   return concerns(change, program, op);
                 });
  }
  const std::string found = "found \"" + std::string(text) + "\": ";
  if (!has_rank) {
    return fail("--what-if", {}, found + "the job has no rank " + std::to_string(*change.rank) +
                                     "; expected one of " + ranks);
  }
  if (has_kernel) return {};
  return fail("--what-if", {}, found + "no kernel's name contains \"" + change.name +
                                   "\"; bubblesim inspect lists names");
}

namespace {

// What an operation waits for while its launching call lasts longer than a launch takes is the
// host's.
void speed_up_launches(double speed, const program::Step& step, program::Program& program) {
  const bool launches = step.kind == program::StepKind::kLaunch ||
                        step.kind == program::StepKind::kLaunchAndWait;
  if (!launches || step.cost.duration() <= program::kLongestLag) return;
  for (std::uint32_t i = 0; i < step.count; ++i) {
    program::ShortSpan& lag = program.ops[step.target + i].launch_lag;
    const Duration within = std::min(lag.duration(), step.cost.duration()) - program::kLongestLag;
    if (within <= Duration{}) continue;
    lag = program::short_span(lag.duration() - within + scale(within, 1.0 / speed));
  }
}

}  // namespace

std::uint64_t speed_up_host(double speed, program::Program& program) {
  std::uint64_t clamped = 0;
  const auto scaled = [&](program::ShortSpan span) {
    const Duration exact = scale(span.duration(), 1.0 / speed);
    const program::ShortSpan held = program::short_span(exact);
    if (held.duration() != exact) ++clamped;
    return held;
  };
  for (program::ThreadProgram& thread : program.threads) {
    for (program::Step& step : thread.steps) {
      speed_up_launches(speed, step, program);
      step.think = scaled(step.think);
      step.cost = scaled(step.cost);
    }
  }
  program.counters.add(kClampedSpans, clamped);
  return clamped;
}

std::uint64_t apply(const WhatIf& change, JobProgram& job) {
  std::uint64_t clamped = 0;
  // A modelled collective's time is the network's, so one rank's link alone cannot be changed.
  if (change.target == WhatIfTarget::kLink && !change.rank) {
    for (BytesPerSecond& capacity : job.links) capacity.value *= change.speed;
    for (network::Transfer& transfer : job.transfers) {
      transfer.latency = scale(transfer.latency, 1.0 / change.speed);
      transfer.least = scale(transfer.least, 1.0 / change.speed);
    }
  }
  for (program::Program& program : job.ranks) {
    if (change.rank && *change.rank != program.rank) continue;
    if (change.target == WhatIfTarget::kHost) clamped += speed_up_host(change.speed, program);
    for (program::Op& op : program.ops) {
      if (concerns(change, program, op)) op.duration = scale(op.duration, 1.0 / change.speed);
    }
  }
  job.counters.add(kClampedSpans, clamped);
  return clamped;
}

}  // namespace bubblesim::workload
