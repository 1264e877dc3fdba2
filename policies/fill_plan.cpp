#include "policies/fill_plan.hpp"

#include <algorithm>
#include <cmath>

namespace bubblesim::policies {
namespace {

using policy::Instant;

Bytes excess(Bytes needed, Bytes there) {
  return {needed.value - std::min(needed.value, there.value)};
}

}  // namespace

FillPlan::FillPlan(const FillConstants& constants, std::vector<Bytes> memory)
    : constants_(constants) {
  for (const Bytes bytes : memory) clients_.push_back({.memory = bytes});
}

void FillPlan::begin_bubble(Duration length, Bytes free_memory, Instant now) {
  const Duration usable = scale(length, constants_.fraction) - constants_.switch_cost;
  open_ = true;
  untouched_ = true;
  length_ = length;
  free_ = free_memory;
  inside_ = Bytes{};
  bubble_end_ = now + length;
  fill_end_ = now + usable;
  seen_ = std::max(seen_, length);
  longest_usable_ = std::max(longest_usable_, usable);
  for (Client& client : clients_) client.inside = false;
}

void FillPlan::end_iteration() {
  if (seen_ > Duration{}) longest_ = seen_;
  seen_ = Duration{};
}

bool FillPlan::take(ClientId id, Duration length, Instant now) {
  Client& client = clients_[id.index()];
  if (!open_ || (!client.inside && !enter(client, length, now)) || now < client.ready) {
    return false;
  }
  const Instant end = std::max(now, plan_end_) + length;
  if (end > fill_end_) return take_alone(length, now);
  plan_end_ = end;
  untouched_ = false;
  return true;
}

bool FillPlan::take_alone(Duration length, Instant now) {
  const bool here = untouched_ && longest_ && length_ >= *longest_ && length > longest_usable_;
  if (!here || std::max(now, plan_end_) + length + constants_.switch_cost > bubble_end_) {
    return false;
  }
  plan_end_ = std::max(now, plan_end_) + length;
  open_ = false;
  ++alone_;
  return true;
}

bool FillPlan::enter(Client& client, Duration length, Instant now) {
  const Bytes inside = inside_ + client.memory;
  const std::optional<Duration> before = move_time(inside_);
  const std::optional<Duration> after = move_time(inside);
  if (!before || !after) {
    client.refused = true;
    return false;
  }
  const Duration move = *after - *before;
  const Instant begin = std::max(now, plan_end_);
  if (move > Duration{} && begin + move + length > fill_end_ - move) {
    client.refused = true;
    return false;
  }
  client.inside = client.entered = true;
  client.ready = move > Duration{} ? begin + move : now;
  inside_ = inside;
  if (move > Duration{}) {
    plan_end_ = begin + move;
    fill_end_ -= move;
    moved_ += 2 * move;
    untouched_ = false;
  }
  return true;
}

// The time of a move in one direction, if fillers need `inside` on the device; nothing: that much
// cannot be there.
std::optional<Duration> FillPlan::move_time(Bytes inside) const {
  const Bytes too_much = free_ == Bytes{} ? Bytes{} : excess(inside, free_);
  if (constants_.offload == Offload::kNever) {
    return too_much == Bytes{} ? std::optional(Duration{}) : std::nullopt;
  }
  Bytes bytes = too_much;
  if (constants_.beside_training) bytes = bytes + excess(inside, *constants_.beside_training);
  if (bytes == Bytes{}) return Duration{};
  if (constants_.host_link.value <= 0) return std::nullopt;
  const double seconds = static_cast<double>(bytes.value) / constants_.host_link.value;
  return Duration{static_cast<std::int64_t>(std::ceil(seconds * 1e9))};
}

std::optional<Instant> FillPlan::ready(ClientId id) const {
  const Client& client = clients_[id.index()];
  if (!open_ || !client.inside) return std::nullopt;
  return client.ready;
}

bool FillPlan::has_place(Duration length) const {
  return length <= longest_usable_ ||
         (longest_ && length + constants_.switch_cost <= *longest_);
}

bool FillPlan::lacks_memory(ClientId id) const {
  const Client& client = clients_[id.index()];
  return client.refused && !client.entered;
}

}  // namespace bubblesim::policies
