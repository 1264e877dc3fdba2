#include "sim/synth/server_program.hpp"

#include <algorithm>
#include <cmath>

#include "sim/base/check.hpp"
#include "sim/base/divide.hpp"
#include "sim/synth/find_job.hpp"
#include "sim/synth/inference_program.hpp"
#include "sim/synth/rank_emitter.hpp"

namespace bubblesim::synth {
namespace {

using serving::StepGraphs;

// Any step of its kind: it says which kernels there are; every step says how long they take.
constexpr std::uint32_t kSampleTokens = 64;
constexpr std::uint32_t kSampleSequences = 8;

constexpr std::array<const char*, 3> kNames = {"prompts", "decode", "prompts and decode"};

const Generation& generation(const ServerPlan& plan) {
  return std::get<Generation>(plan.request.shape);
}

LogitRows rows_of(bool all) { return all ? LogitRows::kAll : LogitRows::kSelected; }

serving::ScheduledStep sample_step(bool prompts, bool decodes) {
  serving::ScheduledStep step;
  if (prompts) step.add({.new_tokens = kSampleTokens, .prefill = true});
  for (std::uint32_t i = 0; decodes && i < kSampleSequences; ++i) {
    step.add({.context = kSampleTokens});
  }
  return step;
}

// A prompt's last token alone is a decode step's, as in vLLM without drafts, which knows queries by
// their length.
bool is_prompt(const serving::StepSequence& part) { return part.prefill && part.new_tokens > 1; }

}  // namespace

model::IterationSums sums_of(const serving::ScheduledStep& step, const serving::StepShape& shape) {
  model::IterationSums sums;
  for (const serving::StepSequence& part : step.sequences) {
    (is_prompt(part) ? sums.prompts : sums.singles).add({part.new_tokens, part.context});
  }
  sums.tokens = shape.padded;
  sums.group_tokens = shape.group;
  // A sample for every drafted token, and for a prompt's chunk, where it is thrown away.
  sums.rows = step.totals.prefill_sequences + step.totals.decode_tokens;
  return sums;
}

Result<std::unique_ptr<ServerProgram>> ServerProgram::make(Shared<ServerPlan> plan,
                                                           ServerMeetings meetings) {
  std::unique_ptr<ServerProgram> made(new ServerProgram(std::move(plan), meetings));
  BUBBLESIM_RETURN_IF_ERROR(made->write_threads());
  return made;
}

ServerProgram::ServerProgram(Shared<ServerPlan> plan, ServerMeetings meetings)
    : plan_(std::move(plan)),
      passes_(*plan_, plan_->request.model, plan_->split, program_, meetings) {
  const auto& speculation = generation(*plan_).speculation;
  if (speculation) {
    drafts_.emplace(*plan_, speculation->draft, plan_->draft_split(), program_, meetings);
  }
  if (plan_->kernels) kernels_ = plan_->kernels();
  if (generation(*plan_).decode == DecodeMode::kGraph) {
    captured_ = step_cost::vllm_graphs(plan_->scheduler);
  }
}

Result<void> ServerProgram::write_threads() {
  const InferenceRequest& request = plan_->request;
  PassWriter writer(request);
  const std::vector<Launch> launches = launches_of_steps();
  for (const Launch launch : launches) {
    BUBBLESIM_RETURN_IF_ERROR(write_thread(writer, launch));
  }
  program_ = writer.writer().finish();
  for (std::size_t i = 0; i < launches.size(); ++i) {
    threads_.push_back(template_of(program_.threads[i], launches[i]));
  }
  count_replaced_precision(request.efficiency, request.precision, program_.counters);
  return {};
}

std::vector<ServerProgram::Launch> ServerProgram::launches_of_steps() const {
  std::vector<Launch> all;
  if (!captured_.sizes.empty()) {
    all = {{kPrompts, StepGraphs::kPieces},
           {kDecode, StepGraphs::kWhole},
           {kMixed, StepGraphs::kPieces}};
    const bool also_pieces = captured_.query > 1 || plan_->members > 1;
    if (also_pieces) all.push_back({kDecode, StepGraphs::kPieces});
  }
  for (const Kind kind : {kPrompts, kDecode, kMixed}) all.push_back({kind, StepGraphs::kNone});
  return all;
}

Result<void> ServerProgram::write_thread(PassWriter& passes, Launch launch) {
  const auto [kind, graphs] = launch;
  const serving::ScheduledStep sample = sample_step(kind != kDecode, kind != kPrompts);
  passes.writer().pause(plan_->request.step_host);
  const std::uint32_t swap = swaps_beside() ? passes.copy_beside() : program::kNoIndex;
  passes.copy_to_device(kTokenBytes);
  for (std::uint32_t draft = 0; draft < drafts_of(kind); ++draft) {
    const StepGraphs of_pass = draft_graphs(graphs, draft);
    BUBBLESIM_ASSIGN_OR_RETURN(const auto work, drafts_->work(draft_sums(sample, of_pass, draft)));
    if (kind == kMixed && draft == 0) drafts_->learn(work);
    BUBBLESIM_RETURN_IF_ERROR(passes.pass(work, of_pass));
  }
  const serving::StepShape shape = step_cost::shape_of(sample, {});
  BUBBLESIM_ASSIGN_OR_RETURN(const auto work, passes_.work(sums_of(sample, shape)));
  if (kind == kMixed) passes_.learn(work);
  BUBBLESIM_RETURN_IF_ERROR(passes.pass_and_result(work, graphs, kTokenBytes));
  if (swaps_beside()) passes.writer().wait_for(swap);
  passes.writer().end_thread(kNames[kind]);
  return {};
}

StepGraphs ServerProgram::draft_graphs(StepGraphs graphs, std::uint32_t draft) const {
  if (draft == 0) return std::min(graphs, StepGraphs::kPieces);
  return captured_.sizes.empty() ? StepGraphs::kNone : StepGraphs::kPieces;
}

std::uint32_t ServerProgram::drafts_of(Kind kind) const {
  if (!drafts_) return 0;
  return kind == kPrompts ? 1 : plan_->scheduler.speculation.tokens;
}

// Sums of the draft model's pass: one more token of each decoding sequence; prompts go with the
// first pass.
model::IterationSums ServerProgram::draft_sums(const serving::ScheduledStep& step,
                                               StepGraphs graphs, std::uint32_t draft) const {
  model::IterationSums sums;
  for (const serving::StepSequence& part : step.sequences) {
    if (is_prompt(part) && draft > 0) continue;
    const std::uint32_t tokens = is_prompt(part) ? part.new_tokens : 1;
    (is_prompt(part) ? sums.prompts : sums.singles).add({tokens, part.context + draft});
    sums.tokens += tokens;
    ++sums.rows;
  }
  if (graphs != StepGraphs::kNone) {
    const auto tokens = static_cast<std::uint32_t>(sums.tokens);
    sums.tokens = step_cost::shape_of(tokens, false, captured_).padded;
  }
  return sums;
}

// A thread launches the copy of its input, then all else in order; before that, if the plan has
// it, the copy of swapped blocks.
ServerProgram::Template ServerProgram::template_of(const program::ThreadProgram& thread,
                                                   Launch launch) {
  Template out;
  out.launch = launch;
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
  for (std::uint32_t draft = 0; draft < drafts_of(launch.kind); ++draft) {
    out.attention.push_back(drafts_->add_slots());
  }
  out.attention.push_back(passes_.add_slots());
  return out;
}

ServerProgram::Kind ServerProgram::kind_of(const model::IterationSums& sums) {
  if (sums.prompts.sequences == 0) return kDecode;
  return sums.singles.sequences == 0 ? kPrompts : kMixed;
}

serving::StepShape ServerProgram::shape_of(const serving::ScheduledStep& step) const {
  serving::StepShape shape = step_cost::shape_of(step, captured_);
  if (std::ranges::any_of(step.sequences, is_prompt)) {
    shape.graphs = std::min(shape.graphs, StepGraphs::kPieces);
  }
  return shape;
}

std::uint32_t ServerProgram::set(const serving::ScheduledStep& step,
                                 const serving::StepShape& shape, bool queued) {
  const model::IterationSums sums = sums_of(step, shape);
  const Kind kind = kind_of(sums);
  const auto found = std::ranges::find(threads_, Launch{kind, shape.graphs}, &Template::launch);
  BUBBLESIM_CHECK(found != threads_.end(), "a step without a thread");
  const Template& thread = *found;
  const auto index = static_cast<std::uint32_t>(found - threads_.begin());
  program::Op* op = &program_.ops[thread.first];
  for (std::uint32_t draft = 0; draft < drafts_of(kind); ++draft) {
    op = drafts_->write(op, draft_sums(step, draft_graphs(shape.graphs, draft), draft),
                        rows_of(kind == kDecode || draft > 0), thread.attention[draft]);
  }
  program::Op* const pass = op;
  op = passes_.write(op, sums, rows_of(kind == kDecode), thread.attention.back());
  if (kernels_) stretch(pass, op, kernels_->kernel_time(step, shape));
  BUBBLESIM_DCHECK(op == &program_.ops[thread.result], "a step has other kernels than its thread");
  const bool swaps_now = swaps_beside() && !step.awaits_swaps;
  if (swaps_beside()) program_.ops[thread.swap].duration = swaps_now ? swap_time(step) : Duration{};
  program_.ops[thread.input].duration =
      copy_time(kTokenBytes * shape.padded) + (swaps_now ? Duration{} : swap_time(step));
  program_.ops[thread.result].duration = copy_time(kTokenBytes * static_cast<double>(sums.rows));
  program::Step& begin = program_.threads[index].steps.front();
  if (begin.kind == program::StepKind::kPause) {
    begin.think = program::short_span(queued ? Duration::zero() : plan_->request.step_host);
  }
  return index;
}

// Rounding goes on from kernel to kernel, so that the sum is kept.
void ServerProgram::stretch(program::Op* first, program::Op* last, Duration together) {
  Duration kernels{}, gaps{};
  for (const program::Op* op = first; op != last; ++op) {
    if (op->kind != program::WorkKind::kKernel) continue;
    kernels += op->duration;
    if (op != first) gaps += op->gap.duration();
  }
  const double share = to_seconds(std::max(together - gaps, Duration{1})) / to_seconds(kernels);
  double end = 0;
  Duration written{};
  for (program::Op* op = first; op != last; ++op) {
    if (op->kind != program::WorkKind::kKernel) continue;
    end += share * static_cast<double>(to_ns(op->duration));
    op->duration = std::max(Duration{1}, Duration{std::llround(end)} - written);
    written += op->duration;
  }
}

bool ServerProgram::swaps_beside() const {
  return plan_->scheduler.swap_timing == serving::SwapTiming::kBeside;
}

Duration ServerProgram::swap_time(const serving::ScheduledStep& step) const {
  const double bytes =
      plan_->block_bytes * (static_cast<double>(step.blocks_swapped_out) + step.blocks_swapped_in);
  return std::int64_t{2} * plan_->layers * step.swap_copies * kCopyLatency +
         (copy_time(bytes) - kCopyLatency);
}

namespace {

constexpr std::size_t kMostBodies = 16'384;  // some 10 MB a GPU

bool is_prompt_attention(const model::WorkItem& item) {
  const auto* kernel = std::get_if<model::KernelWork>(&item);
  return kernel != nullptr && kernel->name == "prompt attention";
}

}  // namespace

PassTimer::PassTimer(const ServerPlan& plan, const model::ModelSpec& model,
                     const model::Split& split, program::Program& program, ServerMeetings meetings)
    : plan_(plan), model_(model), split_(split), program_(program), meetings_(meetings),
      timer_(plan.request.gpu, plan.request.efficiency, plan.request.software.slowdown) {}

Result<model::ModelWork> PassTimer::work(const model::IterationSums& sums) const {
  return model::summed_iteration_work(model_, split_, plan_.request.precision, sums);
}

model::ModelWork PassTimer::known_work(const model::IterationSums& sums) const {
  auto known = work(sums);
  BUBBLESIM_CHECK(known.has_value(), "a step that the server's model cannot run");
  return *std::move(known);
}

void PassTimer::learn(const model::ModelWork& mixed) {
  layers_ = mixed.layers;
  const auto& block = mixed.kinds[layers_[1]].forward;
  before_attention_ = static_cast<std::size_t>(
      std::ranges::find_if(block, is_prompt_attention) - block.begin());
}

PassTimer::AttentionSlots PassTimer::add_slots() {
  AttentionSlots slots;
  for (std::uint32_t& slot : slots) slot = add_profile({}, {}, program_);
  return slots;
}

PassTimer::Timed PassTimer::time(const model::KernelWork& work) {
  const TimedKernel timed = timer_.time(work);
  return {timed.duration,
          profiles_.index_of(timed, [this](const auto& profile, const auto& launch) {
            return add_profile(profile, launch, program_);
          }),
          program::kNoIndex};
}

// The kernel of an exchange has a block a channel, of which small ones open fewer.
PassTimer::Timed PassTimer::time(const model::Communication& what) {
  ServerExchanges* const exchanges = meetings_.exchanges_of(what.axis);
  const ServerExchanges::Meeting meeting =
      exchanges == nullptr ? ServerExchanges::Meeting{program::kNoIndex, 1}
                           : exchanges->meeting(what);
  const auto [place, fresh] = profile_of_channels_.try_emplace(meeting.channels, 0);
  if (fresh) {
    const TimedKernel kernel = collective_kernel(meeting.channels, plan_.request.gpu);
    place->second = add_profile(kernel.profile, kernel.launch, program_);
  }
  return {Duration{}, place->second, meeting.collective};
}

std::vector<PassTimer::Timed> PassTimer::time(const model::LayerWork& layer) {
  std::vector<Timed> timed;
  for (const model::WorkItem& item : layer.forward) {
    timed.push_back(std::visit([this](const auto& what) { return time(what); }, item));
  }
  return timed;
}

// All layers but the head, without attention. Pairs of tokens are many: all are forgotten at times.
const PassTimer::Timings& PassTimer::body(const model::IterationSums& sums) {
  if (bodies_.size() == kMostBodies) bodies_.clear();
  const auto [place, fresh] = bodies_.try_emplace({sums.tokens, sums.group_tokens});
  if (!fresh) return place->second;
  model::IterationSums plain;
  plain.tokens = sums.tokens;
  plain.group_tokens = sums.group_tokens;
  plain.rows = 1;
  const model::ModelWork work = known_work(plain);
  for (std::size_t kind = 0; kind + 1 < work.kinds.size(); ++kind) {
    place->second.push_back(time(work.kinds[kind]));
  }
  return place->second;
}

const std::vector<PassTimer::Timed>& PassTimer::head(std::uint32_t rows, LogitRows kind) {
  const auto [place, fresh] = heads_.try_emplace({rows, kind});
  if (!fresh) return place->second;
  model::IterationSums sums;
  sums.tokens = kind == LogitRows::kAll ? rows : rows + 1;
  sums.rows = rows;
  place->second = time(known_work(sums).kinds.back());
  return place->second;
}

void PassTimer::time_attention(const model::IterationSums& sums, const AttentionSlots& slots) {
  attention_.clear();
  const auto works =
      model::attention_work(model_, split_, plan_.request.precision, sums);
  for (std::size_t i = 0; i < works.size(); ++i) {
    const TimedKernel timed = timer_.time(works[i]);
    program_.profiles[slots[i]] = timed.profile;
    program_.shapes[slots[i]] = shape_of(timed.launch);
    attention_.push_back({timed.duration, slots[i], program::kNoIndex});
  }
}

program::Op* PassTimer::write(program::Op* op, const model::IterationSums& sums, LogitRows rows,
                              const AttentionSlots& slots) {
  time_attention(sums, slots);
  const Timings& layers = body(sums);
  const auto put = [&op](auto begin, auto end) {
    for (; begin != end; ++begin, ++op) {
      op->duration = begin->duration;
      op->profile = begin->profile;
      op->collective = begin->collective;
    }
  };
  put(layers[0].begin(), layers[0].end());
  for (std::size_t layer = 1; layer + 1 < layers_.size(); ++layer) {
    const std::vector<Timed>& block = layers[layers_[layer]];
    const auto middle = block.begin() + static_cast<std::ptrdiff_t>(before_attention_);
    put(block.begin(), middle);
    put(attention_.begin(), attention_.end());
    put(middle, block.end());
  }
  const std::vector<Timed>& last = head(static_cast<std::uint32_t>(sums.rows), rows);
  put(last.begin(), last.end());
  return op;
}

ServerExchanges::Meeting ServerExchanges::meeting(const model::Communication& what) {
  const network::CollectivePattern kind = collective_kind(what.exchange);
  const auto bytes = static_cast<std::uint64_t>(std::llround(what.bytes));
  const auto [place, fresh] = planned_.try_emplace({kind, bytes});
  Planned& planned = place->second;
  if (fresh) {
    planned.transfer = transfer_of(kind, bytes);
    planned.meeting = {rendezvous_.add({group_.size(), &planned.transfer}),
                       planned.transfer.channels};
  }
  return planned.meeting;
}

network::Transfer ServerExchanges::transfer_of(network::CollectivePattern kind,
                                               std::uint64_t bytes) const {
  const auto node_of = [this](std::uint32_t gpu) { return topology_.node_of(gpu); };
  const bool one_node = std::ranges::adjacent_find(group_.listed, std::ranges::not_equal_to{},
                                                   node_of) == group_.listed.end();
  const bool switched = topology_.spec().node.kind == hardware::NodeLink::kNvSwitch;
  std::optional<model::ServerReduce> direct;
  if (kind == network::CollectivePattern::kAllReduce && one_node) {
    direct = model::server_reduce(static_cast<double>(bytes), group_.size(),
                                  switched ? model::GpuMesh::kFull : model::GpuMesh::kPartial);
  }
  if (!direct) return topology_.plan(kind, Bytes{bytes}, group_);
  // 512 threads a block, each with 16 bytes at a time (csrc/custom_all_reduce.cuh).
  const std::uint64_t blocks = std::clamp<std::uint64_t>(divide_up(bytes, 512 * 16), 1, 36);
  return topology_.plan_reads(direct->port_bytes, group_, direct->stages * kReduceStage,
                              static_cast<std::uint32_t>(blocks));
}

}  // namespace bubblesim::synth
