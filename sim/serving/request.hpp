// A request to a language-model server, and what became of it.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/base/time.hpp"

namespace bubblesim::serving {

/// What a prompt shares with prompts of other requests. Tokens that are alike have the same keys in
/// the prefix cache (vLLM, "Automatic Prefix Caching": a block's hash covers the block's tokens and
/// all before them).
struct SharedPrefix {
  /// Turns of one conversation: a turn's prompt begins with the prompt and the output of the turn
  /// before it. Every token of such a request, prompt and output, is the conversation's.
  std::optional<std::uint64_t> conversation;
  /// Hashes of the prompt from its first token on, each of `tokens_per_hash` tokens and of all
  /// before them (Mooncake's `hash_ids`, of 512 tokens). The last may cover fewer.
  std::vector<std::uint64_t> hashes;
  std::uint32_t tokens_per_hash = 0;  ///< 0: no hashes

  /// Whether the request says what it shares.
  [[nodiscard]] bool is_known() const { return conversation || !hashes.empty(); }
};

/// What comes with a request from another server, which computed its prompt and sampled its first
/// token (prefill and decode apart).
struct Handover {
  SimTime first_token{};
};

struct Request {
  std::uint64_t number = 0;         ///< the caller's; unique among requests in flight
  SimTime arrival{};
  std::uint32_t prompt_tokens = 1;  ///< at least 1
  std::uint32_t output_tokens = 1;  ///< at least 1
  std::int32_t priority = 0;        ///< smaller goes first; ignored where the first to come does
  SharedPrefix prefix;
  std::optional<Handover> handed{};  ///< its prompt's keys and values come with it, into own blocks
};

/// A served request. Each of its instants is that of a step's scheduling or end.
struct FinishedRequest {
  std::uint64_t number = 0;
  std::uint32_t prompt_tokens = 1;
  std::uint32_t output_tokens = 1;
  std::uint32_t preemptions = 0;
  SimTime arrival{};
  SimTime admitted{};     ///< the step that took it up for the first time was scheduled
  SimTime first_token{};
  SimTime last_token{};

  /// Time to first token: from arrival.
  [[nodiscard]] Duration ttft() const { return first_token - arrival; }
  [[nodiscard]] Duration latency() const { return last_token - arrival; }
  /// Time per output token after the first, rounded down to a nanosecond; nothing of one token.
  [[nodiscard]] std::optional<Duration> tpot() const {
    if (output_tokens < 2) return std::nullopt;
    return (last_token - first_token) / (output_tokens - 1);
  }
};

}  // namespace bubblesim::serving
