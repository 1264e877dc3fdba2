// Helpers for tests of the work of layers.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/model/layer_work.hpp"
#include "sim/model/model_spec.hpp"
#include "sim/model/training_work.hpp"
#include "tests/fault.hpp"

namespace bubblesim::model {

inline std::string model_folder() { return std::string(BUBBLESIM_SOURCE_DIR) + "/configs/models"; }

inline ModelSpec shipped(std::string_view id) { return must(find_model(id, model_folder())); }

inline TrainingShape run_of(std::uint32_t micro_batch, std::uint64_t sequence) {
  TrainingShape shape;
  shape.micro_batch = micro_batch;
  shape.sequence = sequence;
  return shape;
}

/// The same with fused attention.
inline TrainingShape flash_run_of(std::uint32_t micro_batch, std::uint64_t sequence) {
  TrainingShape shape = run_of(micro_batch, sequence);
  shape.attention = AttentionKernels::kFlash;
  return shape;
}

inline ModelWork train(const ModelSpec& model, const TrainingShape& shape, Split split = {}) {
  return must(training_work(model, split, shape));
}

inline LayerWork layer_of(const ModelWork& work, std::string_view kind) {
  for (const LayerWork& layer : work.kinds) {
    if (layer.kind == kind) return layer;
  }
  ADD_FAILURE() << "no layer " << kind;
  return {};
}

/// FLOPs of the matrix products only, as published FLOP formulas count them.
inline double product_flops(const std::vector<WorkItem>& items) {
  double sum = 0;
  for (const WorkItem& item : items) {
    const auto* kernel = std::get_if<KernelWork>(&item);
    if (kernel != nullptr && kernel->gemm.m > 0) sum += kernel->flops;
  }
  return sum;
}

inline std::vector<std::string> names(const std::vector<WorkItem>& items) {
  std::vector<std::string> out;
  for (const WorkItem& item : items) {
    out.push_back(std::visit([](const auto& work) { return work.name; }, item));
  }
  return out;
}

inline KernelWork kernel(const std::vector<WorkItem>& items, std::string_view name) {
  for (const WorkItem& item : items) {
    const auto* found = std::get_if<KernelWork>(&item);
    if (found != nullptr && found->name == name) return *found;
  }
  ADD_FAILURE() << "no kernel " << name;
  return {};
}

inline std::vector<Communication> exchanges(const std::vector<WorkItem>& items) {
  std::vector<Communication> out;
  for (const WorkItem& item : items) {
    if (const auto* found = std::get_if<Communication>(&item)) out.push_back(*found);
  }
  return out;
}

}  // namespace bubblesim::model
