// Mixture of experts in place of the feed-forward part: router, permutation, exchange among the
// expert ranks, grouped products, and back (Megatron-LM, megatron/core/transformer/moe:
// router.py, token_dispatcher.py MoEAlltoAllTokenDispatcher, experts.py).
//
// Tokens are spread evenly over the experts of a GPU, which has Split::own_expert_load times the
// mean of all; the all-to-all lasts as long as the busiest rank's. Tensor ranks split each expert's
// inner width; with sequence parallel they gather the tokens after the exchange.
//
// A product reads the weights of those experts that have a token, which are few where few tokens
// go through the model.
//
// Data-parallel members of a server (IterationSums::group_tokens) exchange otherwise: every GPU
// gathers the tokens of all, and what its experts make of them is reduced and scattered (vLLM's
// default all2all_backend, allgather_reducescatter).
#include <algorithm>
#include <cmath>

#include "sim/model/transformer_work.hpp"

namespace bubblesim::model {
namespace {

constexpr double kRouterBytes = 4.0;  // logits and probabilities are FP32

struct ExpertSizes {
  double routed = 0;             ///< token copies that this GPU sends
  double rows = 0;               ///< token copies that its experts work on
  std::uint64_t local = 1;       ///< experts here
  std::uint64_t busy = 1;        ///< of them, those that have a token
  std::uint64_t inner = 0;       ///< width of one here
};

bool gathers(const TransformerShape& shape) { return shape.gathered_tokens > 0; }

ExpertSizes sizes_of(const TransformerShape& shape) {
  const MixtureSpec& mixture = *shape.spec->mixture;
  ExpertSizes out;
  out.routed = static_cast<double>(shape.split_tokens) * mixture.top_k;
  out.rows = static_cast<double>(shape.tokens) * mixture.top_k *
             shape.split.own_expert_load.value_or(shape.split.expert_load);
  out.local = mixture.experts / shape.split.expert;
  out.inner = mixture.expert_ffn / shape.split.tensor;
  double all = static_cast<double>(shape.tokens) * shape.split.expert;
  if (gathers(shape)) {
    all = static_cast<double>(shape.gathered_tokens);
    out.routed = out.rows = all * mixture.top_k / shape.split.expert;
    out.inner = mixture.expert_ffn;
  }
  const double busy = busy_experts(mixture, shape.split.expert, all);
  out.busy = std::max<std::uint64_t>(1, static_cast<std::uint64_t>(std::llround(busy)));
  return out;
}

std::uint64_t shared_inner(const TransformerShape& shape) {
  const MixtureSpec& mixture = *shape.spec->mixture;
  return mixture.shared_experts * mixture.expert_ffn / shape.split.tensor;
}

// A product of every busy expert in one kernel.
KernelWork grouped(const TransformerShape& shape, std::string name, std::uint64_t n,
                   std::uint64_t k) {
  const ExpertSizes sizes = sizes_of(shape);
  const auto m = static_cast<std::uint64_t>(
      std::max(1.0, std::ceil(sizes.rows / static_cast<double>(sizes.busy))));
  KernelWork work = gemm_kernel(std::move(name), {m, n, k, sizes.busy}, shape.run.precision);
  work.flops = 2.0 * sizes.rows * static_cast<double>(n) * static_cast<double>(k);
  return work;
}

// Weight gradients of every local expert: the rows are the summed side.
KernelWork grouped_weight(const TransformerShape& shape, std::string name, std::uint64_t outputs,
                          std::uint64_t inputs) {
  const ExpertSizes sizes = sizes_of(shape);
  const auto k = static_cast<std::uint64_t>(
      std::max(1.0, std::ceil(sizes.rows / static_cast<double>(sizes.local))));
  KernelWork work = weight_kernel(std::move(name), {outputs, inputs, k, sizes.local},
                                  shape.run.precision, shape.run.gradients);
  work.flops = 2.0 * sizes.rows * static_cast<double>(outputs) * static_cast<double>(inputs);
  return work;
}

// Moves token copies; `arrays` of the routed size, `single` of the tokens' own.
KernelWork move(const TransformerShape& shape, std::string name, double arrays, double single) {
  const double h = static_cast<double>(shape.hidden());
  const double routed = sizes_of(shape).routed * h;
  KernelWork work = stream_kernel(std::move(name), KernelKind::kElementwise, routed, 0.0,
                                  stored(shape.run.precision));
  const double own = gathers(shape) ? shape.gathered_stream() : shape.split_stream();
  work.bytes = shape.element * (arrays * routed + single * own);
  return work;
}

// Among expert ranks, and among tensor ranks where they hold different tokens.
void dispatch(const TransformerShape& shape, const std::string& name,
              std::vector<WorkItem>& items) {
  const double h = static_cast<double>(shape.hidden());
  const ExpertSizes sizes = sizes_of(shape);
  if (shape.split.expert > 1) {
    items.push_back(exchange(name + " all-to-all", ParallelAxis::kExpert, Exchange::kAllToAll,
                             sizes.routed * shape.split.expert_load * h * shape.element));
  }
  if (shape.splits_sequence()) {
    items.push_back(exchange(name + " all-gather", ParallelAxis::kTensor, Exchange::kAllGather,
                             sizes.rows * h * shape.element));
  }
}

void combine(const TransformerShape& shape, const std::string& name,
             std::vector<WorkItem>& items) {
  const double h = static_cast<double>(shape.hidden());
  const ExpertSizes sizes = sizes_of(shape);
  if (shape.splits_sequence()) {
    items.push_back(exchange(name + " reduce-scatter", ParallelAxis::kTensor,
                             Exchange::kReduceScatter, sizes.rows * h * shape.element));
  }
  if (shape.split.expert > 1) {
    items.push_back(exchange(name + " all-to-all", ParallelAxis::kExpert, Exchange::kAllToAll,
                             sizes.routed * shape.split.expert_load * h * shape.element));
  }
}

KernelWork choose(const TransformerShape& shape, std::string name) {
  const double logits =
      static_cast<double>(shape.split_tokens) * static_cast<double>(shape.spec->mixture->experts);
  return stream_kernel(std::move(name), KernelKind::kSoftmax, logits, 2.0 * kRouterBytes,
                       Precision::kFp32, 8.0);
}

void products(const TransformerShape& shape, std::vector<WorkItem>& items) {
  const std::uint64_t h = shape.hidden();
  const ExpertSizes sizes = sizes_of(shape);
  items.push_back(grouped(shape, "experts up gemm", up_columns(shape, sizes.inner), h));
  items.push_back(activation_forward(shape, sizes.rows * static_cast<double>(sizes.inner)));
  items.push_back(grouped(shape, "experts down gemm", h, sizes.inner));
}

// Expert ranks exchange copies of tokens; tensor ranks add up what each has of an inner width.
void routed_experts(const TransformerShape& shape, std::vector<WorkItem>& items) {
  items.push_back(move(shape, "permute", 1.0, 1.0));
  dispatch(shape, "dispatch", items);
  products(shape, items);
  combine(shape, "combine", items);
  items.push_back(move(shape, "unpermute", 1.0, 1.0));
  if (shape.splits_tensor() && !shape.splits_sequence()) reduce_tokens(shape, items);
}

// All GPUs of the group gather all tokens, and give back to each what is its own: of a member over
// several, a part of its tokens, which these gather.
void gathered_experts(const TransformerShape& shape, std::vector<WorkItem>& items) {
  const double bytes = shape.gathered_stream() * shape.element;
  items.push_back(
      exchange("experts all-gather", ParallelAxis::kExpert, Exchange::kAllGather, bytes));
  items.push_back(move(shape, "permute", 1.0, 1.0));
  products(shape, items);
  items.push_back(move(shape, "unpermute", 1.0, 1.0));
  items.push_back(
      exchange("experts reduce-scatter", ParallelAxis::kExpert, Exchange::kReduceScatter, bytes));
  if (!shape.splits_tensor()) return;
  items.push_back(exchange("tokens all-gather", ParallelAxis::kTensor, Exchange::kAllGather,
                           shape.stream() * shape.element));
}

}  // namespace

void experts_forward(const TransformerShape& shape, std::vector<WorkItem>& items) {
  const std::uint64_t h = shape.hidden();
  items.push_back(gemm_kernel("router gemm",
                              {shape.split_tokens, shape.spec->mixture->experts, h},
                              stored(shape.run.precision), kRouterBytes));
  items.push_back(choose(shape, "router top-k"));
  if (gathers(shape)) {
    gathered_experts(shape, items);
  } else {
    routed_experts(shape, items);
  }
  if (shape.spec->mixture->shared_experts == 0) return;
  dense_forward(shape, shared_inner(shape), items);
  items.push_back(stream_kernel("shared expert add", KernelKind::kElementwise,
                                shape.split_stream(), 3.0 * shape.element,
                                stored(shape.run.precision)));
}

void experts_backward(const TransformerShape& shape, LayerBuilder& out) {
  const std::uint64_t h = shape.hidden();
  const ExpertSizes sizes = sizes_of(shape);
  const std::uint64_t up = up_columns(shape, sizes.inner);
  std::vector<WorkItem> exchanges;
  const auto flush = [&] {
    for (WorkItem& item : exchanges) out.input_grad(std::move(item));
    exchanges.clear();
  };
  if (shape.spec->mixture->shared_experts > 0) dense_backward(shape, shared_inner(shape), out);
  // Reads the gradient and the experts' outputs; writes the copies' gradients.
  out.input_grad(move(shape, "unpermute input-grad", 2.0, 1.0));
  dispatch(shape, "combine gradient", exchanges);
  flush();
  out.input_grad(grouped(shape, "experts down gemm input-grad", sizes.inner, h));
  out.weight_grad(grouped_weight(shape, "experts down gemm weight-grad", h, sizes.inner));
  out.input_grad(activation_backward(shape, sizes.rows * static_cast<double>(sizes.inner)));
  out.input_grad(grouped(shape, "experts up gemm input-grad", h, up));
  out.weight_grad(grouped_weight(shape, "experts up gemm weight-grad", up, h));
  combine(shape, "dispatch gradient", exchanges);
  flush();
  out.input_grad(move(shape, "permute input-grad", 1.0, 1.0));
  if (shape.splits_tensor() && !shape.splits_sequence()) {
    reduce_tokens(shape, exchanges);
    flush();
  }
  out.input_grad(choose(shape, "router top-k input-grad"));
  const std::uint64_t experts = shape.spec->mixture->experts;
  linear_backward(shape, "router", {shape.split_tokens, h, experts}, LinearSplit::kNone, out);
}

void experts_parameters(const TransformerShape& shape, LayerBuilder& out) {
  const ExpertSizes sizes = sizes_of(shape);
  const MixtureSpec& mixture = *shape.spec->mixture;
  const double h = static_cast<double>(shape.hidden());
  out.parameters(h * mixture.experts);
  if (shape.splits_sequence()) out.split_by_tokens();
  if (mixture.shared_experts > 0) {
    const std::uint64_t inner = shared_inner(shape);
    out.parameters(h * static_cast<double>(up_columns(shape, inner)));
    out.parameters(h * static_cast<double>(inner));
  }
  for (std::uint64_t expert = 0; expert < sizes.local; ++expert) {
    out.layer().expert_tensors.push_back(h * static_cast<double>(up_columns(shape, sizes.inner)));
    out.layer().expert_tensors.push_back(h * static_cast<double>(sizes.inner));
  }
}

double experts_kept(const TransformerShape& shape) {
  const ExpertSizes sizes = sizes_of(shape);
  const double h = static_cast<double>(shape.hidden());
  const double inner = static_cast<double>(sizes.inner + up_columns(shape, sizes.inner));
  double kept = shape.element * (sizes.rows * (h + inner) + sizes.routed * h);
  kept += 2.0 * kRouterBytes * static_cast<double>(shape.split_tokens) *
          static_cast<double>(shape.spec->mixture->experts);
  const std::uint64_t shared = shared_inner(shape);
  kept += shape.element * static_cast<double>(shape.tokens) *
          static_cast<double>(shared + up_columns(shape, shared));
  return kept;
}

double experts_held(const TransformerShape& shape) {
  const ExpertSizes sizes = sizes_of(shape);
  const std::uint64_t shared = shared_inner(shape);
  const double h = static_cast<double>(shape.hidden());
  const double inner = static_cast<double>(sizes.inner + up_columns(shape, sizes.inner));
  double held = shape.element * sizes.rows * (2.0 * h + inner);
  held += shape.element * shape.split_stream();  // the router's input
  if (shared == 0) return held;
  return held + shape.element * (2.0 * shape.split_stream() +
                                 static_cast<double>(shape.tokens) *
                                     static_cast<double>(shared + up_columns(shape, shared)));
}

}  // namespace bubblesim::model
