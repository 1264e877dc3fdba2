// A measured run of a language-model server, as LLMServingSim's `bench run` records it of vLLM
// (github.com/casys-kaist/LLMServingSim, bench/README.md): a folder with
//   config.json           the GPUs and their link
//   vllm/meta.json        the engine's settings, and what it made of them where it was asked
//   vllm/requests.jsonl   each request's tokens, and when it came, was queued and had its tokens
// Instants are seconds. `arrival_time` is of the wall clock, the others are of the engine's.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/counters.hpp"
#include "sim/base/result.hpp"
#include "sim/serving/request.hpp"
#include "sim/step_cost/batch.hpp"
#include "sim/step_cost/layout.hpp"

namespace bubblesim::validate {

struct MeasuredRequest {
  std::string id;
  std::uint32_t prompt_tokens = 0;
  std::uint32_t output_tokens = 0;
  double arrival = 0;
  double queued = 0;
  double first_token = 0;
  double last_token = 0;
  serving::SharedPrefix shared{};  ///< with other prompts; a bundle does not say
};

/// What is not there was not recorded: the engine's defaults hold.
struct BundleSettings {
  std::string model;           ///< as its publisher names it
  std::string engine;          ///< "vLLM 0.19.0"
  std::string gpu_name;        ///< as the driver names it; empty: not recorded
  std::string gpu_label;       ///< of config.json: "RTX4090"
  std::uint32_t max_num_seqs = 0;
  std::uint32_t max_num_batched_tokens = 0;
  std::optional<std::uint32_t> max_model_len;
  std::optional<std::uint32_t> num_gpu_blocks;
  std::optional<std::uint32_t> block_size;
  std::optional<bool> prefix_caching;
  std::optional<bool> async_scheduling;
  std::optional<bool> reserve_full_prompt;
  std::optional<double> memory_utilization;
  std::optional<bool> chunked_prefill;
  std::optional<std::uint32_t> long_prefill_token_threshold;
  std::optional<step_cost::CaptureSizes> capture_sizes;  ///< empty: it captured no graphs
  step_cost::ServerLayout layout;
  CounterSet ignored;  ///< recorded settings that the simulated server does not have
};

struct ServingBundle {
  std::string folder;
  std::string label;  ///< its last two folders: "RTX4090/Llama-3.1-8B"
  BundleSettings settings;
  std::vector<MeasuredRequest> requests;  ///< by arrival; at least one
  bool prompts_known = false;             ///< MeasuredRequest::shared says what they share
};

/// `folder` holds vllm/, or is it. Faults: files that are missing or not of this form, settings or
/// times that are not there, times in an order that cannot be, layers spread over GPUs (pipeline
/// parallel).
[[nodiscard]] Result<ServingBundle> read_serving_bundle(const std::string& folder);

}  // namespace bubblesim::validate
