#include "sim/synth/inference_program.hpp"

#include <cmath>
#include <span>
#include <string>
#include <utility>
#include <variant>

#include "sim/model/inference_work.hpp"
#include "sim/synth/find_job.hpp"
#include "sim/synth/rank_emitter.hpp"
#include "sim/synth/record_trace.hpp"

namespace bubblesim::synth {
namespace {

using serving::StepGraphs;

constexpr double kFloatBytes = 4.0;

StepGraphs graphs_of(const Generation& shape) {
  return shape.decode == DecodeMode::kGraph ? StepGraphs::kWhole : StepGraphs::kNone;
}

const model::TransformerSpec* transformer_of(const model::ModelSpec& model) {
  return std::get_if<model::TransformerSpec>(&model.network);
}

// What one sample is to its model.
double sample_bytes(const model::BranchSpec& branch) {
  using Kind = model::BranchSpec::Kind;
  switch (branch.kind) {
    case Kind::kEmbeddingBag: return branch.repeat * branch.bag * kTokenBytes;
    case Kind::kFeedForward:
      return branch.repeat * static_cast<double>(branch.inputs) * kFloatBytes;
    case Kind::kTransformer: break;
  }
  return branch.repeat * static_cast<double>(branch.sequence * branch.width) * kFloatBytes;
}

double request_bytes(const InferenceRequest& request, std::uint64_t sequence) {
  if (const auto* transformer = transformer_of(request.model)) {
    const std::uint64_t tokens = sequence == 0 ? transformer->max_sequence : sequence;
    return request.batch * static_cast<double>(tokens) * kTokenBytes;
  }
  if (const auto* images = std::get_if<model::ConvolutionalSpec>(&request.model.network)) {
    return static_cast<double>(request.batch) * images->channels * images->image * images->image *
           kFloatBytes;
  }
  double bytes = 0;
  for (const auto& branch : std::get<model::GraphSpec>(request.model.network).branches) {
    bytes += sample_bytes(branch);
  }
  return bytes * request.batch;
}

// Logits of a language model stay on the device: what leaves it is a token for each position.
// Pooled vectors and classes leave it, of the first token only.
double result_bytes(const InferenceRequest& request, const model::ModelWork& work,
                    std::uint64_t sequence) {
  const auto* transformer = transformer_of(request.model);
  if (transformer == nullptr) return work.kinds[work.layers.back()].output_bytes;
  switch (transformer->head) {
    case model::Head::kLanguageModel: return request_bytes(request, sequence);
    case model::Head::kClassifier: return request.batch * transformer->classes * kFloatBytes;
    default: break;
  }
  return request.batch * static_cast<double>(transformer->hidden) *
         model::bytes_of(request.precision);
}

class Emission {
 public:
  explicit Emission(const InferenceRequest& request) : request_(request), passes_(request) {}

  [[nodiscard]] Result<void> write(const OnePass& shape);
  [[nodiscard]] Result<void> write(const Generation& shape);
  [[nodiscard]] InferenceProgram finish();

 private:
  void begin(std::uint64_t sequence);
  [[nodiscard]] Result<void> step(const model::ModelWork& work, StepGraphs graphs, double result);
  [[nodiscard]] Result<void> prompts(const Generation& shape);
  [[nodiscard]] Result<void> decode(const Generation& shape);
  [[nodiscard]] Result<void> speculate(const Generation& shape, const DraftSpeculation& how);
  [[nodiscard]] Result<void> round(const Generation& shape, const DraftSpeculation& how,
                                   std::uint64_t context);

