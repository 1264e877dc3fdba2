// Steps as text that tests compare, and small requests.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "sim/serving/scheduler.hpp"

namespace bubblesim::serving {

inline SimTime at_ms(std::int64_t milliseconds) {
  return kSimStart + std::chrono::milliseconds(milliseconds);
}

inline Request make_request(std::uint64_t number, std::uint32_t prompt, std::uint32_t output) {
  Request request;
  request.number = number;
  request.prompt_tokens = prompt;
  request.output_tokens = output;
  return request;
}

/// Blocks of four tokens, a budget of eight tokens a step, two sequences, and KV memory for both.
inline SchedulerSpec small_spec() {
  SchedulerSpec spec;
  spec.max_num_batched_tokens = 8;
  spec.max_num_seqs = 2;
  spec.max_model_len = 64;
  spec.block_size = 4;
  spec.kv_blocks = 32;
  return spec;
}

/// "1:8@0 2:1@12*": request 1 computes 8 tokens after 0 cached ones; request 2 one after 12 and
/// samples a token. Prefill is marked by "p": "1:p8@0". "-": no step.
inline std::string text_of(const ScheduledStep* step) {
  if (step == nullptr) return "-";
  std::string text;
  for (const StepSequence& part : step->sequences) {
    text += (text.empty() ? "" : " ") + std::to_string(part.request) + ":" +
            (part.prefill ? "p" : "") + std::to_string(part.new_tokens) + "@" +
            std::to_string(part.context) + (part.emits ? "*" : "");
  }
  return text;
}

/// Schedules a step and ends it at once.
inline std::string do_step(Scheduler& scheduler, SimTime now = kSimStart) {
  const std::string text = text_of(scheduler.next_step(now));
  if (text != "-") scheduler.finish_step(now);
  return text;
}

/// Requests arrive, and steps, each done at once, have these texts, in order.
inline void play(Scheduler& scheduler,
                 const std::vector<std::variant<Request, const char*>>& events) {
  for (const auto& event : events) {
    if (const auto* request = std::get_if<Request>(&event)) scheduler.arrive(*request);
    else EXPECT_EQ(do_step(scheduler), std::get<const char*>(event));
  }
}

}  // namespace bubblesim::serving
