#include "sim/model/work_items.hpp"

namespace bubblesim::model {

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
  KernelWork work;
  work.name = std::move(name);
  work.kind = KernelKind::kGemm;
  work.precision = precision;
  work.flops = 2.0 * m * n * k * batch;
  work.bytes = batch * (bytes_of(precision) * (m * k + k * n) + output_bytes * m * n);
  work.gemm = shape;
  work.elements = m * n * batch;
  return work;
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
  Communication out;
  out.name = std::move(name);
  out.axis = axis;
  out.exchange = kind;
  out.bytes = bytes;
  return out;
}

}  // namespace bubblesim::model
