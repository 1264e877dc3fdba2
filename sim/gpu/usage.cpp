#include "sim/gpu/usage.hpp"

namespace bubblesim::gpu {

void Usage::begin(ClientId client, program::WorkKind kind, SimTime now) {
  clients_[client.index()].busy.begin(now);
  busy_.begin(now);
  if (kind != program::WorkKind::kCollective) busy_without_collectives_.begin(now);
}

void Usage::end(ClientId client, program::WorkKind kind, SimTime now) {
  clients_[client.index()].busy.end(now);
  busy_.end(now);
  if (kind != program::WorkKind::kCollective) busy_without_collectives_.end(now);
}

void Usage::count(ClientId client, program::WorkKind kind) {
  Client& used = clients_[client.index()];
  switch (kind) {
    case program::WorkKind::kKernel:
    case program::WorkKind::kCollective: ++used.kernels; break;
    case program::WorkKind::kCopy: ++used.copies; break;
    case program::WorkKind::kMemset: break;
  }
}

ClientUsage Usage::usage_of(ClientId client, SimTime now) const {
  const Client& used = clients_[client.index()];
  return {.sm_seconds = used.sm_ns * 1e-9,
          .busy = used.busy.total(now),
          .kernels = used.kernels,
          .copies = used.copies,
          .resets = used.resets};
}

}  // namespace bubblesim::gpu
