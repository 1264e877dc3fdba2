#include "sim/schedule/policy_driver.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include "sim/base/check.hpp"
#include "sim/base/units.hpp"
#include "sim/schedule/driver_timer.hpp"
#include "sim/schedule/policy_terms.hpp"

namespace bubblesim::schedule {
namespace {

// A policy may look again in the same instant, but not forever.
constexpr std::uint32_t kMostTicksInInstant = 10'000;

}  // namespace

PolicyDriver::PolicyDriver(engine::Engine& engine, gpu::Gpu& gpu, const policy::PolicySpec& spec,
                           policy::Policy& policy, const BubbleTable* bubbles, HoldListener* holds)
    : engine_(engine), gpu_(gpu), spec_(spec), policy_(policy), bubbles_(bubbles), holds_(holds) {
  ticks_ = std::make_unique<Timer>(*this, &PolicyDriver::tick, engine::Phase::kPolicy);
  notice_timer_ =
      std::make_unique<Timer>(*this, &PolicyDriver::deliver_notices, engine::Phase::kPolicy);
  migration_timer_ =
      std::make_unique<Timer>(*this, &PolicyDriver::end_migrations, engine::Phase::kPolicy);
}

PolicyDriver::~PolicyDriver() = default;

void PolicyDriver::attach(workload::ProgramRun* run, Bytes memory, Bytes resident) {
  Client client;
  client.run = run;
  client.memory = memory;
  client.resident = resident;
  place_memory(client, resident);
  clients_.push_back(std::move(client));
}

void PolicyDriver::start() { after_call(engine_.now()); }

std::size_t PolicyDriver::client_of(const workload::ProgramRun& run) const {
  for (std::size_t i = 0; i < clients_.size(); ++i) {
    if (clients_[i].run == &run) return i;
  }
  BUBBLESIM_CHECK(false, "a run that was not attached");
  return 0;
}

policy::LaunchInfo PolicyDriver::describe(const workload::LaunchCall& call, std::size_t index) {
  const program::Program& program = call.run->program();
  policy::LaunchInfo info;
  info.client = ClientId{static_cast<std::uint32_t>(index)};
  info.kind = program.ops[call.first].kind;
  info.launch = call.number;
  info.operations = call.count;
  for (std::uint32_t i = call.first; i < call.first + call.count; ++i) {
    const program::Op& op = program.ops[i];
    if (op.profile != program::kNoIndex) {
      const program::KernelProfile& profile = program.profiles[op.profile];
      if (info.blocks == 0) {
        info.kernel = std::uint64_t{op.name.value} << 32U | op.profile;
        info.sm_blocks = std::uint64_t{profile.residency.blocks_per_sm} * gpu_.spec().sm_count;
        if (spec_.needs.kernel_classes) info.bound = profile.kernel_class;
      }
      info.blocks += profile.blocks;
      info.threads_per_block = std::max(info.threads_per_block, profile.residency.warps * 32);
    }
    if (spec_.needs.kernel_durations) info.profiled += op.duration;
  }
  return info;
}

bool PolicyDriver::may_launch(const workload::LaunchCall& call, SimTime now) {
  const std::size_t index = client_of(*call.run);
  const policy::LaunchInfo info = describe(call, index);
  begin_call();
  const policy::Verdict verdict = policy_.on_launch(info, instant(now), *this);
  if (verdict == policy::Verdict::kHold) {
    clients_[index].held.push_back({info, call.thread, now});
    ++counts_.holds;
  } else {
    apply_form(index);
  }
  after_call(now);
  return verdict == policy::Verdict::kAdmit;
}

void PolicyDriver::op_started(const workload::ProgramRun& run, std::uint32_t op, SimTime now) {
  if (bubbles_ == nullptr || clients_.front().run != &run) return;
  if (run.program().ops[op].kind == program::WorkKind::kCollective) return;
  ++training_running_;
  if (!bubble_open_) return;
  bubble_open_ = false;
  bubble_end_due_ = true;
  if (!in_call_) end_bubble(now);
}

void PolicyDriver::end_bubble(SimTime now) {
  bubble_end_due_ = false;
  begin_call();
  policy_.on_bubble_end(instant(now), *this);
  after_call(now);
}

void PolicyDriver::op_finished(const workload::OpRecord& record) {
  const std::size_t index = client_of(*record.run);
  const program::Op& op = record.run->program().ops[record.op];
  if (spec_.needs.completions) {
    const Notice notice{record.end + gpu_.spec().completion_notice,
                        {ClientId{static_cast<std::uint32_t>(index)}, op.kind,
                         record.launch}};
    if (notices_.empty()) engine_.schedule(notice_timer_->entity, notice.due);
    notices_.push_back(notice);
  }
  if (bubbles_ == nullptr || index != 0 || op.kind == program::WorkKind::kCollective) return;
  --training_running_;
  if (training_running_ == 0) begin_bubble(record.op, record.end);
}

void PolicyDriver::begin_bubble(std::uint32_t op, SimTime now) {
  const auto place = std::lower_bound(
      bubbles_->begin(), bubbles_->end(), op,
      [](const Bubble& bubble, std::uint32_t wanted) { return bubble.after_op < wanted; });
  if (place == bubbles_->end() || place->after_op != op) return;
  bubble_open_ = true;
  begin_call();
  const policy::BubbleInfo info{place->length, place->free_memory, place->pipeline};
  policy_.on_bubble_begin(info, instant(now), *this);
  after_call(now);
}

void PolicyDriver::deliver_notices(SimTime now) {
  while (!notices_.empty() && notices_.front().due <= now) {
    const Notice notice = notices_.front();
    notices_.pop_front();
    begin_call();
    policy_.on_completion(notice.info, instant(now), *this);
    after_call(now);
  }
  if (!notices_.empty()) engine_.schedule(notice_timer_->entity, notices_.front().due);
}

void PolicyDriver::iteration_ended(const workload::ProgramRun& run, Duration length,
                                   SimTime now) {
  if (!spec_.needs.iterations) return;
  const std::size_t index = client_of(run);
  begin_call();
  policy_.on_iteration(
      {ClientId{static_cast<std::uint32_t>(index)}, ++clients_[index].iterations, length},
      instant(now), *this);
  after_call(now);
}

void PolicyDriver::tick(SimTime now) {
  ticks_in_instant_ = now == last_tick_ ? ticks_in_instant_ + 1 : 1;
  last_tick_ = now;
  if (ticks_in_instant_ > kMostTicksInInstant) {
    refuse("asks for ticks without end at one instant");
    return;
  }
  begin_call();
  policy_.on_tick(instant(now), *this);
  after_call(now);
}

void PolicyDriver::begin_call() {
  ++counts_.calls;
  in_call_ = true;
}

// Lets released threads go on, tells what came up during the call, and arms the policy's next
// tick.
void PolicyDriver::after_call(SimTime now) {
  in_call_ = false;
  for (std::size_t i = 0; i < released_.size(); ++i) {
    const auto [index, launch, form] = released_[i];
    ++counts_.released;
    counts_.held_time += now - launch.since;
    if (holds_ != nullptr) holds_->on_hold_ended(launch.info.client, launch.since, now);
    if (form) clients_[index].run->reshape(*form);
    clients_[index].run->resume(launch.thread, now);
  }
  released_.clear();
  if (bubble_end_due_) {
    end_bubble(now);  // arms the tick
    return;
  }
  const std::optional<policy::Instant> next = policy_.next_tick();
  if (!next) {
    engine_.cancel(ticks_->entity);
    return;
  }
  const SimTime at = std::max(kSimStart + *next, now);
  if (engine_.due(ticks_->entity) != at) engine_.schedule(ticks_->entity, at);
}

std::uint64_t PolicyDriver::still_held() const {
  std::uint64_t total = 0;
  for (const Client& client : clients_) total += client.held.size();
  return total;
}

void PolicyDriver::release(ClientId client) {
  if (client.index() >= clients_.size() || clients_[client.index()].held.empty()) {
    refuse("released client " + std::to_string(client.value) + ", which holds no launch");
    return;
  }
  Client& of = clients_[client.index()];
  released_.push_back({client.index(), of.held.front(), std::exchange(of.form, std::nullopt)});
  of.held.pop_front();
}

std::size_t PolicyDriver::held(ClientId client) const {
  return client.index() < clients_.size() ? clients_[client.index()].held.size() : 0;
}

const policy::LaunchInfo& PolicyDriver::oldest_held(ClientId client) const {
  BUBBLESIM_CHECK(held(client) > 0, "oldest_held of a client that holds no launch");
  return clients_[client.index()].held.front().info;
}

void PolicyDriver::refuse(const std::string& reason) {
  if (fault_) return;
  fault_ = Error{{}, "policy " + spec_.name,
                 "illegal decision at " + format_duration(engine_.now() - kSimStart) + ": " +
                     reason};
  engine_.stop();
}

}  // namespace bubblesim::schedule
