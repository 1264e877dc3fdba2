#include "traces/import/nsys_target.hpp"

#include <fmt/format.h>

#include <array>
#include <filesystem>
#include <map>
#include <tuple>
#include <utility>

#include "traces/import/nsys_counters.hpp"

namespace bubblesim::traces::nsys {
namespace {

// ---- GPUs

struct Gpu {
  std::int64_t id = 0;
  std::optional<std::int64_t> cuda_device;
  DeviceInfo info;
};

/// A value of a row that must fit 32 bits, else 0.
std::uint32_t small(std::optional<std::int64_t> value) {
  return value && *value >= 0 && *value <= INT32_MAX ? static_cast<std::uint32_t>(*value) : 0;
}

std::vector<Gpu> read_gpus(NsysSession& session) {
  static constexpr std::array<std::string_view, 7> kColumns{
      "id", "name", "smCount", "computeMajor", "computeMinor", "totalMemory", "cuDevice"};
  Rows rows(session.database, "TARGET_INFO_GPU", kColumns);
  std::vector<Gpu> gpus;
  while (rows.next() && gpus.size() < kMaxRanks) {
    Gpu gpu;
    gpu.id = rows.integer(0).value_or(static_cast<std::int64_t>(gpus.size()));
    gpu.cuda_device = rows.integer(6);
    gpu.info.name = session.clean(rows.text(1).value_or("").substr(0, 256));
    gpu.info.sm_count = small(rows.integer(2));
    gpu.info.compute_major = small(rows.integer(3));
    gpu.info.compute_minor = small(rows.integer(4));
    gpu.info.memory_bytes =
        static_cast<std::uint64_t>(std::max<std::int64_t>(0, rows.integer(5).value_or(0)));
    gpus.push_back(std::move(gpu));
  }
  session.finish(rows);
  return gpus;
}

/// Which GPU a process calls which number, where the export says.
std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t> read_numbering(NsysSession& session) {
  static constexpr std::array<std::string_view, 3> kColumns{"pid", "cudaId", "gpuId"};
  Rows rows(session.database, "TARGET_INFO_CUDA_DEVICE", kColumns);
  std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t> numbering;
  while (rows.next()) {
    const auto device = rows.integer(1);
    const auto gpu = rows.integer(2);
    if (device && gpu) numbering.try_emplace({rows.integer(0).value_or(0), *device}, *gpu);
  }
  session.finish(rows);
  return numbering;
}

template <class Matches>
const Gpu* find_gpu(const std::vector<Gpu>& gpus, Matches matches) {
  for (const Gpu& gpu : gpus) {
    if (matches(gpu)) return &gpu;
  }
  return nullptr;
}

// ---- Streams and threads

void set_stream_kinds(NsysSession& session, RankSet& set) {
  // The table names a stream by process, context and number.
  using Key = std::tuple<std::int64_t, std::int64_t, std::int64_t>;
  static constexpr std::array<std::string_view, 5> kColumns{"processId", "contextId", "streamId",
                                                            "priority", "flag"};
  Rows rows(session.database, "TARGET_INFO_CUDA_STREAM", kColumns);
  std::map<Key, std::pair<std::int32_t, StreamKind>> known;
  while (rows.next()) {
    const auto stream = rows.integer(2);
    if (!stream) continue;
    // Written as an unsigned number of 32 bits: 4294967291 is -5.
    const auto priority = static_cast<std::uint32_t>(rows.integer(3).value_or(0));
    known.try_emplace({rows.integer(0).value_or(0), rows.integer(1).value_or(0), *stream},
                      static_cast<std::int32_t>(priority),
                      stream_kind(static_cast<std::uint64_t>(rows.integer(4).value_or(0))));
  }
  session.finish(rows);
  for (NsysRankBuilder& rank : set.ranks) {
    for (const auto& [key, id] : rank.streams()) {
      const auto found =
          known.find({system_process(rank.process), std::get<1>(key), std::get<2>(key)});
      if (found == known.end()) continue;
      Stream& stream = rank.trace.streams[id.index()];
      std::tie(stream.priority, stream.kind) = found->second;
    }
  }
}

void name_threads(NsysSession& session, RankSet& set) {
  static constexpr std::array<std::string_view, 2> kColumns{"globalTid", "nameId"};
  Rows rows(session.database, "ThreadNames", kColumns);
  while (rows.next()) {
    const auto tid = rows.integer(0);
    const Process* owner = tid ? set.process(tid) : nullptr;
    if (owner == nullptr) continue;
    for (const std::uint32_t place : set.ranks_with_threads(*owner)) {
      NsysRankBuilder& rank = set.ranks[place];
      const auto thread = rank.known_thread(thread_of(*tid));
      if (thread) rank.trace.threads[thread->index()].name = session.name(rows.integer(1));
    }
  }
  session.finish(rows);
}

std::map<std::int64_t, std::string> process_names(NsysSession& session) {
  static constexpr std::array<std::string_view, 2> kColumns{"globalPid", "name"};
  Rows rows(session.database, "PROCESSES", kColumns);
  std::map<std::int64_t, std::string> names;
  while (rows.next()) {
    const auto id = rows.integer(0);
    if (id) names.try_emplace(*id, session.clean(rows.text(1).value_or("").substr(0, 256)));
  }
  session.finish(rows);
  return names;
}

}  // namespace

void describe_devices(NsysSession& session, RankSet& set) {
  const std::vector<Gpu> gpus = read_gpus(session);
  const auto numbering = read_numbering(session);
  for (NsysRankBuilder& rank : set.ranks) {
    const std::int64_t device = rank.device;
    const auto number = numbering.find({system_process(rank.process), device});
    const Gpu* gpu = nullptr;
    if (number != numbering.end()) {
      gpu = find_gpu(gpus, [&](const Gpu& candidate) { return candidate.id == number->second; });
    }
    if (gpu == nullptr) {
      gpu = find_gpu(gpus, [&](const Gpu& candidate) { return candidate.cuda_device == device; });
    }
    if (gpu == nullptr)
      gpu = find_gpu(gpus, [&](const Gpu& candidate) { return candidate.id == device; });
    if (gpu == nullptr) session.count(kDeviceUnknown);
    else rank.trace.device = gpu->info;
  }
}

void describe_ranks(NsysSession& session, RankSet& set) {
  set_stream_kinds(session, set);
  name_threads(session, set);
  const auto names = process_names(session);
  for (NsysRankBuilder& rank : set.ranks) {
    Provenance& from = rank.trace.provenance;
    from.source = std::filesystem::path(session.database.source()).filename().string();
    from.format = "nsys";
    from.tool = session.product;
    const auto name = names.find(rank.process);
    from.note = fmt::format("process {}{}, GPU {}", system_process(rank.process),
                            name == names.end() ? "" : " (" + name->second + ")", rank.device);
  }
}

}  // namespace bubblesim::traces::nsys
