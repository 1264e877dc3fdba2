#include "sim/synth/pass_timer.hpp"

#include <algorithm>

#include "sim/base/check.hpp"
#include "sim/synth/program_writer.hpp"
#include "sim/synth/rank_emitter.hpp"

namespace bubblesim::synth {
namespace {

constexpr std::size_t kMostBodies = 16'384;  // some 10 MB a GPU

bool is_prompt_attention(const model::WorkItem& item) {
  const auto* kernel = std::get_if<model::KernelWork>(&item);
  return kernel != nullptr && kernel->name == "prompt attention";
}

}  // namespace

PassTimer::PassTimer(const ServerPlan& plan, const model::ModelSpec& model,
                     const model::Split& split, program::Program& program, ServerMeetings meetings)
    : plan_(plan), model_(model), split_(split), program_(program), meetings_(meetings),
      timer_(plan.request.gpu, plan.request.efficiency, plan.request.software.slowdown) {}

Result<model::ModelWork> PassTimer::work(const model::IterationSums& sums) const {
  return model::summed_iteration_work(model_, split_, plan_.request.precision, sums);
}

model::ModelWork PassTimer::known_work(const model::IterationSums& sums) const {
  auto known = work(sums);
  BUBBLESIM_CHECK(known.has_value(), "a step that the server's model cannot run");
  return *std::move(known);
}

void PassTimer::learn(const model::ModelWork& mixed) {
  layers_ = mixed.layers;
  const auto& block = mixed.kinds[layers_[1]].forward;
  before_attention_ = static_cast<std::size_t>(
      std::ranges::find_if(block, is_prompt_attention) - block.begin());
}

PassTimer::AttentionSlots PassTimer::add_slots() {
  AttentionSlots slots;
  for (std::uint32_t& slot : slots) slot = add_profile({}, {});
  return slots;
}

std::uint32_t PassTimer::add_profile(const program::KernelProfile& profile,
                                     const model::Launch& launch) {
  program_.profiles.push_back(profile);
  program_.shapes.push_back(shape_of(launch));
  return static_cast<std::uint32_t>(program_.profiles.size() - 1);
}

PassTimer::Timed PassTimer::time(const model::KernelWork& work) {
  const TimedKernel timed = timer_.time(work);
  return {timed.duration,
          profiles_.index_of(timed, [this](const auto& profile, const auto& launch) {
            return add_profile(profile, launch);
          }),
          program::kNoIndex};
}

// The kernel of an exchange has a block a channel, of which small ones open fewer.
PassTimer::Timed PassTimer::time(const model::Communication& what) {
  ServerExchanges* const exchanges = meetings_.exchanges_of(what.axis);
  const ServerExchanges::Meeting meeting =
      exchanges == nullptr ? ServerExchanges::Meeting{program::kNoIndex, 1}
                           : exchanges->meeting(what);
  const auto [place, fresh] = profile_of_channels_.try_emplace(meeting.channels, 0);
  if (fresh) {
    place->second = add_profile(
        program::profile_kernel(collective_needs(meeting.channels),
                                program::KernelClass::kMemory, plan_.request.gpu),
        collective_launch(meeting.channels));
  }
  return {Duration{}, place->second, meeting.collective};
}

std::vector<PassTimer::Timed> PassTimer::time(const model::LayerWork& layer) {
  std::vector<Timed> timed;
  for (const model::WorkItem& item : layer.forward) {
    timed.push_back(std::visit([this](const auto& what) { return time(what); }, item));
  }
  return timed;
}

// All layers but the head, without attention. Pairs of tokens are many: all are forgotten at times.
const PassTimer::Timings& PassTimer::body(const model::IterationSums& sums) {
  if (bodies_.size() == kMostBodies) bodies_.clear();
  const auto [place, fresh] = bodies_.try_emplace({sums.tokens, sums.group_tokens});
  if (!fresh) return place->second;
  model::IterationSums plain;
  plain.tokens = sums.tokens;
  plain.group_tokens = sums.group_tokens;
  plain.rows = 1;
  const model::ModelWork work = known_work(plain);
  for (std::size_t kind = 0; kind + 1 < work.kinds.size(); ++kind) {
    place->second.push_back(time(work.kinds[kind]));
  }
  return place->second;
}

const std::vector<PassTimer::Timed>& PassTimer::head(std::uint32_t rows, LogitRows kind) {
  const auto [place, fresh] = heads_.try_emplace({rows, kind});
  if (!fresh) return place->second;
  model::IterationSums sums;
  sums.tokens = kind == LogitRows::kAll ? rows : rows + 1;
  sums.rows = rows;
  place->second = time(known_work(sums).kinds.back());
  return place->second;
}

void PassTimer::time_attention(const model::IterationSums& sums, const AttentionSlots& slots) {
  attention_.clear();
  const auto works =
      model::attention_work(model_, split_, plan_.request.precision, sums);
  for (std::size_t i = 0; i < works.size(); ++i) {
    const TimedKernel timed = timer_.time(works[i]);
    program_.profiles[slots[i]] = timed.profile;
    program_.shapes[slots[i]] = shape_of(timed.launch);
    attention_.push_back({timed.duration, slots[i], program::kNoIndex});
  }
}

program::Op* PassTimer::write(program::Op* op, const model::IterationSums& sums, LogitRows rows,
                              const AttentionSlots& slots) {
  time_attention(sums, slots);
  const Timings& layers = body(sums);
  const auto put = [&op](auto begin, auto end) {
    for (; begin != end; ++begin, ++op) {
      op->duration = begin->duration;
      op->profile = begin->profile;
      op->collective = begin->collective;
    }
  };
  put(layers[0].begin(), layers[0].end());
  for (std::size_t layer = 1; layer + 1 < layers_.size(); ++layer) {
    const std::vector<Timed>& block = layers[layers_[layer]];
    const auto middle = block.begin() + static_cast<std::ptrdiff_t>(before_attention_);
    put(block.begin(), middle);
    put(attention_.begin(), attention_.end());
    put(middle, block.end());
  }
  const std::vector<Timed>& last = head(static_cast<std::uint32_t>(sums.rows), rows);
  put(last.begin(), last.end());
  return op;
}

}  // namespace bubblesim::synth
