// A kernel that is submitted while no other waits, and that fits beside the resident ones, begins
// at once, without a queue. A kernel that ends while no other waits just leaves. Most kernels of
// two clients are of this kind. All figures and the order of all calls are the same as if the
// kernels had been queued, settled and placed (tests/laws/gpu).
#include "sim/gpu/gpu_model.hpp"

namespace bubblesim::gpu {

// False: the kernel does not begin at once. Its waves have been started; queue() starts them anew.
bool Gpu::Model::begin_beside(WorkId id, SimTime now) {
  WorkState& state = shared_.works[id];
  const Work& work = state.work;  // dangling once the listener has submitted
  if (updating_ || !one_context() || !transfers_.idle()) return false;
  if (work.kind != program::WorkKind::kKernel || work.most_blocks > 0) return false;
  if (work.profile == nullptr || work.profile->blocks == 0) return false;
  const std::uint64_t full = std::uint64_t{work.profile->residency.blocks_per_sm} *
                             shared_.spec.sm_count;
  if (work.profile->blocks > full) return false;
  state.waves.start(work.solo, work.profile->blocks, full);
  if (!contexts_.front().begin_beside(id, now)) return false;
  updating_ = true;
  needs_update_ = false;
  shared_.clients[work.client.index()].listener->on_work_started(work.cookie, id, now);
  end_call(now);
  return true;
}

// After a listener's call that was not made by an update.
void Gpu::Model::end_call(SimTime now) {
  updating_ = false;
  if (needs_update_) return update(now);
  reschedule(now);
}

// False: another event is due now, and nothing was done. Precondition: one_context().
bool Gpu::Model::end_beside(SimTime now) {
  if (!transfers_.idle()) return false;
  const std::optional<WorkId> ended = contexts_.front().end_one(now);
  if (!ended) return false;
  updating_ = true;
  needs_update_ = false;
  tell_finished(*ended, now);
  end_call(now);
  return true;
}

}  // namespace bubblesim::gpu
