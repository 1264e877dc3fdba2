#include "sim/gpu/usage.hpp"

namespace bubblesim::gpu {

void Usage::begin(ClientId client, WorkKind kind, SimTime now) {
  clients_[client.index()].busy.begin(now);
  any_.begin(now);
  if (kind != WorkKind::kCollective) any_but_collectives_.begin(now);
}

void Usage::end(ClientId client, WorkKind kind, SimTime now) {
  clients_[client.index()].busy.end(now);
  any_.end(now);
  if (kind != WorkKind::kCollective) any_but_collectives_.end(now);
}

void Usage::count(ClientId client, WorkKind kind) {
  Client& of = clients_[client.index()];
  switch (kind) {
    case WorkKind::kKernel:
    case WorkKind::kCollective: ++of.kernels; break;
    case WorkKind::kCopy: ++of.copies; break;
    case WorkKind::kMemset: break;
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
