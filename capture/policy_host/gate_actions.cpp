// What a policy does to clients: what the gate can do is done, the rest ends the run.
#include <algorithm>
#include <iterator>
#include <utility>

#include "capture/policy_host/gate_driver.hpp"
#include "sim/base/check.hpp"
#include "sim/base/units.hpp"

namespace bubblesim::capture {

void GateDriver::refuse(const std::string& reason) {
  if (fault_) return;
  fault_ = Error{{}, "policy " + spec_.name,
                 "illegal decision at " + format_duration(now_) + ": " + reason};
}

bool GateDriver::exists(ClientId client, std::string_view what) {
  if (client.index() < clients_.size()) return true;
  refuse(std::string(what) + " of client " + std::to_string(client.value) + " of " +
         std::to_string(clients_.size()));
  return false;
}

void GateDriver::refuse_on_hardware(ClientId client, std::string_view what, std::string_view why) {
  if (!exists(client, what)) return;
  refuse(std::string(what) + " of client " + std::to_string(client.value) + " while it runs; " +
         std::string(why));
}

void GateDriver::release(ClientId client) {
  if (client.index() >= clients_.size() || clients_[client.index()].held.empty()) {
    refuse("released client " + std::to_string(client.value) + ", which holds no launch");
    return;
  }
  Client& of = clients_[client.index()];
  released_.push_back({client.index(), of.held.front()});
  of.held.pop_front();
}

std::size_t GateDriver::held(ClientId client) const {
  return client.index() < clients_.size() ? clients_[client.index()].held.size() : 0;
}

const policy::LaunchInfo& GateDriver::oldest_held(ClientId client) const {
  BUBBLESIM_CHECK(held(client) > 0, "oldest_held of a client that holds no launch");
  return clients_[client.index()].held.front().info;
}

void GateDriver::set_sm_percentage(ClientId client, std::uint32_t percentage) {
  if (percentage < 1 || percentage > 100) {
    refuse("set " + std::to_string(percentage) + " % of SMs, allowed are 1 to 100");
    return;
  }
  refuse_on_hardware(client, "set the SMs", "MPS sets them when a process starts");
}

void GateDriver::set_priority(ClientId client, std::int32_t) {
  refuse_on_hardware(client, "set the priority", "CUDA sets it when a stream is made");
}

void GateDriver::set_time_slice(ClientId client, Duration slice) {
  if (slice <= Duration{}) {
    refuse("set a time slice of " + format_duration(slice) + ", allowed is above 0");
    return;
  }
  refuse_on_hardware(client, "set the time slice", "the driver's slices are fixed");
}

void GateDriver::preempt(ClientId client, program::Preemption how) {
  if (!exists(client, "drove off kernels")) return;
  if (how != program::Preemption::kAfterKernel) {
    refuse_on_hardware(client, "drove off kernels",
                       "a gate leaves resident blocks alone (after_kernel)");
    return;
  }
  Client& of = clients_[client.index()];
  if (of.hosted.mode == GateMode::kTell) {
    refuse("drove off kernels of client " + std::to_string(client.value) +
           ", whose threads do not wait for verdicts");
    return;
  }
  of.preempted = true;
  // Who may proceed by this very call has not gone on yet.
  const auto back = [&](const Waiting& launch) { return launch.info.client == client; };
  std::ranges::copy_if(unparked_, std::back_inserter(of.parked), back);
  std::erase_if(unparked_, back);
}

// Collectives are left alone.
bool GateDriver::is_parked(const Client& client, const policy::LaunchInfo& launch) {
  return client.preempted && launch.kind != program::WorkKind::kCollective;
}

// Their hold has ended before, or there was none; so only their threads are let go, after the call.
void GateDriver::proceed(ClientId client) {
  if (!exists(client, "let kernels proceed")) return;
  Client& of = clients_[client.index()];
  of.preempted = false;
  for (Waiting& launch : std::exchange(of.parked, {})) unparked_.push_back(std::move(launch));
}

void GateDriver::reshape(ClientId client, const policy::LaunchForm& form) {
  if (form.slowdown < 1) {
    refuse("made a kernel faster than it is, by a slowdown below 1");
    return;
  }
  refuse_on_hardware(client, "reshaped a launch", "a gate cannot rewrite kernels");
}

void GateDriver::set_resident_memory(ClientId client, Bytes) {
  refuse_on_hardware(client, "moved the memory", "a gate cannot move it");
}

}  // namespace bubblesim::capture
