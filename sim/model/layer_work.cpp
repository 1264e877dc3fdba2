#include "sim/model/layer_work.hpp"

#include <numeric>

namespace bubblesim::model {
namespace {

void mark_overlap(std::vector<WorkItem>& items) {
  if (items.empty()) return;
  if (auto* exchange = std::get_if<Communication>(&items.back())) exchange->overlaps_next = true;
}

}  // namespace

std::vector<WorkItem> backward_items(const LayerWork& layer, BackwardExchanges exchanges) {
  std::vector<WorkItem> out;
  std::size_t weight = 0;
  const bool overlapped = exchanges == BackwardExchanges::kOverlapped;
  // An exchange of one list is followed by an item of the other only where that does not need it.
  for (std::size_t input = 0; input <= layer.input_grad.size(); ++input) {
    bool from_input = input > 0;
    while (weight < layer.weight_grad.size() && layer.weight_grad_after[weight] <= input) {
      if (from_input && overlapped) mark_overlap(out);
      from_input = false;
      out.push_back(layer.weight_grad[weight++]);
    }
    if (input == layer.input_grad.size()) break;
    if (!from_input && overlapped) mark_overlap(out);
    out.push_back(layer.input_grad[input]);
  }
  return out;
}

double flops_of(const std::vector<WorkItem>& items) {
  double sum = 0;
  for (const WorkItem& item : items) {
    if (const auto* kernel = std::get_if<KernelWork>(&item)) sum += kernel->flops;
  }
  return sum;
}

double parameters_of(const LayerWork& layer) {
  const double dense =
      std::accumulate(layer.parameter_tensors.begin(), layer.parameter_tensors.end(), 0.0);
  return std::accumulate(layer.expert_tensors.begin(), layer.expert_tensors.end(), dense);
}

double bytes_of(Precision precision) {
  switch (precision) {
    case Precision::kFp32:
    case Precision::kTf32:
      return 4.0;
    case Precision::kFp16:
    case Precision::kBf16:
      return 2.0;
    case Precision::kFp8:
      return 1.0;
  }
  return 4.0;
}

Precision stored(Precision precision) {
  return precision == Precision::kFp8 ? Precision::kBf16 : precision;
}

KernelWork gemm_kernel(std::string name, GemmShape shape, Precision precision) {
  return gemm_kernel(std::move(name), shape, precision, bytes_of(stored(precision)));
}

KernelWork gemm_kernel(std::string name, GemmShape shape, Precision precision,
                       double output_bytes) {
  const auto m = static_cast<double>(shape.m);
  const auto n = static_cast<double>(shape.n);
  const auto k = static_cast<double>(shape.k);
  const auto batch = static_cast<double>(shape.batch);
  return {.name = std::move(name),
          .kind = KernelKind::kGemm,
          .precision = precision,
          .flops = 2.0 * m * n * k * batch,
          .bytes = batch * (bytes_of(precision) * (m * k + k * n) + output_bytes * m * n),
          .gemm = shape,
          .elements = m * n * batch};
}

KernelWork weight_kernel(std::string name, GemmShape shape, Precision precision,
                         GradientStore store) {
  const bool added = store == GradientStore::kAccumulateFp32;
  return gemm_kernel(std::move(name), shape, precision,
                     added ? 2.0 * kFp32Bytes : bytes_of(stored(precision)));
}

KernelWork stream_kernel(std::string name, KernelKind kind, double elements, double bytes_each,
                         Precision precision, double flops_each) {
  KernelWork work;
  work.name = std::move(name);
  work.kind = kind;
  work.precision = precision;
  work.flops = elements * flops_each;
  work.bytes = elements * bytes_each;
  work.elements = elements;
  return work;
}

Communication exchange(std::string name, ParallelAxis axis, Exchange kind, double bytes) {
  return {.name = std::move(name), .axis = axis, .exchange = kind, .bytes = bytes};
}

}  // namespace bubblesim::model
