#include "sim/workload/arrivals/request_lengths.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "sim/base/check.hpp"

namespace bubblesim::workload {

std::uint32_t longest(const LengthSpec& length) {
  if (const auto* fixed = std::get_if<FixedLength>(&length)) return fixed->tokens;
  return std::get<LognormalLength>(length).most;
}

RecordedLength largest(const DrawnLengths& drawn) {
  RecordedLength length{longest(drawn.prompt), longest(drawn.output), {}};
  if (!drawn.sessions) return length;
  const std::uint64_t turn = std::uint64_t{length.prompt_tokens} + length.output_tokens;
  const std::uint64_t all = turn * drawn.sessions->turns;
  if (turn >= drawn.sessions->window) return length;
  length.prompt_tokens = static_cast<std::uint32_t>(
      std::min<std::uint64_t>(all, drawn.sessions->window) - length.output_tokens);
  return length;
}

LengthSequence::LengthSequence(RequestLengths spec, RandomStream random)
    : spec_(std::move(spec)), random_(std::move(random)) {}

const RecordedLength& LengthSequence::length_of(std::uint64_t number) {
  const auto* listed = std::get_if<ListedLengths>(&spec_);
  if (listed != nullptr && listed->pick == ListedLengths::Pick::kInOrder) {
    return (*listed->list)[number % listed->list->size()];
  }
  BUBBLESIM_CHECK(number + 1 >= drawn_, "lengths of requests are asked for out of order");
  while (drawn_ <= number) draw();
  return last_;
}

void LengthSequence::draw() {
  ++drawn_;
  if (const auto* listed = std::get_if<ListedLengths>(&spec_)) {
    const auto count = static_cast<double>(listed->list->size());
    const auto place = static_cast<std::size_t>(random_.uniform() * count);
    const RecordedLength& picked = (*listed->list)[std::min(place, listed->list->size() - 1)];
    last_ = {picked.prompt_tokens, picked.output_tokens, {}};
    return;
  }
  const auto& drawn = std::get<DrawnLengths>(spec_);
  last_.prompt_tokens = draw(drawn.prompt);
  last_.output_tokens = draw(drawn.output);
  if (drawn.sessions) say(*drawn.sessions);
}

// The next turn of the user whose turn it is.
void LengthSequence::say(const Sessions& sessions) {
  users_.resize(sessions.users);
  User& user = users_[(drawn_ - 1) % sessions.users];
  const std::uint64_t turn = std::uint64_t{last_.prompt_tokens} + last_.output_tokens;
  const bool ends = user.turns == sessions.turns || user.tokens + turn > sessions.window;
  if (ends || user.turns == 0) user = {++conversations_, 0, 0};
  last_.conversation = user.conversation;
  last_.prompt_tokens += user.tokens;
  user.tokens += static_cast<std::uint32_t>(turn);
  ++user.turns;
}

// A lognormal variable of mean m and coefficient of variation c is exp of a normal one of variance
// s^2 = ln(1 + c^2) and mean ln m - s^2 / 2.
std::uint32_t LengthSequence::draw(const LengthSpec& length) {
  if (const auto* fixed = std::get_if<FixedLength>(&length)) return fixed->tokens;
  const auto& spec = std::get<LognormalLength>(length);
  const double variance = std::log1p(spec.cv * spec.cv);
  const double normal = random_.normal(std::log(spec.mean) - variance / 2, std::sqrt(variance));
  const double tokens = std::round(std::exp(normal));
  return static_cast<std::uint32_t>(std::clamp(tokens, static_cast<double>(spec.least),
                                               static_cast<double>(spec.most)));
}

}  // namespace bubblesim::workload
