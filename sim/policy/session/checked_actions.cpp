#include "sim/policy/session/checked_actions.hpp"

#include <algorithm>
#include <utility>

#include "sim/base/check.hpp"
#include "sim/base/units.hpp"

namespace bubblesim::policy {
namespace {

/// The most that a launch's form may be slowed; a run config's `stragglers` have the same limit.
constexpr double kMostSlowdown = 1000;

}  // namespace

void CheckedActions::refuse(const std::string& reason) {
  if (fault_) return;
  fault_ = Error{{}, "policy " + spec_.name,
                 "illegal decision at " + format_duration(now_) + ": " + reason};
  std::ranges::fill(silent_, std::uint8_t{true});
  outlet_.end();
}

// A client that was refused exists, and has nothing that could be set.
bool CheckedActions::affects(ClientId client, std::string_view what) {
  if (client.index() < clients_.size()) return clients_[client.index()].known.present;
  refuse(std::string(what) + " of client " + std::to_string(client.value) + " of " +
         std::to_string(clients_.size()));
  return false;
}

bool CheckedActions::is_done(Refusal refusal, ClientId client, std::string_view what) {
  if (refusal.empty()) return true;
  refuse(std::string(what) + " of client " + std::to_string(client.value) + std::string(refusal));
  return false;
}

void CheckedActions::release(ClientId client) {
  if (held(client) == 0) {
    refuse("released client " + std::to_string(client.value) + ", which holds no launch");
    return;
  }
  Client& released = clients_[client.index()];
  released_.push_back({released.held.front(), std::exchange(released.form, std::nullopt)});
  released.held.erase(released.held.begin());
}

std::size_t CheckedActions::held(ClientId client) const {
  return client.index() < clients_.size() ? clients_[client.index()].held.size() : 0;
}

const LaunchInfo& CheckedActions::oldest_held(ClientId client) const {
  BUBBLESIM_CHECK(held(client) > 0, "oldest_held of a client that holds no launch");
  return clients_[client.index()].held.front().info;
}

std::uint64_t CheckedActions::still_held() const {
  std::uint64_t count = 0;
  for (const Client& client : clients_) count += client.held.size();
  return count;
}

bool CheckedActions::holds(ClientId client, std::uint64_t launch) const {
  return std::ranges::any_of(clients_[client.index()].held, [launch](const HeldLaunch& held) {
    return held.info.launch == launch;
  });
}

void CheckedActions::set_sm_percentage(ClientId client, std::uint32_t percentage) {
  constexpr std::string_view kWhat = "set the SMs";
  if (percentage < 1 || percentage > 100) {
    refuse("set " + std::to_string(percentage) + " % of SMs, allowed are 1 to 100");
    return;
  }
  if (affects(client, kWhat)) (void)is_done(outlet_.cap(client, percentage), client, kWhat);
}

void CheckedActions::set_priority(ClientId client, std::int32_t priority) {
  constexpr std::string_view kWhat = "set the priority";
  if (affects(client, kWhat)) (void)is_done(outlet_.prioritise(client, priority), client, kWhat);
}

void CheckedActions::set_time_slice(ClientId client, Duration slice) {
  constexpr std::string_view kWhat = "set the time slice";
  if (!turns_) {
    refuse("set a time slice, but contexts do not take turns under its sharing");
    return;
  }
  if (slice <= Duration{}) {
    refuse("set a time slice of " + format_duration(slice) + ", allowed is above 0");
    return;
  }
  if (affects(client, kWhat)) (void)is_done(outlet_.slice(client, slice), client, kWhat);
}

void CheckedActions::preempt(ClientId client, Preemption how) {
  constexpr std::string_view kWhat = "drove off kernels";
  if (how > Preemption::kContextSwitch) {
    refuse("drove off kernels in the unknown way " + std::to_string(static_cast<unsigned>(how)));
    return;
  }
  if (how == Preemption::kContextSwitch && !turns_) {
    refuse("switched a context away, but contexts do not take turns under its sharing");
    return;
  }
  if (!affects(client, kWhat)) return;
  if (is_done(outlet_.preempt(client, how), client, kWhat)) ++counts_.preemptions;
}

void CheckedActions::proceed(ClientId client) {
  constexpr std::string_view kWhat = "let kernels proceed";
  if (affects(client, kWhat)) (void)is_done(outlet_.proceed(client), client, kWhat);
}

void CheckedActions::reshape(ClientId client, const LaunchForm& form) {
  constexpr std::string_view kWhat = "reshaped a launch";
  const bool allowed = form.slowdown >= 1 && form.slowdown <= kMostSlowdown;
  if (!allowed) {  // NaN is not
    refuse("reshaped a launch to a slowdown of " + value_text(form.slowdown) +
           ", allowed are 1 to " + value_text(kMostSlowdown));
    return;
  }
  if (!affects(client, kWhat)) return;
  if (!is_done(outlet_.reshape(client, form), client, kWhat)) return;
  ++counts_.reshaped;
  clients_[client.index()].form = form;
}

void CheckedActions::set_resident_memory(ClientId client, Bytes resident) {
  constexpr std::string_view kWhat = "moved the memory";
  if (!affects(client, kWhat)) return;
  SessionClient& known = clients_[client.index()].known;
  if (resident > known.memory) {
    refuse("put " + format_bytes(resident) + " of " + format_bytes(known.memory) +
           " on the device");
    return;
  }
  const Bytes before = std::exchange(known.resident, resident);
  const Bytes moved{std::max(resident, before).value - std::min(resident, before).value};
  if (is_done(outlet_.move_memory(client, resident, moved), client, kWhat)) {
    counts_.migrated = counts_.migrated + moved;
  }
}

void CheckedActions::set_asking(ClientId client, bool asks) {
  constexpr std::string_view kWhat = "set the asking";
  if (affects(client, kWhat)) (void)is_done(outlet_.set_asking(client, asks), client, kWhat);
}

}  // namespace bubblesim::policy
