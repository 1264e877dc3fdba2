// Continuous batching (Orca, OSDI 2022): requests join and leave between iterations of a language
// model, not between batches.
//
// The program has a thread for each kind of iteration, of which one runs at a time
// (ProgramRun::start_thread): prompts by their tokens, decode steps by sequences and tokens cached.
// Prompts go first and apart from decode steps, as vLLM schedules without chunked prefill (Kwon et
// al., SOSP 2023); Orca itself mixes the two. A request joins if its prompt and whole output have
// room in the KV cache, in order of arrival: nothing is ever evicted.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "sim/base/time.hpp"
#include "sim/workload/program_run.hpp"
#include "sim/workload/request_service.hpp"

namespace bubblesim::workload {

/// Tokens of a request, each at least 1.
struct RequestLength {
  std::uint64_t prompt = 1;
  std::uint64_t output = 1;  ///< the prompt's iteration yields the first
};

/// Which thread of a program is which iteration. Threads of prompts come first, then those of
/// decode steps: for each number of sequences all contexts.
struct IterationTable {
  std::vector<std::uint64_t> prompt_tokens;  ///< ascending; an iteration takes at most the last
  std::vector<std::uint32_t> sequences;      ///< ascending; at most the last run at once
  std::uint64_t context_step = 256;          ///< tokens of one bucket of contexts
  std::uint32_t contexts = 1;                ///< buckets; longer ones count as the last
  std::uint64_t cache_tokens = 0;            ///< of all sequences together
  RequestLength length;                      ///< of every request

  /// The smallest bucket that holds so many tokens of prompts.
  [[nodiscard]] std::uint32_t prompt_thread(std::uint64_t tokens) const;
  /// The smallest bucket of sequences; that of their mean context.
  [[nodiscard]] std::uint32_t decode_thread(std::uint32_t count, std::uint64_t cached) const;
  [[nodiscard]] std::uint32_t threads() const {
    return static_cast<std::uint32_t>(prompt_tokens.size() + sequences.size() * contexts);
  }
};

class ContinuousService final : public RequestService {
 public:
  /// `run` was set up with Repeat::kOnePass; its observer must call pass_finished. A request fits
  /// the table: its prompt the largest bucket, prompt and output the cache.
  ContinuousService(ProgramRun& run, const IterationTable& table, ServiceListener& listener);

  void start_offline(SimTime now) override;
  void enqueue(std::uint64_t number, SimTime now) override;
  void serve_waiting(SimTime now) override;
  void pass_finished(SimTime now) override;
  [[nodiscard]] std::optional<std::uint64_t> serving(std::size_t) const override;
  [[nodiscard]] std::size_t queued() const override { return waiting_.size(); }
  [[nodiscard]] std::vector<SimTime> unfinished() const override;

 private:
  struct Request {
    std::uint64_t number = 0;
    SimTime arrival{};
    SimTime start{};
    SimTime first_token{};
    std::uint64_t generated = 0;
  };

  void next_iteration(SimTime now);
  void admit(SimTime now);
  [[nodiscard]] std::uint64_t need() const { return table_.length.prompt + table_.length.output; }
  void finish_prompts(SimTime now);

  ProgramRun& run_;
  const IterationTable& table_;
  ServiceListener& listener_;
  std::deque<Request> waiting_;
  std::vector<Request> joining_;  ///< their prompts run now
  std::vector<Request> running_;  ///< have a first token; in order of arrival
  bool offline_ = false;
  bool busy_ = false;
};

}  // namespace bubblesim::workload
