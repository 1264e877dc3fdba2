// Kernels, copies, memsets and graphs of an export become device operations.
#include <algorithm>
#include <array>
#include <string>
#include <unordered_set>
#include <vector>

#include "traces/import/nsys_session.hpp"
#include "traces/import/nsys_target.hpp"
#include "traces/launch_shapes.hpp"

namespace bubblesim::traces::nsys {
namespace {

/// The columns that all of these tables have come first.
enum Common : std::size_t { kStart, kEnd, kDevice, kContext, kStream, kCorrelation, kPid, kOwn };
#define BUBBLESIM_NSYS_COMMON \
  "start", "end", "deviceId", "contextId", "streamId", "correlationId", "globalPid"

enum KernelColumn : std::size_t {
  kDemangled = kOwn, kShort, kMangled, kRegisters, kGridX, kGridY, kGridZ, kBlockX, kBlockY,
  kBlockZ, kStatic, kDynamic
};
const Columns kKernelColumns{
    BUBBLESIM_NSYS_COMMON, "demangledName", "shortName", "mangledName", "registersPerThread",
    "gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ", "staticSharedMemory",
    "dynamicSharedMemory"};

enum CopyColumn : std::size_t { kCopyBytes = kOwn, kCopyKind, kSourceKind, kTargetKind };
const Columns kCopyColumns{
    BUBBLESIM_NSYS_COMMON, "bytes", "copyKind", "srcKind", "dstKind"};

enum MemsetColumn : std::size_t { kSetBytes = kOwn, kSetKind };
const Columns kMemsetColumns{BUBBLESIM_NSYS_COMMON, "bytes",
                                                         "memKind"};

enum GraphColumn : std::size_t { kGraph = kOwn };
const Columns kGraphColumns{BUBBLESIM_NSYS_COMMON, "graphId"};
#undef BUBBLESIM_NSYS_COMMON

/// ENUM_CUDA_MEMCPY_OPER: "HtoD" and so on as PyTorch's profiler names them.
struct CopyName {
  std::string_view name;
  CopyDirection direction;
};
constexpr std::array<CopyName, 14> kCopyNames{{
    {"Unknown", CopyDirection::kNone},        {"HtoD", CopyDirection::kHostToDevice},
    {"DtoH", CopyDirection::kDeviceToHost},   {"HtoA", CopyDirection::kHostToDevice},
    {"AtoH", CopyDirection::kDeviceToHost},   {"AtoA", CopyDirection::kDeviceToDevice},
    {"AtoD", CopyDirection::kDeviceToDevice}, {"DtoA", CopyDirection::kDeviceToDevice},
    {"DtoD", CopyDirection::kDeviceToDevice}, {"HtoH", CopyDirection::kHostToHost},
    {"PtoP", CopyDirection::kPeerToPeer},     {"UVM HtoD", CopyDirection::kHostToDevice},
    {"UVM DtoH", CopyDirection::kDeviceToHost}, {"UVM DtoD", CopyDirection::kDeviceToDevice},
}};

/// ENUM_CUDA_MEM_KIND.
constexpr std::array<std::string_view, 8> kMemoryNames{
    "Pageable", "Pinned", "Device", "Array", "Managed", "Device Static", "Managed Static",
    "Unknown"};

std::string_view memory_name(std::optional<std::int64_t> kind) {
  const auto size = static_cast<std::int64_t>(kMemoryNames.size());
  return kMemoryNames[kind && *kind >= 0 && *kind < size ? static_cast<std::size_t>(*kind)
                                                         : kMemoryNames.size() - 1];
}

/// A value of a row that must fit `max`, else 0.
std::uint64_t amount(const Rows& rows, std::size_t column, std::uint64_t max) {
  const auto value = rows.integer(column);
  if (!value || *value < 0) return 0;
  const auto given = static_cast<std::uint64_t>(*value);
  return given <= max ? given : 0;
}

constexpr std::uint64_t kMax32 = (std::uint64_t{1} << 31U) - 1;

void note_context(Process& owner, std::int64_t context, std::uint32_t device) {
  const auto [place, fresh] = owner.device_of_context.try_emplace(context, device);
  if (!fresh && place->second != device) place->second = kNone;
}

/// Reads what the tables share; nothing where the row is of no use.
std::optional<DeviceOp> common(NsysSession& session, RankSet& set, const Rows& rows,
                               NsysRankBuilder*& rank) {
  const auto span = session.span(rows.integer(kStart), rows.integer(kEnd));
  const auto device = rows.integer(kDevice);
  const auto stream = rows.integer(kStream);
  if (!span || !device || *device < 0 || *device > kMaxDevice || !stream || *stream < 0) {
    session.count(kBadRows);
    return std::nullopt;
  }
  if (rows.integer(kStart) == 0 && rows.integer(kEnd) == 0) {
    session.count(kZeroTime);
    return std::nullopt;
  }
  const auto device_id = static_cast<std::uint32_t>(*device);
  rank = set.of_device(rows.integer(kPid), device_id);
  if (rank == nullptr) {
    session.count(kOtherProcesses);
    return std::nullopt;
  }
  if (rank->device != device_id) session.count(kOtherDevices);
  DeviceOp op;
  op.start = span->start;
  op.duration = span->duration;
  op.correlation = amount(rows, kCorrelation, kMaxTime);
  const auto context = rows.integer(kContext);
  op.stream = rank->stream(device_id, context.value_or(0), *stream);
  if (context) note_context(*set.process(rank->process), *context, device_id);
  return op;
}

void add(RankSet& set, NsysRankBuilder& rank, const DeviceOp& op) {
  Process& owner = *set.process(rank.process);
  if (owner.ranks.size() > 1 && op.correlation != 0) {
    owner.rank_of_correlation.try_emplace(
        op.correlation, static_cast<std::uint32_t>(&rank - set.ranks.data()));
  }
  rank.trace.device_ops.push_back(op);
}

template <class Fill>
void read_table(NsysSession& session, RankSet& set, std::string_view table,
                Columns columns, Fill fill) {
  session.each_row(table, columns, [&](const Rows& rows) {
    NsysRankBuilder* rank = nullptr;
    auto op = common(session, set, rows, rank);
    if (op && fill(rows, *rank, *op)) add(set, *rank, *op);
  });
}

LaunchShape shape_of(NsysSession& session, const Rows& rows) {
  LaunchShape shape;
  bool known = true;
  for (std::size_t i = 0; i < 3; ++i) {
    const auto grid = static_cast<std::uint32_t>(amount(rows, kGridX + i, kMax32));
    const auto block = static_cast<std::uint32_t>(amount(rows, kBlockX + i, 65535));
    known = known && grid > 0 && block > 0;
    shape.grid[i] = std::max(1U, grid);
    shape.block[i] = std::max(1U, block);
  }
  if (!known) {
    session.count(kBadShape);
    return kUnknownShape;
  }
  shape.registers_per_thread = static_cast<std::uint16_t>(amount(rows, kRegisters, 65535));
  shape.shared_memory_bytes = static_cast<std::uint32_t>(amount(rows, kStatic, kMax32) +
                                                         amount(rows, kDynamic, kMax32));
  return shape;
}

void read_kernels(NsysSession& session, RankSet& set) {
  read_table(session, set, "CUPTI_ACTIVITY_KIND_KERNEL", kKernelColumns,
             [&session](const Rows& rows, NsysRankBuilder& rank, DeviceOp& op) {
               auto name = rows.integer(kDemangled);
               if (!name) name = rows.integer(kShort);
               if (!name) name = rows.integer(kMangled);
               op.name = rank.name(session, name);
               op.kind = DeviceOpKind::kKernel;
               op.shape = rank.trace.shapes.intern(shape_of(session, rows));
               return true;
             });
}

void read_copies(NsysSession& session, RankSet& set) {
  read_table(session, set, "CUPTI_ACTIVITY_KIND_MEMCPY", kCopyColumns,
             [](const Rows& rows, NsysRankBuilder& rank, DeviceOp& op) {
               const CopyName& copy =
                   kCopyNames[amount(rows, kCopyKind, kCopyNames.size() - 1)];
               std::string name = "Memcpy " + std::string(copy.name);
               if (rows.integer(kSourceKind) && rows.integer(kTargetKind)) {
                 name += " (" + std::string(memory_name(rows.integer(kSourceKind))) + " -> " +
                         std::string(memory_name(rows.integer(kTargetKind))) + ")";
               }
               op.name = rank.trace.names.intern(name);
               op.kind = DeviceOpKind::kCopy;
               op.direction = copy.direction;
               op.bytes = amount(rows, kCopyBytes, kMaxBytes);
               return true;
             });
}

void read_memsets(NsysSession& session, RankSet& set) {
  read_table(session, set, "CUPTI_ACTIVITY_KIND_MEMSET", kMemsetColumns,
             [](const Rows& rows, NsysRankBuilder& rank, DeviceOp& op) {
               const auto kind = rows.integer(kSetKind);
               op.name = rank.trace.names.intern(
                   kind ? "Memset (" + std::string(memory_name(kind)) + ")" : "Memset");
               op.kind = DeviceOpKind::kMemset;
               op.bytes = amount(rows, kSetBytes, kMaxBytes);
               return true;
             });
}

/// A whole graph, where its kernels were not recorded.
void read_graphs(NsysSession& session, RankSet& set) {
  if (!session.database.has_table("CUPTI_ACTIVITY_KIND_GRAPH_TRACE")) return;
  std::vector<std::unordered_set<std::uint64_t>> launched(set.ranks.size());
  for (std::size_t i = 0; i < set.ranks.size(); ++i) {
    for (const DeviceOp& op : set.ranks[i].trace.device_ops) launched[i].insert(op.correlation);
  }
  read_table(session, set, "CUPTI_ACTIVITY_KIND_GRAPH_TRACE", kGraphColumns,
             [&](const Rows& rows, NsysRankBuilder& rank, DeviceOp& op) {
               const auto place = static_cast<std::size_t>(&rank - set.ranks.data());
               if (op.correlation != 0 && launched[place].contains(op.correlation)) {
                 session.count(kGraphsTwice);
                 return false;
               }
               session.count(kGraphOps);
               op.name = rank.trace.names.intern(
                   "CUDA graph " + std::to_string(amount(rows, kGraph, kMaxTime)));
               op.kind = DeviceOpKind::kKernel;
               op.shape = rank.trace.shapes.intern(kUnknownShape);
               return true;
             });
}

}  // namespace

void read_device_ops(NsysSession& session, RankSet& set) {
  read_kernels(session, set);
  read_copies(session, set);
  read_memsets(session, set);
  read_graphs(session, set);
}

}  // namespace bubblesim::traces::nsys