  const InferenceRequest& request_;
  PassWriter passes_;
  std::uint64_t steps_ = 0;
};

void Emission::begin(std::uint64_t sequence) {
  passes_.writer().begin_iteration();
  passes_.copy_to_device(request_bytes(request_, sequence));
}

Result<void> Emission::step(const model::ModelWork& work, StepGraphs graphs, double result) {
  ++steps_;
  passes_.writer().pause(request_.step_host);
  return passes_.pass_and_result(work, graphs, result);
}

Result<void> Emission::write(const OnePass& shape) {
  BUBBLESIM_ASSIGN_OR_RETURN(
      const model::ModelWork work,
      model::forward_work(request_.model, {}, request_.precision, request_.batch, shape.sequence,
                          shape.attention));
  begin(shape.sequence);
  return step(work, StepGraphs::kNone, result_bytes(request_, work, shape.sequence));
}

Result<void> Emission::write(const Generation& shape) {
  begin(shape.prompt_tokens);
  BUBBLESIM_RETURN_IF_ERROR(prompts(shape));
  return shape.speculation ? speculate(shape, *shape.speculation) : decode(shape);
}

Result<void> Emission::prompts(const Generation& shape) {
  if (shape.speculation) {
    BUBBLESIM_ASSIGN_OR_RETURN(
        const model::ModelWork draft,
        model::prefill_work(shape.speculation->draft, {}, request_.precision, request_.batch,
                            shape.prompt_tokens));
    BUBBLESIM_RETURN_IF_ERROR(passes_.pass(draft, StepGraphs::kNone));
  }
  BUBBLESIM_ASSIGN_OR_RETURN(
      const model::ModelWork work,
      model::prefill_work(request_.model, {}, request_.precision, request_.batch,
                          shape.prompt_tokens));
  return step(work, StepGraphs::kNone, kTokenBytes * request_.batch);
}

// Step i caches the token before it, the i-th of the output: prompt + i - 1 are there already.
Result<void> Emission::decode(const Generation& shape) {
  for (std::uint64_t i = 1; i < shape.output_tokens; ++i) {
    BUBBLESIM_ASSIGN_OR_RETURN(
        const model::ModelWork work,
        model::decode_work(request_.model, {}, request_.precision, request_.batch,
                           shape.prompt_tokens + i - 1));
    BUBBLESIM_RETURN_IF_ERROR(step(work, graphs_of(shape), kTokenBytes * request_.batch));
  }
  return {};
}

Result<void> Emission::speculate(const Generation& shape, const DraftSpeculation& how) {
  BUBBLESIM_ASSIGN_OR_RETURN(const double yield,
                             model::expected_accepted(how.acceptance, how.tree));
  std::uint64_t tokens = 1;
  for (std::uint64_t rounds = 1; tokens < shape.output_tokens; ++rounds) {
    BUBBLESIM_RETURN_IF_ERROR(round(shape, how, shape.prompt_tokens + tokens - 1));
    // 1e-9: a yield like 2.1 that binary fractions miss by an ulp still gives 21 in 10 rounds.
    tokens = 1 + static_cast<std::uint64_t>(std::floor(static_cast<double>(rounds) * yield + 1e-9));
  }
  return {};
}

Result<void> Emission::round(const Generation& shape, const DraftSpeculation& how,
                             std::uint64_t context) {
  model::SpeculationShape work_shape;
  work_shape.precision = request_.precision;
  work_shape.sequences = request_.batch;
  work_shape.context = context;
  BUBBLESIM_ASSIGN_OR_RETURN(
      const model::SpeculationWork work,
      model::speculation_work(request_.model, how.draft, work_shape, how.tree));
  for (const model::ModelWork& draft : work.draft) {
    BUBBLESIM_RETURN_IF_ERROR(passes_.pass(draft, graphs_of(shape)));
  }
  BUBBLESIM_ASSIGN_OR_RETURN(const std::uint64_t checked, model::token_count(how.tree));
  return step(work.verify, graphs_of(shape),
              kTokenBytes * request_.batch * static_cast<double>(checked + 1));
}

InferenceProgram Emission::finish() {
  InferenceProgram out;
  out.program = passes_.writer().finish();
  out.steps = steps_;
  out.kernels = passes_.kernels();
  out.flops = passes_.flops();
  return out;
}

Result<void> check(const InferenceRequest& request) {
  if (request.batch == 0) return fail("a batch of 0 requests; expected at least 1");
  const auto* shape = std::get_if<Generation>(&request.shape);
  if (shape == nullptr) return {};
  if (shape->prompt_tokens == 0) return fail("a prompt of 0 tokens; expected at least 1");
  if (shape->output_tokens == 0) return fail("an output of 0 tokens; expected at least 1");
  return {};
}

}  // namespace

Result<InferenceProgram> inference_program(const InferenceRequest& request) {
  BUBBLESIM_RETURN_IF_ERROR(check(request));
  BUBBLESIM_ASSIGN_OR_RETURN(const InstanceMemory memory, memory_that_fits(request));
  Emission emission(request);
  BUBBLESIM_RETURN_IF_ERROR(
      std::visit([&](const auto& shape) { return emission.write(shape); }, request.shape));
  InferenceProgram out = emission.finish();
  count_replaced_precision(request.efficiency, request.precision, out.program.counters);
  out.memory = memory;
  return out;
}

Result<traces::JobTrace> inference_trace(const InferenceRequest& request, std::uint32_t passes) {
  BUBBLESIM_ASSIGN_OR_RETURN(InferenceProgram made, inference_program(request));
  made.program.memory.push_back({0, static_cast<std::uint64_t>(made.memory.total())});
  workload::JobProgram job;
  job.ranks.push_back(std::move(made.program));
  RecordSetup setup;
  setup.iterations = passes;
  return record_trace(job, request.gpu, setup);
}

namespace {

// 64 bytes each: 1 GiB.
constexpr std::uint64_t kMostKernels = std::uint64_t{1} << 24U;

}  // namespace

Duration copy_time(double bytes) {
  return kCopyLatency + Duration{std::llround(bytes / kHostLink * 1e9)};
}

PassWriter::PassWriter(const InferenceRequest& request)
    : request_(request), timer_(request.gpu, request.efficiency, request.software.slowdown),
      writer_(0, request.gpu),
      call_{request.software.forward_gap, request.software.launch_call} {}

Result<void> PassWriter::pass(const model::ModelWork& work, StepGraphs graphs) {
  BUBBLESIM_RETURN_IF_ERROR(add_drafts(work));
  emit(graphs);
  return {};
}

Result<void> PassWriter::pass_and_result(const model::ModelWork& work, StepGraphs graphs,
                                         double result_bytes) {
  BUBBLESIM_RETURN_IF_ERROR(add_drafts(work));
  drafts_.push_back(copy_draft("result to host", result_bytes));
  writer_.wait_for(emit(graphs));
  return {};
}

void PassWriter::copy_to_device(double bytes) {
  writer_.launch(copy_draft("request to device", bytes), {}, call_);
}

std::uint32_t PassWriter::copy_beside() {
  OpDraft draft = copy_draft("swapped blocks", 0);
  draft.stream = 1;
  return writer_.launch(draft, {}, call_);
}

// Layers of one kind are timed once.
Result<void> PassWriter::add_drafts(const model::ModelWork& work) {
  drafts_.clear();
  attentions_.clear();
  std::vector<std::vector<OpDraft>> kinds;
  std::vector<std::vector<std::size_t>> attentions;
  std::vector<double> flops;
  for (const model::LayerWork& kind : work.kinds) {
    std::vector<OpDraft>& drafts = kinds.emplace_back();
    std::vector<std::size_t>& places = attentions.emplace_back();
    for (const model::WorkItem& item : kind.forward) {
      const auto* kernel = std::get_if<model::KernelWork>(&item);
      if (kernel != nullptr && kernel->kind == model::KernelKind::kAttention) {
        places.push_back(drafts.size());
      }
      drafts.push_back(std::visit([this](const auto& what) { return draft_of(what); }, item));
    }
    flops.push_back(model::flops_of(kind.forward));
  }
  for (const std::uint32_t kind : work.layers) {
    for (const std::size_t place : attentions[kind]) attentions_.push_back(drafts_.size() + place);
    drafts_.insert(drafts_.end(), kinds[kind].begin(), kinds[kind].end());
    flops_ += flops[kind];
  }
  kernels_ += drafts_.size();
  if (kernels_ > kMostKernels) {
    return fail(request_.model.name + ": over " + std::to_string(kMostKernels) +
                " kernels for one batch of requests; expected fewer output tokens");
  }
  return {};
}

OpDraft PassWriter::draft_of(const model::KernelWork& work) {
  const TimedKernel timed = timer_.time(work);
  OpDraft draft;
  draft.name = writer_.name(timed.name);
  draft.profile = profiles_.index_of(timed, [&](const auto& profile, const auto& launch) {
    return writer_.add_profile(profile, launch);
  });
  draft.duration = timed.duration;
  return draft;
}

OpDraft PassWriter::draft_of(const model::Communication& what) {
  OpDraft draft;
  draft.kind = program::WorkKind::kCollective;
  draft.name = writer_.name(what.name);
  const TimedKernel kernel = collective_kernel(1, request_.gpu);
  draft.profile = writer_.add_profile(kernel.profile, kernel.launch);
  return draft;
}

OpDraft PassWriter::copy_draft(std::string_view name, double bytes) {
  OpDraft draft;
  draft.kind = program::WorkKind::kCopy;
  draft.name = writer_.name(name);
  draft.duration = copy_time(bytes);
  return draft;
}

std::uint32_t PassWriter::emit(StepGraphs graphs) {
  std::uint32_t last = program::kNoIndex;
  if (graphs == StepGraphs::kNone) {
    for (const OpDraft& draft : drafts_) last = writer_.launch(draft, {}, call_);
    return last;
  }
  const std::span<const OpDraft> drafts(drafts_);
  std::size_t piece = 0;
  if (graphs == StepGraphs::kPieces) {
    for (const std::size_t attention : attentions_) {
      writer_.launch_graph(drafts.subspan(piece, attention - piece), call_);
      writer_.launch(drafts[attention], {}, call_);
      piece = attention + 1;
    }
  }
  return writer_.launch_graph(drafts.subspan(piece), call_);
}

}  // namespace bubblesim::synth
