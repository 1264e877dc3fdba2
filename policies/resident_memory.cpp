#include "policies/resident_memory.hpp"

#include <algorithm>

namespace bubblesim::policies {
namespace {

Bytes left_of(Bytes all, Bytes part) { return {all.value - std::min(all.value, part.value)}; }

}  // namespace

void ResidentMemory::start(const policy::GpuInfo& gpu, std::span<const policy::ClientInfo> clients,
                           Bytes reserve) {
  needed_.assign(clients.size(), std::nullopt);
  resident_.assign(clients.size(), std::nullopt);
  for (const policy::ClientInfo& client : clients) {
    if (client.memory_known) needed_[client.id.index()] = client.memory;
  }
  known_ = gpu.memory != Bytes{} && needed_[0].has_value();
  if (!known_) return;
  resident_[0] = needed_[0];
  const Bytes largest = left_of(gpu.memory, reserve);
  room_ = left_of(largest, *needed_[0]);
  for (std::size_t id = 1; id < needed_.size(); ++id) {
    if (needed_[id] && *needed_[id] > largest) needed_[id] = Bytes{};  // never admitted
  }
  distribute();
}

std::optional<Bytes> ResidentMemory::resident_of(ClientId client) const {
  return resident_[client.index()];
}

void ResidentMemory::remove(ClientId client) {
  if (!known_) return;
  needed_[client.index()] = Bytes{};
  distribute();
}

void ResidentMemory::distribute() {
  Bytes room = room_;
  for (std::size_t id = 1; id < needed_.size(); ++id) {
    if (!needed_[id]) continue;
    const Bytes resident = std::min(*needed_[id], room);
    resident_[id] = resident;
    room = left_of(room, resident);
  }
}

}  // namespace bubblesim::policies
