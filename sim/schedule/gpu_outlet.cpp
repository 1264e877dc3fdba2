#include "sim/schedule/gpu_outlet.hpp"

#include <algorithm>
#include <cmath>

#include "sim/base/check.hpp"
#include "sim/schedule/gpu_plan.hpp"

namespace bubblesim::schedule {
namespace {

void reshape_next(workload::ProgramRun& run, const std::optional<policy::LaunchForm>& form) {
  if (form) run.reshape(*form);
}

}  // namespace

void GpuOutlet::attach(workload::ProgramRun* run, Bytes memory, Bytes resident,
                       const policy::GateTerms& terms) {
  clients_.push_back({run, memory, terms});
  place_memory(clients_.back(), resident);
}

std::size_t GpuOutlet::client_of(const workload::ProgramRun& run) const {
  for (std::size_t i = 0; i < clients_.size(); ++i) {
    if (clients_[i].run == &run) return i;
  }
  BUBBLESIM_CHECK(false, "a run that was not attached");
  return 0;
}

// The thread is inside its call, and goes on when the driver returns the verdict.
void GpuOutlet::admit(const policy::LaunchInfo& launch, policy::Waiter,
                      const std::optional<policy::LaunchForm>& form) {
  reshape_next(*clients_[launch.client.index()].run, form);
}

void GpuOutlet::release(const policy::HeldLaunch& launch,
                        const std::optional<policy::LaunchForm>& form, policy::Instant now) {
  const policy::GateSleep& sleep = terms(launch.info.client.index()).sleep;
  if (sleep.wake == Duration{} || now - launch.since <= sleep.spin) {
    return go_on(launch, form, kSimStart + now);
  }
  // All clients of a gate have its terms, so that who is let go first is awake first.
  sleepers_.push_back({kSimStart + now + sleep.wake, launch, form});
  if (sleepers_.size() == 1) engine_.schedule(wake_timer_.entity, sleepers_.front().due);
}

// A thread that goes on may ask, and others be let go, before this returns.
void GpuOutlet::wake(SimTime now) {
  while (!sleepers_.empty() && sleepers_.front().due <= now) {
    const Sleeper awake = sleepers_.front();
    sleepers_.pop_front();
    go_on(awake.launch, awake.form, now);
  }
  if (!sleepers_.empty()) engine_.schedule(wake_timer_.entity, sleepers_.front().due);
}

void GpuOutlet::go_on(const policy::HeldLaunch& launch,
                      const std::optional<policy::LaunchForm>& form, SimTime time) {
  if (holds_ != nullptr) {
    holds_->on_hold_ended(launch.info.client, kSimStart + launch.since, time);
  }
  workload::ProgramRun& run = *clients_[launch.info.client.index()].run;
  reshape_next(run, form);
  run.resume(static_cast<std::uint32_t>(launch.waiter), time);
}

policy::Refusal GpuOutlet::cap(ClientId client, std::uint32_t percentage) {
  gpu_.set_sm_cap(gpu_client_of(client), sm_cap(percentage, gpu_.spec()));
  return {};
}

policy::Refusal GpuOutlet::prioritise(ClientId client, std::int32_t priority) {
  gpu_.set_priority(gpu_client_of(client), priority);
  return {};
}

policy::Refusal GpuOutlet::slice(ClientId client, Duration slice) {
  gpu_.set_slice(gpu_client_of(client), slice);
  return {};
}

policy::Refusal GpuOutlet::preempt(ClientId client, policy::Preemption how) {
  gpu_.preempt(gpu_client_of(client), how);
  return {};
}

policy::Refusal GpuOutlet::proceed(ClientId client) {
  gpu_.proceed(gpu_client_of(client));
  return {};
}

policy::Refusal GpuOutlet::move_memory(ClientId client, Bytes resident, Bytes moved) {
  const double host = gpu_.spec().host_bandwidth.value;
  const double nanoseconds = host > 0 ? static_cast<double>(moved.value) / host * 1e9 : 0;
  const SimTime begin = moves_.empty() ? engine_.now() : moves_.back().due;
  const SimTime due = begin + Duration{std::llround(nanoseconds)};
  moves_.push_back({due, client.index(), resident});
  if (moves_.size() == 1) engine_.schedule(moves_timer_.entity, due);
  return {};
}

policy::Refusal GpuOutlet::set_asking(ClientId client, bool asks) {
  clients_[client.index()].terms.asks = asks;
  return {};
}

void GpuOutlet::arm_tick(std::optional<policy::Instant> next, policy::Instant now) {
  if (!next) {
    engine_.cancel(ticks_);
    return;
  }
  const SimTime due = kSimStart + std::max(*next, now);
  if (engine_.due(ticks_) != due) engine_.schedule(ticks_, due);
}

void GpuOutlet::end_moves(SimTime now) {
  while (!moves_.empty() && moves_.front().due <= now) {
    place_memory(clients_[moves_.front().client], moves_.front().resident);
    moves_.pop_front();
  }
  if (!moves_.empty()) engine_.schedule(moves_timer_.entity, moves_.front().due);
}

void GpuOutlet::place_memory(const Client& client, Bytes resident) {
  if (client.run == nullptr || client.memory == Bytes{}) return;
  client.run->set_remote_share(1 - static_cast<double>(resident.value) /
                                       static_cast<double>(client.memory.value));
}

}  // namespace bubblesim::schedule
