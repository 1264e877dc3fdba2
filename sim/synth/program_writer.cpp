#include "sim/synth/program_writer.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "sim/base/check.hpp"

namespace bubblesim::synth {

using program::kNoIndex;
using program::short_span;
using program::StepKind;

traces::LaunchShape shape_of(const model::Launch& launch) {
  return {launch.grid, launch.block, launch.registers_per_thread, launch.shared_memory_bytes};
}

ProgramWriter::ProgramWriter(std::uint32_t rank, const hardware::GpuSpec& gpu) : gpu_(gpu) {
  program_.rank = rank;
  program_.own_kernels = program::OwnKernels::kCompete;
}

std::uint32_t add_profile(const program::KernelProfile& profile, const model::Launch& launch,
                          program::Program& program) {
  program.profiles.push_back(profile);
  program.shapes.push_back(shape_of(launch));
  return static_cast<std::uint32_t>(program.profiles.size() - 1);
}

OpDraft ProgramWriter::prepare(const TimedKernel& kernel) {
  return {.name = name(kernel.name),
          .profile = add_profile(kernel.profile, kernel.launch),
          .duration = kernel.duration};
}

std::uint32_t ProgramWriter::launch(const OpDraft& draft, std::span<const std::uint32_t> after,
                                    CallCost cost) {
  const std::uint32_t index = add_op(draft, after, cost.call);
  add_launch(index, 1, cost);
  return index;
}

std::uint32_t ProgramWriter::launch_graph(std::span<const OpDraft> drafts, CallCost cost) {
  constexpr std::size_t kMost = std::numeric_limits<std::uint16_t>::max();
  std::uint32_t last = kNoIndex;
  for (std::size_t begin = 0; begin < drafts.size(); begin += kMost) {
    const auto part = drafts.subspan(begin, std::min(kMost, drafts.size() - begin));
    const auto first = static_cast<std::uint32_t>(program_.ops.size());
    for (const OpDraft& draft : part) {
      last = add_op(draft, {}, cost.call);
      if (last != first) program_.ops[last].gap = short_span(gap_in_graph(gpu_));
    }
    add_launch(first, static_cast<std::uint16_t>(part.size()), cost);
  }
  return last;
}

/// The last operation of each stream: earlier ones have ended when it has.
std::vector<std::uint32_t> ProgramWriter::last_of_streams(
    std::span<const std::uint32_t> ops) const {
  std::map<std::uint16_t, std::uint32_t> last;
  for (const std::uint32_t op : ops) {
    const auto [at, fresh] = last.try_emplace(program_.ops[op].stream, op);
    if (!fresh) at->second = std::max(at->second, op);
  }
  std::vector<std::uint32_t> out;
  for (const auto& [stream, op] : last) out.push_back(op);
  return out;
}

std::uint32_t ProgramWriter::add_op(const OpDraft& draft, std::span<const std::uint32_t> all_after,
                                    Duration call) {
  constexpr std::size_t kMost = std::numeric_limits<std::uint8_t>::max();
  std::vector<std::uint32_t> few;
  if (all_after.size() > kMost) few = last_of_streams(all_after);
  const std::span<const std::uint32_t> after = few.empty() ? all_after : few;
  BUBBLESIM_CHECK(after.size() <= kMost, "an operation waits for at most 255 streams");
  program::Op op;
  op.duration = draft.duration;
  op.launch_lag = short_span(call + gpu_.launch_latency);
  op.gap = short_span(gpu_.stream_gap);
  op.profile = draft.profile;
  op.name = draft.name;
  op.collective = draft.collective;
  op.stream = draft.stream;
  op.kind = draft.kind;
  op.first_edge = static_cast<std::uint32_t>(program_.edges.size());
  op.edge_count = static_cast<std::uint8_t>(after.size());
  for (const std::uint32_t before : after) {
    keep_result(before);
    program_.edges.push_back({before, short_span(gpu_.stream_gap)});
  }
  program_.stream_count =
      std::max<std::uint16_t>(program_.stream_count, static_cast<std::uint16_t>(draft.stream + 1));
  const auto index = static_cast<std::uint32_t>(program_.ops.size());
  program_.ops.push_back(op);
  return index;
}

void ProgramWriter::add_launch(std::uint32_t first, std::uint16_t count, CallCost cost) {
  pause(cost.think - program::kLongestShortSpan);
  steps_.push_back({.think = short_span(std::min(cost.think, program::kLongestShortSpan)),
                    .cost = short_span(cost.call),
                    .target = first,
                    .count = count,
                    .kind = StepKind::kLaunch});
}

std::uint32_t ProgramWriter::return_detail() {
  if (return_detail_ == kNoIndex) {
    return_detail_ = static_cast<std::uint32_t>(program_.details.size());
    program_.details.push_back({short_span(gpu_.sync_latency), kNoIndex, 0});
  }
  return return_detail_;
}

void ProgramWriter::keep_result(std::uint32_t op) {
  program::Op& awaited = program_.ops[op];
  if (awaited.result_slot == kNoIndex) awaited.result_slot = program_.result_slots++;
}

void ProgramWriter::wait_for(std::uint32_t op) {
  keep_result(op);
  steps_.push_back({.target = op, .detail = return_detail(), .kind = StepKind::kWaitOp});
}

std::size_t ProgramWriter::reserve_wait() {
  steps_.emplace_back();
  return steps_.size() - 1;
}

void ProgramWriter::set_wait(std::size_t wait, std::uint32_t op, std::uint32_t passes_back) {
  keep_result(op);
  const auto detail = static_cast<std::uint32_t>(program_.details.size());
  program_.details.push_back(
      {.return_lag = short_span(gpu_.sync_latency), .passes_back = passes_back});
  steps_[wait] = {.target = op, .detail = detail, .kind = StepKind::kWaitOp};
}

void ProgramWriter::wait_for_device() {
  steps_.push_back({.detail = return_detail(), .kind = StepKind::kWaitDevice});
}

// As many steps as it takes: each holds 4.29 s at most.
void ProgramWriter::pause(Duration span) {
  for (; span > Duration::zero(); span -= program::kLongestShortSpan) {
    steps_.push_back({.think = short_span(std::min(span, program::kLongestShortSpan))});
  }
}

void ProgramWriter::begin_iteration() {
  steps_.push_back({.target = iterations_++, .kind = StepKind::kIteration});
}

void ProgramWriter::mark_memory(std::uint64_t bytes) {
  program_.memory.push_back({static_cast<std::uint32_t>(program_.ops.size()), bytes});
}

void ProgramWriter::end_thread(std::string name) {
  steps_.push_back({.target = iterations_, .kind = StepKind::kEnd});
  program_.threads.push_back({std::move(name), std::exchange(steps_, {})});
}

program::Program ProgramWriter::finish() {
  if (program_.threads.empty() || !steps_.empty()) end_thread("main");
  program_.iterations = std::max<std::uint32_t>(iterations_, 1);
  return std::move(program_);
}

}  // namespace bubblesim::synth
