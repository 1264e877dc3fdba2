// How much of each client's memory is on the device if fillers may allocate more than fits (TGS:
// unified memory; AntMan: host memory behind its allocator). The protected client is fully
// resident; fillers, in client order, get what it and a reserve leave; the rest is behind the host
// link.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "sim/policy/policy.hpp"

namespace bubblesim::policies {

class ResidentMemory {
 public:
  void start(const policy::GpuInfo& gpu, std::span<const policy::ClientInfo> clients,
             Bytes reserve);
  /// Nothing: not known.
  [[nodiscard]] std::optional<Bytes> resident_of(ClientId client) const;
  /// A filler has ended: those after it may have its room.
  void remove(ClientId client);

 private:
  void distribute();

  Bytes room_;  ///< for all fillers
  bool known_ = false;
  std::vector<std::optional<Bytes>> needed_;
  std::vector<std::optional<Bytes>> resident_;
};

}  // namespace bubblesim::policies
