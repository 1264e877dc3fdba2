// A kernel that is alone on the GPU ends when it has run for its time alone: it needs no waves, no
// pool and no rates. Most kernels of a training job are alone. All figures and the order of all
// calls are the same as if a context had the kernel (tests/laws/gpu).
#include <utility>

#include "sim/gpu/gpu_model.hpp"

namespace bubblesim::gpu {
namespace {

/// Units of work of a kernel, as waves count them: blocks times nanoseconds of each.
double block_units(const Work& work) {
  return static_cast<double>(work.profile->blocks) * static_cast<double>(work.solo.count());
}

}  // namespace

bool Gpu::Model::may_run_alone(const Work& work) const {
  if (updating_ || alone_ || !one_context()) return false;
  if (work.kind != program::WorkKind::kKernel || work.most_blocks > 0 || work.profile == nullptr) {
    return false;
  }
  if (!contexts_.front().leaves_alone(work) || !transfers_.idle()) return false;
  const std::uint64_t full = std::uint64_t{work.profile->residency.blocks_per_sm} *
                             shared_.spec.sm_count;
  return work.profile->blocks > 0 && full > 0 &&
         Waves::exact(work.solo, work.profile->blocks, full) &&
         work.solo < SimTime::max() - engine_.now();
}

void Gpu::Model::begin_alone(WorkId id, SimTime now) {
  WorkState& state = shared_.works[id];
  state.started = true;
  const Work& work = state.work;  // dangling once the listener has submitted
  const Duration solo = work.solo;
  alone_ = {id, now};
  contexts_.front().pass_alone(work.client, now);
  updating_ = true;
  needs_update_ = false;
  shared_.clients[work.client.index()].listener->on_work_started(work.cookie, id, now);
  updating_ = false;
  if (needs_update_) return update(now);
  scheduled_ = now + solo;
  engine_.schedule(entity_, scheduled_);
}

void Gpu::Model::end_alone(SimTime now) {
  const WorkId id = std::exchange(alone_, std::nullopt)->work;
  const Work& work = shared_.works[id].work;
  const std::uint64_t capacity = std::uint64_t{work.profile->residency.blocks_per_sm} *
                                 shared_.spec.sm_count;
  if (work.solo > Duration::zero()) {
    const double waves = Waves::count(work.profile->blocks, capacity);
    shared_.usage.add_sm_ns(work.client,
                            block_units(work) / waves / work.profile->residency.blocks_per_sm);
  }
  contexts_.front().pass_alone(work.client, now);
  updating_ = true;
  needs_update_ = false;
  tell_finished(id, now);
  updating_ = false;
  if (needs_update_) update(now);
}

// Hands the kernel to its context, since another kernel comes or a setting changes.
void Gpu::Model::leave_alone() {
  if (!alone_) return;
  const Alone alone = *std::exchange(alone_, std::nullopt);
  contexts_.front().take_over(alone.work, alone.since);
}

double Gpu::Model::alone_sm_ns(ClientId client, SimTime now) const {
  const WorkState& state = shared_.works[alone_->work];
  if (state.work.client != client) return 0;
  const program::KernelProfile& profile = *state.work.profile;
  Waves waves;
  waves.start(state.work.solo, profile.blocks,
              std::uint64_t{profile.residency.blocks_per_sm} * shared_.spec.sm_count);
  waves.place(waves.full_wave());
  const Refill refill = waves.unplaced() > 0 ? Refill::kSelf : Refill::kNone;
  return waves.pass(now - alone_->since, refill).block_ns / profile.residency.blocks_per_sm;
}

}  // namespace bubblesim::gpu
