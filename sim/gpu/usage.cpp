#include "sim/gpu/usage.hpp"

namespace bubblesim::gpu {

void Usage::begin(ClientId client, program::WorkKind kind, SimTime now) {
  clients_[client.index()].busy.begin(now);
  any_.begin(now);
  if (kind != program::WorkKind::kCollective) any_but_collectives_.begin(now);
}

void Usage::end(ClientId client, program::WorkKind kind, SimTime now) {
  clients_[client.index()].busy.end(now);
  any_.end(now);
  if (kind != program::WorkKind::kCollective) any_but_collectives_.end(now);
}

void Usage::count(ClientId client, program::WorkKind kind) {
  Client& of = clients_[client.index()];
  switch (kind) {
    case program::WorkKind::kKernel:
    case program::WorkKind::kCollective: ++of.kernels; break;
    case program::WorkKind::kCopy: ++of.copies; break;
    case program::WorkKind::kMemset: break;
  }
}

ClientUsage Usage::of(ClientId client, SimTime now) const {
  const Client& of = clients_[client.index()];
  return {.sm_seconds = of.sm_ns * 1e-9,
          .busy = of.busy.total(now),
          .kernels = of.kernels,
          .copies = of.copies,
          .resets = of.resets};
}

}  // namespace bubblesim::gpu
