// Tables by name, kind and direction.
#include "traces/inspect/operation_use.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace bubblesim::traces {
namespace {

using KernelKey = std::pair<std::string, DeviceOpKind>;

template <class Use>
void add_bytes(Use& use, std::uint64_t bytes) {
  use.bytes += bytes;
  use.without_bytes += bytes == 0 ? 1 : 0;
}

/// Most time first, ties by key: the order of the map.
template <class Map>
auto by_time(Map&& uses) {
  std::vector<typename std::decay_t<Map>::mapped_type> list;
  list.reserve(uses.size());
  for (auto& [key, use] : uses) list.push_back(std::move(use));
  std::stable_sort(list.begin(), list.end(),
                   [](const auto& a, const auto& b) { return a.total > b.total; });
  return list;
}

CollectiveKind kind_of(const RankTrace& rank, const DeviceOp& op) {
  if (op.collective >= rank.collectives.size()) return CollectiveKind::kUnknown;
  return rank.collectives[op.collective].kind;
}

std::uint64_t collective_bytes(const RankTrace& rank, const DeviceOp& op) {
  return op.collective < rank.collectives.size() ? rank.collectives[op.collective].bytes : 0;
}

void add_kernel(const RankTrace& rank, const DeviceOp& op,
                std::map<std::pair<NameId, DeviceOpKind>, KernelUse>& kernels) {
  KernelUse& use = kernels[{op.name, op.kind}];
  if (use.count == 0) {
    use.kind = op.kind;
    if (op.name.index() < rank.names.size()) use.name = rank.names[op.name];
  }
  ++use.count;
  use.total += op.duration;
}

void add_collective(const RankTrace& rank, const DeviceOp& op,
                    std::map<CollectiveKind, CollectiveUse>& collectives) {
  const CollectiveKind kind = kind_of(rank, op);
  CollectiveUse& use = collectives[kind];
  use.kind = kind;
  ++use.count;
  use.total += op.duration;
  add_bytes(use, collective_bytes(rank, op));
}

void add_copy(const DeviceOp& op, std::map<CopyDirection, CopyUse>& copies) {
  CopyUse& use = copies[op.direction];
  use.direction = op.direction;
  ++use.count;
  use.total += op.duration;
  add_bytes(use, op.bytes);
}

template <class Key, class Use, class KeyOf>
void merge_list(std::vector<Use>& sums, const std::vector<Use>& others, KeyOf key_of) {
  std::map<Key, Use> merged;
  for (Use& use : sums) merged.emplace(key_of(use), std::move(use));
  for (const Use& use : others) {
    const auto [place, fresh] = merged.try_emplace(key_of(use), use);
    if (fresh) continue;
    place->second.count += use.count;
    place->second.total += use.total;
    if constexpr (requires { use.bytes; }) {
      place->second.bytes += use.bytes;
      place->second.without_bytes += use.without_bytes;
    }
  }
  sums = by_time(std::move(merged));
}

KernelKey kernel_key(const KernelUse& use) { return {use.name, use.kind}; }

}  // namespace

OperationUse operation_use(const RankTrace& rank) {
  std::map<std::pair<NameId, DeviceOpKind>, KernelUse> kernels;
  std::map<CollectiveKind, CollectiveUse> collectives;
  std::map<CopyDirection, CopyUse> copies;
  OperationUse sums;
  for (const DeviceOp& op : rank.device_ops) {
    ++sums.operations;
    sums.total += op.duration;
    switch (op.kind) {
      case DeviceOpKind::kCollective:
        add_collective(rank, op, collectives);
        [[fallthrough]];
      case DeviceOpKind::kKernel:
        add_kernel(rank, op, kernels);
        break;
      case DeviceOpKind::kCopy:
        add_copy(op, copies);
        break;
      case DeviceOpKind::kMemset:
        ++sums.memsets;
        sums.memset_bytes += op.bytes;
        break;
    }
  }
  merge_list<KernelKey>(sums.kernels, by_time(std::move(kernels)), kernel_key);
  sums.kernel_names = sums.kernels.size();
  sums.collectives = by_time(std::move(collectives));
  sums.copies = by_time(std::move(copies));
  return sums;
}

void merge_operations(OperationUse& sums, const OperationUse& other) {
  sums.operations += other.operations;
  sums.total += other.total;
  sums.memsets += other.memsets;
  sums.memset_bytes += other.memset_bytes;
  merge_list<KernelKey>(sums.kernels, other.kernels, kernel_key);
  merge_list<CollectiveKind>(sums.collectives, other.collectives,
                             [](const CollectiveUse& use) { return use.kind; });
  merge_list<CopyDirection>(sums.copies, other.copies,
                            [](const CopyUse& use) { return use.direction; });
  sums.kernel_names = sums.kernels.size();
}

void cut_kernels(OperationUse& sums, std::size_t count) {
  if (count > 0 && sums.kernels.size() > count) sums.kernels.resize(count);
}

MemoryUse memory_use(const RankTrace& rank) {
  MemoryUse use;
  use.samples = rank.memory.size();
  for (const MemorySample& sample : rank.memory) {
    use.allocated_high_water_bytes =
        std::max(use.allocated_high_water_bytes, sample.allocated_bytes);
    use.reserved_high_water_bytes = std::max(use.reserved_high_water_bytes, sample.reserved_bytes);
  }
  return use;
}

}  // namespace bubblesim::traces
