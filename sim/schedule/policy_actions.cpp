// What a policy does to clients besides releasing launches: checked, and put into the GPU's terms.
#include <cmath>
#include <utility>

#include "sim/base/units.hpp"
#include "sim/schedule/driver_timer.hpp"
#include "sim/schedule/policy_driver.hpp"

namespace bubblesim::schedule {
// The client's run; null if it has none, or does not exist, which ends the run.
workload::ProgramRun* PolicyDriver::run_of(ClientId client, std::string_view what) {
  if (client.index() < clients_.size()) return clients_[client.index()].run;
  refuse(std::string(what) + " of client " + std::to_string(client.value) + " of " +
         std::to_string(clients_.size()));
  return nullptr;
}

void PolicyDriver::set_sm_percentage(ClientId client, std::uint32_t percentage) {
  if (percentage < 1 || percentage > 100) {
    refuse("set " + std::to_string(percentage) + " % of SMs, allowed are 1 to 100");
    return;
  }
  workload::ProgramRun* run = run_of(client, "set the SMs");
  if (run != nullptr) gpu_.set_sm_cap(run->client(), sm_cap(percentage, gpu_.spec()));
}

void PolicyDriver::set_priority(ClientId client, std::int32_t priority) {
  workload::ProgramRun* run = run_of(client, "set the priority");
  if (run != nullptr) gpu_.set_priority(run->client(), priority);
}

void PolicyDriver::set_time_slice(ClientId client, Duration slice) {
  if (gpu_.mode() != program::SharingMode::kTimeSliced) {
    refuse("set a time slice, but contexts do not take turns under its sharing");
    return;
  }
  if (slice <= Duration{}) {
    refuse("set a time slice of " + format_duration(slice) + ", allowed is above 0");
    return;
  }
  workload::ProgramRun* run = run_of(client, "set the time slice");
  if (run != nullptr) gpu_.set_slice(run->client(), slice);
}

void PolicyDriver::preempt(ClientId client, program::Preemption how) {
  if (how == program::Preemption::kContextSwitch &&
      gpu_.mode() != program::SharingMode::kTimeSliced) {
    refuse("switched a context away, but contexts do not take turns under its sharing");
    return;
  }
  workload::ProgramRun* run = run_of(client, "drove off kernels");
  if (run == nullptr) return;
  ++counts_.preemptions;
  gpu_.preempt(run->client(), how);
}

void PolicyDriver::proceed(ClientId client) {
  workload::ProgramRun* run = run_of(client, "let kernels proceed");
  if (run != nullptr) gpu_.proceed(run->client());
}

void PolicyDriver::reshape(ClientId client, const policy::LaunchForm& form) {
  if (form.slowdown < 1) {
    refuse("made a kernel faster than it is, by a slowdown below 1");
    return;
  }
  workload::ProgramRun* run = run_of(client, "reshaped a launch");
  if (run == nullptr) return;
  ++counts_.reshaped;
  clients_[client.index()].form = workload::LaunchForm{form.most_blocks, form.slowdown};
}

// The launch that the verdict lets go on.
void PolicyDriver::apply_form(std::size_t index) {
  Client& client = clients_[index];
  if (!client.form) return;
  client.run->reshape(*client.form);
  client.form.reset();
}

// Moving takes the time of what moves over the host link. Kernels reach what is not there as
// before until all of it has been moved; the copy engines' other work is not slowed.
void PolicyDriver::set_resident_memory(ClientId client, Bytes resident) {
  if (run_of(client, "moved the memory") == nullptr) return;
  Client& of = clients_[client.index()];
  if (resident > of.memory) {
    refuse("put " + format_bytes(resident) + " of " + format_bytes(of.memory) + " on the device");
    return;
  }
  const Bytes moved{resident > of.resident ? resident.value - of.resident.value
                                           : of.resident.value - resident.value};
  of.resident = resident;
  counts_.migrated = counts_.migrated + moved;
  const double host = gpu_.spec().host_bandwidth.value;
  const double nanoseconds = host > 0 ? static_cast<double>(moved.value) / host * 1e9 : 0;
  const Duration length{std::llround(nanoseconds)};
  const SimTime from = migrations_.empty() ? engine_.now() : migrations_.back().due;
  migrations_.push_back({from + length, client.index(), resident});
  if (migrations_.size() == 1) engine_.schedule(migration_timer_->entity, from + length);
}

void PolicyDriver::end_migrations(SimTime now) {
  while (!migrations_.empty() && migrations_.front().due <= now) {
    place_memory(clients_[migrations_.front().client], migrations_.front().resident);
    migrations_.pop_front();
  }
  if (!migrations_.empty()) engine_.schedule(migration_timer_->entity, migrations_.front().due);
}

void PolicyDriver::place_memory(const Client& client, Bytes resident) {
  if (client.run == nullptr || client.memory == Bytes{}) return;
  client.run->set_remote_share(1 - static_cast<double>(resident.value) /
                                       static_cast<double>(client.memory.value));
}

}  // namespace bubblesim::schedule
