#include "sim/schedule/policy_driver.hpp"

#include <utility>

#include "sim/policy/session/launch_description.hpp"

namespace bubblesim::schedule {

PolicyDriver::PolicyDriver(engine::Engine& engine, gpu::Gpu& gpu, const policy::PolicySpec& spec,
                           policy::Policy& policy, const BubbleTable* bubbles, HoldListener* holds)
    : engine_(engine), gpu_(gpu), notices_wanted_(spec.needs.completions),
      ticks_(engine, *this, &PolicyDriver::tick),
      notices_(engine, *this, &PolicyDriver::notify),
      questions_(engine, *this, &PolicyDriver::ask),
      outlet_(engine, gpu, ticks_.entity, holds),
      session_(spec, policy, outlet_, gpu.mode() == program::SharingMode::kTimeSliced) {
  if (bubbles != nullptr) bubbles_.emplace(*bubbles);
}

void PolicyDriver::attach(workload::ProgramRun* run, Bytes memory, Bytes resident,
                          const policy::GateTerms& terms) {
  outlet_.attach(run, memory, resident, terms);
  session_.add_client({memory, resident, run != nullptr});
}

void PolicyDriver::start() { session_.begin(instant(engine_.now())); }

policy::LaunchInfo PolicyDriver::describe(const workload::LaunchCall& call) const {
  const program::Program& program = call.run->program();
  const auto kernel_of = [&](std::uint32_t op) {
    const program::KernelProfile& profile = program.profiles[program.ops[op].profile];
    const program::Residency& residency = profile.residency;
    return policy::LaunchedKernel{
        profile.blocks, residency.warps,
        std::uint64_t{residency.blocks_per_sm} * gpu_.spec().sm_count, profile.kernel_class};
  };
  policy::LaunchInfo info = policy::describe_launch(program, call.first, call.count, kernel_of);
  info.client = client_of(*call.run);
  info.launch = call.number;
  return info;
}

bool PolicyDriver::may_launch(const workload::LaunchCall& call, SimTime now) {
  const policy::GateTerms& terms = outlet_.terms(outlet_.client_of(*call.run));
  const Duration delay = terms.asks ? terms.ask : terms.tell;
  if (delay == Duration{}) return is_admitted(call, terms.asks, now);
  questions_.add(now + delay, {call, terms.asks});
  return false;
}

bool PolicyDriver::is_admitted(const workload::LaunchCall& call, bool waits, SimTime now) {
  policy::LaunchInfo launch = describe(call);
  launch.waits = waits;
  return session_.on_launch(std::move(launch), call.thread, instant(now)) ==
         policy::Verdict::kAdmit;
}

// A launch that goes on now may bring its thread to the next one, which asks anew.
void PolicyDriver::ask(const Question& question, SimTime now) {
  const workload::LaunchCall& call = question.call;
  if (is_admitted(call, question.waits, now)) call.run->resume(call.thread, now);
}

void PolicyDriver::op_started(const workload::ProgramRun& run, std::uint32_t op, SimTime now) {
  if (!bubbles_ || client_of(run) != ClientId{0}) return;
  if (bubbles_->op_started(run.program().ops[op].kind)) session_.on_bubble_end(instant(now));
}

void PolicyDriver::op_finished(const workload::OpRecord& record) {
  if (!notices_wanted_ && !bubbles_) return;
  const ClientId client = client_of(*record.run);
  const program::Op& op = record.run->program().ops[record.op];
  if (notices_wanted_) {
    notices_.add(record.end + gpu_.spec().completion_notice, {client, op.kind, record.launch});
  }
  if (!bubbles_ || client != ClientId{0}) return;
  const policy::BubbleInfo* bubble = bubbles_->op_finished(record.op, op.kind);
  if (bubble != nullptr) session_.on_bubble_begin(*bubble, instant(record.end));
}

void PolicyDriver::iteration_ended(const workload::ProgramRun& run, Duration length,
                                   SimTime now) {
  session_.on_iteration(client_of(run), length, instant(now));
}

}  // namespace bubblesim::schedule
