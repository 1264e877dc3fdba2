#include "sim/serving/scheduler.hpp"

#include <algorithm>

#include "sim/base/check.hpp"
#include "sim/base/divide.hpp"

namespace bubblesim::serving {
namespace {

constexpr double kPriorities = 1 << 20;  // so many that hardly two requests have the same

/// Tokens that the cache holds of a request in the end: its last one is sampled only, unless a step
/// scheduled ahead of its stop token computes that, too.
std::uint64_t most_cached(const SchedulerSpec& spec, const Request& request) {
  const std::uint64_t all = std::uint64_t{request.prompt_tokens} + request.output_tokens;
  const bool overshoots = spec.pacing == Pacing::kOneAhead &&
                          spec.output_end == OutputEnd::kStopToken && all < spec.max_model_len;
  return overshoots ? all : all - 1;
}

}  // namespace

Scheduler::Scheduler(const SchedulerSpec& spec) : spec_(spec), pool_(spec.kv_blocks) {
  running_.reserve(spec.max_num_seqs);
}

ArrivalOutcome Scheduler::admissible(const SchedulerSpec& spec, const Request& request) {
  const std::uint64_t cached = most_cached(spec, request);
  if (std::uint64_t{request.prompt_tokens} + request.output_tokens > spec.max_model_len) {
    return ArrivalOutcome::kLongerThanWindow;
  }
  if (blocks_of(spec, cached) > spec.kv_blocks) return ArrivalOutcome::kLargerThanCache;
  // A preempted sequence computes prompt and output as one prompt.
  const std::uint64_t longest_prompt =
      spec.reserve == Reserve::kWholeRequest ? request.prompt_tokens : cached;
  if (spec.chunking == Chunking::kWhole && longest_prompt > spec.max_num_batched_tokens) {
    return ArrivalOutcome::kLargerThanBudget;
  }
  return ArrivalOutcome::kQueued;
}

ArrivalOutcome Scheduler::arrive(const Request& request) {
  BUBBLESIM_CHECK(request.prompt_tokens > 0 && request.output_tokens > 0,
                  "a request without a prompt or without an output");
  const ArrivalOutcome what = admissible(spec_, request);
  switch (what) {
    case ArrivalOutcome::kLongerThanWindow: ++counts_.refused_by_window; return what;
    case ArrivalOutcome::kLargerThanCache: ++counts_.refused_by_cache; return what;
    case ArrivalOutcome::kLargerThanBudget: ++counts_.refused_by_budget; return what;
    case ArrivalOutcome::kQueued: break;
  }
  const Slot slot = new_slot();
  Sequence& sequence = sequences_[slot];
  sequence.request = request;
  sequence.life = ++lives_;
  sequence.turn = ++last_turn_;
  if (request.handed) {
    sequence.received = 1;
    sequence.first_token = sequence.last_token = request.handed->first_token;
  }
  queue_.insert(place_of(slot));
  ++counts_.arrived;
  return what;
}

Scheduler::Slot Scheduler::new_slot() {
  if (unused_.empty()) {
    sequences_.emplace_back();
    return static_cast<Slot>(sequences_.size() - 1);
  }
  const Slot slot = unused_.back();
  unused_.pop_back();
  std::vector<BlockIndex> blocks = std::move(sequences_[slot].blocks);  // keeps its capacity
  sequences_[slot] = {};
  sequences_[slot].blocks = std::move(blocks);
  return slot;
}

Scheduler::Place Scheduler::place_of(Slot slot) const {
  const Sequence& sequence = sequences_[slot];
  const std::int32_t priority = spec_.order == Order::kPriority ? sequence.request.priority : 0;
  return {priority, sequence.turn, slot};
}

const ScheduledStep* Scheduler::next_step(SimTime now) {
  const std::size_t most = spec_.pacing == Pacing::kOneAhead ? 2 : 1;
  if (flying_ == most) return nullptr;
  Flight& flight = flights_[(oldest_flight_ + flying_) % flights_.size()];
  step_ = &flight.step;
  if (std::exchange(flight.ended, false)) step_->clear();
  budget_ = spec_.max_num_batched_tokens;
  if (spec_.priority_period > 0) renew_priorities();
  // Where a step came to nothing but preemptions, they have made room for another attempt. They
  // stay in the step.
  std::uint64_t preemptions = 0;
  do {
    preemptions = counts_.preemptions;
    fill_step(now);
  } while (step_->sequences.empty() && counts_.preemptions > preemptions);
  if (step_->sequences.empty()) return nullptr;
  flight.lives.clear();
  for (const StepSequence& part : step_->sequences) {
    flight.lives.push_back(sequences_[part.slot].life);
  }
  ++flying_;
  step_->number = counts_.steps++;
  note_peaks();
  return step_;
}

void Scheduler::fill_step(SimTime now) {
  if (spec_.mixing == Mixing::kPromptsApart) {
    schedule_waiting(now);
    if (step_->sequences.empty()) schedule_after_swaps();
    return;
  }
  const std::uint64_t preemptions = counts_.preemptions;
  schedule_running();
  if (counts_.preemptions == preemptions) schedule_waiting(now);
  if (step_->sequences.empty() && step_->blocks_swapped_in > 0) schedule_after_swaps();
}

// The most urgent that fit together run: each with the blocks of its tokens and of the next one.
void Scheduler::renew_priorities() {
  if (counts_.steps % spec_.priority_period != 0 || renewed_at_ == counts_.steps) return;
  renewed_at_ = counts_.steps;
  std::vector<Slot> slots = running_;
  for (const Place& place : queue_) slots.push_back(place.slot);
  queue_.clear();
  for (const Slot slot : slots) {
    Request& request = sequences_[slot].request;
    request.priority = static_cast<std::int32_t>(
        kPriorities * uniform_of(spec_.seed, request.number, counts_.steps));
    if (!sequences_[slot].runs) queue_.insert(place_of(slot));
  }
  std::ranges::sort(slots, {}, [this](Slot slot) { return place_of(slot); });
  std::uint64_t blocks = 0;
  std::size_t fit = 0;
  for (; fit < slots.size() && fit < spec_.max_num_seqs; ++fit) {
    blocks += blocks_of(spec_, sequences_[slots[fit]].known_tokens() + std::uint64_t{1});
    if (blocks > spec_.kv_blocks) break;
  }
  for (std::size_t i = slots.size(); i-- > std::max<std::size_t>(fit, 1);) {
    if (sequences_[slots[i]].runs) preempt(slots[i]);
  }
}

void Scheduler::note_peaks() {
  counts_.most_blocks = std::max(counts_.most_blocks, pool_.used());
  counts_.most_running =
      std::max(counts_.most_running, static_cast<std::uint32_t>(running_.size()));
}

// No other sequence can run: the step waits for the sequences that come back.
void Scheduler::schedule_after_swaps() {
  step_->awaits_swaps = step_->blocks_swapped_in > 0;
  schedule_running();
}

void Scheduler::schedule_running() {
  next_running_ = 0;
  while (next_running_ < running_.size() && budget_ > 0) {
    const Slot slot = running_[next_running_];
    const Sequence& sequence = sequences_[slot];
    ++next_running_;
    if (awaits_its_end(sequence)) continue;
    const std::uint32_t wanted =
        sequence.known_tokens() + sequence.sampling - sequence.computed;
    const std::uint32_t new_tokens = std::min(capped(wanted), budget_);
    if (new_tokens == 0) continue;
    const std::uint32_t drafts = drafts_for(sequence, new_tokens);
    if (!make_room(slot, new_tokens + drafts)) return;
    add_to_step(slot, new_tokens, drafts);
  }
}

// What is drafted beyond the output's end would be for nothing, and take blocks.
std::uint32_t Scheduler::drafts_for(const Sequence& sequence, std::uint32_t new_tokens) const {
  if (sequence.computed < sequence.prefill_end) return 0;
  return std::min({spec_.speculation.tokens, budget_ - new_tokens,
                   sequence.request.output_tokens - sequence.received - 1});
}

bool Scheduler::awaits_its_end(const Sequence& sequence) const {
  if (sequence.sampling == 0) return false;
  const std::uint32_t most = spec_.output_end == OutputEnd::kTokenLimit
                                 ? sequence.request.output_tokens
                                 : spec_.max_model_len - sequence.request.prompt_tokens;
  return sequence.received + sequence.sampling >= most;
}

std::uint32_t Scheduler::capped(std::uint32_t tokens) const {
  const std::uint32_t threshold = spec_.long_prefill_token_threshold;
  return threshold == 0 ? tokens : std::min(tokens, threshold);
}

bool Scheduler::make_room(Slot slot, std::uint32_t new_tokens) {
  const Sequence& sequence = sequences_[slot];
  const std::uint32_t blocks = blocks_of(spec_, std::uint64_t{sequence.computed} + new_tokens);
  while (blocks > sequence.blocks.size() + pool_.free()) {
    const Slot victim = least_urgent();
    preempt(victim);
    if (victim == slot) return false;
  }
  return true;
}

Scheduler::Slot Scheduler::least_urgent() const {
  if (spec_.order == Order::kFirstCome) return running_.back();
  const auto earlier = [&](Slot a, Slot b) { return place_of(a) < place_of(b); };
  return *std::max_element(running_.begin(), running_.end(), earlier);
}

void Scheduler::preempt(Slot slot) {
  const auto at = std::find(running_.begin(), running_.end(), slot);
  const auto index = static_cast<std::size_t>(at - running_.begin());
  if (index < next_running_) {
    unschedule(slot);
    --next_running_;
  }
  running_.erase(at);
  Sequence& sequence = sequences_[slot];
  sequence.runs = false;
  ++sequence.preemptions;
  ++counts_.preemptions;
  step_->preempted.push_back(sequence.request.number);
  if (spec_.preemption == CachePreemption::kRecompute || !swap_out(sequence)) {
    drop_host_copy(sequence);
    sequence.lost = sequence.computed;
    sequence.computed = 0;
  }
  release(sequence);
  if (spec_.order == Order::kFirstCome) sequence.turn = first_turn_--;
  queue_.insert(place_of(slot));
}

bool Scheduler::swap_out(Sequence& sequence) {
  const auto blocks = static_cast<std::uint32_t>(sequence.blocks.size());
  const std::uint32_t copied = blocks - sequence.host_blocks;
  if (!make_host_room(copied)) {
    ++counts_.swaps_without_room;
    return false;
  }
  host_blocks_used_ += copied;
  sequence.swapped_blocks = sequence.host_blocks = blocks;
  step_->blocks_swapped_out += copied;
  count_copies(copied);
  counts_.blocks_swapped_out += copied;
  return true;
}

// What sequences that run keep on the host gives way, the longest admitted first.
bool Scheduler::make_host_room(std::uint32_t blocks) {
  for (const Slot slot : running_) {
    if (host_blocks_used_ + blocks <= spec_.host_blocks) break;
    drop_host_copy(sequences_[slot]);
  }
  return host_blocks_used_ + blocks <= spec_.host_blocks;
}

void Scheduler::drop_host_copy(Sequence& sequence) {
  host_blocks_used_ -= std::exchange(sequence.host_blocks, 0);
}

void Scheduler::count_copies(std::uint32_t blocks) {
  if (spec_.swap_group == 0) return;
  step_->swap_copies += divide_up(blocks, spec_.swap_group);
}

void Scheduler::unschedule(Slot slot) {
  auto& parts = step_->sequences;
  const auto part = std::find_if(parts.begin(), parts.end(),
                                 [&](const StepSequence& planned) { return planned.slot == slot; });
  if (part == parts.end()) return;
  Sequence& sequence = sequences_[slot];
  sequence.computed -= part->new_tokens;
  if (part->emits) --sequence.sampling;
  budget_ += part->new_tokens;
  counts_.computed_tokens -= part->new_tokens;
  counts_.drafted_tokens -= part->drafted;
  step_->totals.remove(*part);
  parts.erase(part);
}

void Scheduler::schedule_waiting(SimTime now) {
  while (!queue_.empty() && budget_ > 0 && running_.size() < spec_.max_num_seqs) {
    if (!admit(queue_.begin()->slot, now)) return;
  }
}

bool Scheduler::admit(Slot slot, SimTime now) {
  Sequence& sequence = sequences_[slot];
  // Preempted with a token in flight: what there is to compute is not known before that arrives.
  if (sequence.sampling > 0) return false;
  const bool swapped = sequence.swapped_blocks > 0;
  const std::uint32_t found = swapped ? 0 : find_prefix(sequence);
  const std::uint32_t cached = swapped ? sequence.computed : found;
  const std::uint32_t wanted = capped(sequence.known_tokens() - cached);
  if (spec_.chunking == Chunking::kWhole && wanted > budget_) return false;
  const std::uint32_t new_tokens = std::min(wanted, budget_);
  if (!has_blocks_for(sequence, cached + new_tokens)) return false;
  queue_.erase(place_of(slot));
  if (swapped) {
    swap_in(sequence);
  } else {
    begin_prefill(sequence, found, now);
  }
  running_.push_back(slot);
  sequence.runs = true;
  if (spec_.reserve == Reserve::kWholeRequest) reserved_blocks_ += whole_blocks(sequence);
  if (swapped && spec_.swap_timing == SwapTiming::kBeside) {
    hold_blocks(sequence);
  } else {
    add_to_step(slot, new_tokens, 0);
  }
  return true;
}

std::uint32_t Scheduler::find_prefix(const Sequence& sequence) {
  prefix_.clear();
  if (sequence.request.handed && sequence.preemptions == 0) return sequence.request.prompt_tokens;
  const std::uint32_t most = (sequence.known_tokens() - 1) / spec_.block_size;
  if (spec_.enable_prefix_caching) {
    while (prefix_.size() < most) {
      const auto block = pool_.find(key_of(sequence, static_cast<std::uint32_t>(prefix_.size())));
      if (!block) break;
      prefix_.push_back(*block);
    }
  }
  const auto cached = static_cast<std::uint32_t>(prefix_.size());
  const bool rate_holds = sequence.preemptions == 0 && !sequence.request.prefix.is_known();
  if (!rate_holds) return cached * spec_.block_size;
  const auto given = static_cast<std::uint32_t>(spec_.prefix_hit_rate *
                                                sequence.request.prompt_tokens / spec_.block_size);
  return std::max(cached, std::min(given, most)) * spec_.block_size;
}

// Free blocks of the prefix that was found count as needed: they are free no longer afterwards.
bool Scheduler::has_blocks_for(const Sequence& sequence, std::uint32_t tokens) const {
  if (spec_.reserve == Reserve::kWholeRequest) {
    return reserved_blocks_ + whole_blocks(sequence) <= spec_.kv_blocks;
  }
  std::uint64_t needed = blocks_of(
      spec_, spec_.reserve == Reserve::kPrompt ? sequence.known_tokens() : tokens);
  if (sequence.swapped_blocks == 0) {
    for (const BlockIndex block : prefix_) needed -= pool_.is_free(block) ? 0 : 1;
  }
  if (!running_.empty()) {
    needed += static_cast<std::uint64_t>(spec_.watermark * spec_.kv_blocks);
  }
  return needed <= pool_.free();
}

std::uint32_t Scheduler::whole_blocks(const Sequence& sequence) const {
  return blocks_of(spec_, most_cached(spec_, sequence.request));
}

void Scheduler::begin_prefill(Sequence& sequence, std::uint32_t found, SimTime now) {
  if (sequence.preemptions == 0) sequence.admitted = now;
  if (sequence.request.handed && sequence.preemptions == 0) {
    sequence.computed = sequence.prefill_end = found;
    counts_.handed_tokens += found;
    return;
  }
  for (const BlockIndex block : prefix_) {
    pool_.share(block);
    sequence.blocks.push_back(block);
  }
  sequence.known_blocks = static_cast<std::uint32_t>(prefix_.size());
  sequence.computed = found;
  sequence.prefill_end = sequence.known_tokens();
  const std::uint32_t regained = std::min(found, sequence.lost);
  counts_.recomputed_tokens += sequence.lost - regained;
  counts_.prefix_hit_tokens += found - regained;
  sequence.lost = 0;
}

void Scheduler::swap_in(Sequence& sequence) {
  step_->blocks_swapped_in += sequence.swapped_blocks;
  count_copies(sequence.swapped_blocks);
  const std::uint32_t kept = spec_.swap_reuse ? sequence.computed / spec_.block_size : 0;
  host_blocks_used_ -= sequence.host_blocks - kept;
  sequence.host_blocks = kept;
  sequence.swapped_blocks = 0;
}

void Scheduler::hold_blocks(Sequence& sequence) {
  const std::uint32_t blocks = blocks_of(spec_, sequence.computed);
  while (sequence.blocks.size() < blocks) sequence.blocks.push_back(pool_.take());
}

void Scheduler::add_to_step(Slot slot, std::uint32_t new_tokens, std::uint32_t drafts) {
  Sequence& sequence = sequences_[slot];
  StepSequence part;
  part.request = sequence.request.number;
  part.new_tokens = new_tokens + drafts;
  part.drafted = drafts;
  part.context = sequence.computed;
  part.slot = slot;
  part.prefill = sequence.computed < sequence.prefill_end;
  sequence.computed += part.new_tokens;
  part.emits = sequence.computed - drafts == sequence.known_tokens() + sequence.sampling;
  if (part.emits) ++sequence.sampling;
  hold_blocks(sequence);
  if (spec_.enable_prefix_caching) remember_blocks(sequence);
  budget_ -= part.new_tokens;
  counts_.computed_tokens += part.new_tokens;
  counts_.drafted_tokens += drafts;
  step_->add(part);
}

void Scheduler::remember_blocks(Sequence& sequence) {
  const std::uint32_t full =
      std::min(sequence.computed, sequence.known_tokens()) / spec_.block_size;
  for (; sequence.known_blocks < full; ++sequence.known_blocks) {
    pool_.remember(sequence.blocks[sequence.known_blocks],
                   key_of(sequence, sequence.known_blocks));
  }
}

BlockKey Scheduler::key_of(const Sequence& sequence, std::uint32_t block) const {
  return block_key(sequence.request, sequence.life, block, spec_.block_size);
}

void Scheduler::release(Sequence& sequence) {
  pool_.release(sequence.blocks);
  sequence.blocks.clear();
  sequence.known_blocks = 0;
}

const StepOutcome& Scheduler::finish_step(SimTime now) {
  BUBBLESIM_CHECK(flying_ > 0, "a step ended that was never scheduled");
  Flight& flight = flights_[oldest_flight_];
  outcome_.tokens = 0;
  outcome_.first_token.clear();
  outcome_.gaps.clear();
  outcome_.finished.clear();
  for (std::size_t i = 0; i < flight.lives.size(); ++i) {
    const StepSequence& part = flight.step.sequences[i];
    if (sequences_[part.slot].life != flight.lives[i]) {
      counts_.dropped_tokens += part.new_tokens;
    } else if (part.emits) {
      receive(part, now);
    }
  }
  if (!outcome_.finished.empty()) {
    std::erase_if(running_, [&](Slot slot) { return sequences_[slot].life == 0; });
  }
  flight.ended = true;
  oldest_flight_ = (oldest_flight_ + 1) % flights_.size();
  --flying_;
  return outcome_;
}

void Scheduler::receive(const StepSequence& part, SimTime now) {
  Sequence& sequence = sequences_[part.slot];
  const std::uint32_t accepted = accepted_of(sequence, part.drafted);
  const std::uint32_t rejected = part.drafted - accepted;
  --sequence.sampling;
  sequence.computed -= rejected;
  sequence.received += 1 + accepted;
  outcome_.tokens += 1 + accepted;
  counts_.output_tokens += 1 + accepted;
  counts_.rejected_tokens += rejected;
  if (sequence.received == 1) {
    sequence.first_token = now;
    outcome_.first_token.push_back(sequence.request.number);
  } else {
    outcome_.gaps.push_back(now - sequence.last_token);
    outcome_.gaps.insert(outcome_.gaps.end(), accepted, Duration{});
  }
  sequence.last_token = now;
  if (sequence.received == sequence.request.output_tokens) end(part.slot, now);
}

// Drawn by the request and its place in the output: no step changes what another one draws. Nothing
// is received before the first token, so place 0 is free for where a request's record begins.
std::uint32_t Scheduler::accepted_of(Sequence& sequence, std::uint32_t drafted) const {
  if (drafted == 0) return 0;
  const std::vector<std::uint32_t>& recorded = *spec_.speculation.recorded;
  if (!recorded.empty()) {
    const double begin = uniform_of(spec_.seed, sequence.request.number, 0);
    const auto first = static_cast<std::size_t>(begin * static_cast<double>(recorded.size()));
    return std::min(drafted, recorded[(first + sequence.checks++) % recorded.size()]);
  }
  const std::vector<double>& chances = spec_.speculation.accepted;
  double rest = uniform_of(spec_.seed, sequence.request.number, sequence.received);
  std::uint32_t accepted = 0;
  while (accepted < drafted && rest >= chances[accepted]) {
    rest -= chances[accepted++];
  }
  return accepted;
}

void Scheduler::end(Slot slot, SimTime now) {
  Sequence& sequence = sequences_[slot];
  FinishedRequest& done = outcome_.finished.emplace_back();
  done.number = sequence.request.number;
  done.prompt_tokens = sequence.request.prompt_tokens;
  done.output_tokens = sequence.request.output_tokens;
  done.preemptions = sequence.preemptions;
  done.arrival = sequence.request.arrival;
  done.admitted = sequence.admitted;
  done.first_token = sequence.first_token;
  done.last_token = now;
  if (!sequence.runs) queue_.erase(place_of(slot));
  drop_host_copy(sequence);
  if (spec_.reserve == Reserve::kWholeRequest) reserved_blocks_ -= whole_blocks(sequence);
  release(sequence);
  sequence.life = 0;
  unused_.push_back(slot);
  ++counts_.finished;
}

std::optional<std::uint64_t> Scheduler::oldest_running() const {
  if (running_.empty()) return std::nullopt;
  return sequences_[running_.front()].request.number;
}

std::vector<UnfinishedRequest> Scheduler::unfinished() const {
  std::vector<UnfinishedRequest> requests;
  for (const Sequence& sequence : sequences_) {
    if (sequence.life == 0) continue;
    UnfinishedRequest& request = requests.emplace_back();
    request.arrival = sequence.request.arrival;
    if (sequence.received > 0) request.first_token = sequence.first_token;
  }
  std::ranges::stable_sort(requests, {}, &UnfinishedRequest::arrival);
  return requests;
}

}  // namespace bubblesim::serving
