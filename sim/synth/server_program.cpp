#include "sim/synth/server_program.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "sim/base/check.hpp"
#include "sim/synth/pass_writer.hpp"
#include "sim/synth/precision_check.hpp"

namespace bubblesim::synth {
namespace {

// Any step of its kind: it says which kernels there are; every step says how long they take.
constexpr std::uint32_t kSampleTokens = 64;
constexpr std::uint32_t kSampleSequences = 8;

std::vector<const model::KernelWork*> kernels_of(const model::LayerWork& layer) {
  std::vector<const model::KernelWork*> kernels;
  for (const model::WorkItem& item : layer.forward) {
    if (const auto* kernel = std::get_if<model::KernelWork>(&item)) kernels.push_back(kernel);
  }
  return kernels;
}

traces::LaunchShape shape_of(const model::Launch& launch) {
  traces::LaunchShape shape;
  shape.grid = launch.grid;
  shape.block = launch.block;
  shape.registers_per_thread = launch.registers_per_thread;
  shape.shared_memory_bytes = launch.shared_memory_bytes;
  return shape;
}

const Generation& generation(const ServerPlan& plan) {
  return std::get<Generation>(plan.request.shape);
}

}  // namespace

std::uint32_t graph_tokens(std::uint32_t sequences) {
  const auto up_to = [sequences](std::uint32_t step) {
    return (sequences + step - 1) / step * step;
  };
  if (sequences <= 2) return sequences;
  if (sequences <= 4) return 4;
  if (sequences <= 256) return up_to(8);
  return sequences <= 512 ? up_to(16) : sequences;
}

model::IterationSums sums_of(const serving::Step& step, std::uint32_t padded) {
  model::IterationSums sums;
  for (const serving::StepSequence& part : step.sequences) {
    (part.prefill ? sums.prompts : sums.singles).add({part.new_tokens, part.context});
  }
  sums.tokens = padded;
  // Of a prompt's chunk too, whose sample is thrown away; of every drafted token.
  sums.rows = step.totals.prefill_sequences + step.totals.decode_tokens;
  return sums;
}

Result<std::unique_ptr<ServerProgram>> ServerProgram::make(Shared<ServerPlan> plan) {
  std::unique_ptr<ServerProgram> made(new ServerProgram(std::move(plan)));
  BUBBLESIM_RETURN_IF_ERROR(made->write_threads());
  return made;
}

ServerProgram::ServerProgram(Shared<ServerPlan> plan)
    : plan_(std::move(plan)),
      timer_(plan_->request.gpu, plan_->request.efficiency, plan_->request.software.slowdown) {}

Result<void> ServerProgram::write_threads() {
  const InferenceRequest& request = plan_->request;
  PassWriter passes(request);
  const auto write = [&](const model::IterationSums& sums, DecodeMode mode,
                         const char* name) -> Result<model::ModelWork> {
    BUBBLESIM_ASSIGN_OR_RETURN(
        model::ModelWork work,
        model::summed_iteration_work(request.model, {}, request.precision, sums));
    passes.writer().pause(request.step_host);
    const std::uint32_t swap = swaps_beside() ? passes.copy_beside() : program::kNoIndex;
    passes.copy_to_device(kTokenBytes);
    BUBBLESIM_RETURN_IF_ERROR(passes.pass_and_result(work, mode, kTokenBytes));
    if (swaps_beside()) passes.writer().wait_for(swap);
    passes.writer().end_thread(name);
    return work;
  };
  model::IterationSums prompts;
  prompts.prompts.add({kSampleTokens, 0});
  prompts.tokens = kSampleTokens;
  prompts.rows = 1;
  model::IterationSums decode;
  for (std::uint32_t i = 0; i < kSampleSequences; ++i) decode.singles.add({1, kSampleTokens});
  decode.tokens = decode.rows = kSampleSequences;
  model::IterationSums mixed = prompts;
  mixed.singles = decode.singles;
  mixed.tokens += kSampleSequences;
  BUBBLESIM_ASSIGN_OR_RETURN(const model::ModelWork work,
                             write(prompts, DecodeMode::kEager, "prompts"));
  BUBBLESIM_RETURN_IF_ERROR(write(decode, generation(*plan_).decode, "decode"));
  BUBBLESIM_RETURN_IF_ERROR(write(mixed, DecodeMode::kEager, "prompts and decode"));
  layers_ = work.layers;
  const auto block = kernels_of(work.kinds[layers_[1]]);
  before_attention_ = static_cast<std::size_t>(
      std::ranges::find(block, "prompt attention", &model::KernelWork::name) - block.begin());
  program_ = passes.writer().finish();
  for (std::size_t kind = 0; kind < kKinds; ++kind) {
    threads_[kind] = template_of(program_.threads[kind]);
  }
  count_replaced_precision(request.efficiency, request.precision, program_.counters);
  return {};
}

// A thread launches the copy of its input, then all else in order; before that, if the plan has
// it, the copy of swapped blocks.
ServerProgram::Template ServerProgram::template_of(const program::ThreadProgram& thread) {
  Template out;
  std::uint32_t ops = 0;
  std::uint32_t first = program::kNoIndex;
  for (const program::Step& step : thread.steps) {
    if (step.kind != program::StepKind::kLaunch) continue;
    first = std::min(first, step.target);
    ops += step.count;
  }
  out.swap = first;
  out.input = swaps_beside() ? first + 1 : first;
  out.first = out.input + 1;
  out.result = first + ops - 1;
  for (std::uint32_t& slot : out.attention) slot = add_profile({}, {});
  return out;
}

std::uint32_t ServerProgram::add_profile(const program::KernelProfile& profile,
                                         const model::Launch& launch) {
  program_.profiles.push_back(profile);
  program_.shapes.push_back(shape_of(launch));
  return static_cast<std::uint32_t>(program_.profiles.size() - 1);
}

std::uint32_t ServerProgram::set(const serving::Step& step, bool queued) {
  const serving::StepTotals& totals = step.totals;
  const Kind kind = totals.prefill_sequences == 0   ? kDecode
                    : totals.decode_sequences == 0 ? kPrompts
                                                   : kMixed;
  auto tokens = static_cast<std::uint32_t>(totals.tokens());
  if (kind == kDecode && generation(*plan_).decode == DecodeMode::kGraph) {
    tokens = graph_tokens(tokens);
  }
  const Template& thread = threads_[kind];
  const model::IterationSums sums = sums_of(step, tokens);
  time_attention(thread, sums);
  write(thread, body(tokens), head(static_cast<std::uint32_t>(sums.rows), kind));
  const bool beside = swaps_beside() && !step.awaits_swaps;
  if (swaps_beside()) program_.ops[thread.swap].duration = beside ? swap_time(step) : Duration{};
  program_.ops[thread.input].duration =
      copy_time(kTokenBytes * tokens) + (beside ? Duration{} : swap_time(step));
  program_.ops[thread.result].duration = copy_time(kTokenBytes * static_cast<double>(sums.rows));
  program::Step& begin = program_.threads[kind].steps.front();
  if (begin.kind == program::StepKind::kPause) {
    begin.think = program::short_span(queued ? Duration::zero() : plan_->request.step_host);
  }
  return kind;
}

bool ServerProgram::swaps_beside() const {
  return plan_->scheduler.swap_timing == serving::SwapTiming::kBeside;
}

Duration ServerProgram::swap_time(const serving::Step& step) const {
  const double bytes =
      plan_->block_bytes * (static_cast<double>(step.blocks_swapped_out) + step.blocks_swapped_in);
  return std::int64_t{2} * plan_->layers * step.swap_copies * kCopyLatency +
         (copy_time(bytes) - kCopyLatency);
}

ServerProgram::Timed ServerProgram::time(const model::KernelWork& work) {
  const TimedKernel timed = timer_.time(work);
  return {timed.duration,
          profiles_.index_of(timed, [this](const auto& profile, const auto& launch) {
            return add_profile(profile, launch);
          })};
}

// All layers but the head, without attention.
const ServerProgram::Timings& ServerProgram::body(std::uint32_t tokens) {
  const auto [place, fresh] = bodies_.try_emplace(tokens);
  if (!fresh) return place->second;
  model::IterationSums sums;
  sums.tokens = tokens;
  sums.rows = 1;
  const auto work =
      model::summed_iteration_work(plan_->request.model, {}, plan_->request.precision, sums);
  BUBBLESIM_CHECK(work.has_value(), "a step that the server's model cannot run");
  for (std::size_t kind = 0; kind + 1 < work->kinds.size(); ++kind) {
    std::vector<Timed>& kernels = place->second.emplace_back();
    for (const auto* kernel : kernels_of(work->kinds[kind])) kernels.push_back(time(*kernel));
  }
  return place->second;
}

// A step with prompts selects the rows that it samples of; a decode step has no others.
const std::vector<ServerProgram::Timed>& ServerProgram::head(std::uint32_t rows, Kind kind) {
  const Kind like = kind == kDecode ? kDecode : kPrompts;
  const auto [place, fresh] = heads_.try_emplace({rows, like});
  if (!fresh) return place->second;
  model::IterationSums sums;
  sums.tokens = like == kDecode ? rows : rows + 1;
  sums.rows = rows;
  const auto work =
      model::summed_iteration_work(plan_->request.model, {}, plan_->request.precision, sums);
  BUBBLESIM_CHECK(work.has_value(), "a step that the server's model cannot run");
  for (const auto* kernel : kernels_of(work->kinds.back())) place->second.push_back(time(*kernel));
  return place->second;
}

void ServerProgram::time_attention(const Template& thread, const model::IterationSums& sums) {
  attention_.clear();
  const auto works =
      model::attention_work(plan_->request.model, {}, plan_->request.precision, sums);
  for (std::size_t i = 0; i < works.size(); ++i) {
    const TimedKernel timed = timer_.time(works[i]);
    program_.profiles[thread.attention[i]] = timed.profile;
    program_.shapes[thread.attention[i]] = shape_of(timed.launch);
    attention_.push_back({timed.duration, thread.attention[i]});
  }
}

void ServerProgram::write(const Template& thread, const Timings& body,
                          const std::vector<Timed>& head) {
  program::Op* op = &program_.ops[thread.first];
  const auto put = [&op](auto begin, auto end) {
    for (; begin != end; ++begin, ++op) {
      op->duration = begin->duration;
      op->profile = begin->profile;
    }
  };
  put(body[0].begin(), body[0].end());
  for (std::size_t layer = 1; layer + 1 < layers_.size(); ++layer) {
    const std::vector<Timed>& block = body[layers_[layer]];
    const auto middle = block.begin() + static_cast<std::ptrdiff_t>(before_attention_);
    put(block.begin(), middle);
    put(attention_.begin(), attention_.end());
    put(middle, block.end());
  }
  put(head.begin(), head.end());
  BUBBLESIM_DCHECK(op == &program_.ops[thread.result], "a step has other kernels than its thread");
}

}  // namespace bubblesim::synth
