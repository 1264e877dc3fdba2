#include "traces/import/nsys_target.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fmt/format.h>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "sim/base/number_text.hpp"

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
  std::vector<Gpu> gpus;
  const auto read = [&](const Rows& rows) {
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
  };
  session.each_row(
      "TARGET_INFO_GPU",
      {"id", "name", "smCount", "computeMajor", "computeMinor", "totalMemory", "cuDevice"}, read,
      kMaxRanks);
  return gpus;
}

/// Which GPU a process calls which number, where the export says.
std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t> read_numbering(NsysSession& session) {
  std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t> numbering;
  session.each_row("TARGET_INFO_CUDA_DEVICE", {"pid", "cudaId", "gpuId"}, [&](const Rows& rows) {
    const auto device = rows.integer(1);
    const auto gpu = rows.integer(2);
    if (device && gpu) numbering.try_emplace({rows.integer(0).value_or(0), *device}, *gpu);
  });
  return numbering;
}

// ---- Streams and threads

void set_stream_kinds(NsysSession& session, RankSet& set) {
  // The table names a stream by process, context and number.
  using Key = std::tuple<std::int64_t, std::int64_t, std::int64_t>;
  std::map<Key, std::pair<std::int32_t, StreamKind>> known;
  const auto read = [&known](const Rows& rows) {
    const auto stream = rows.integer(2);
    if (!stream) return;
    // Written as an unsigned number of 32 bits: 4294967291 is -5.
    const auto priority = static_cast<std::uint32_t>(rows.integer(3).value_or(0));
    known.try_emplace({rows.integer(0).value_or(0), rows.integer(1).value_or(0), *stream},
                      static_cast<std::int32_t>(priority),
                      stream_kind(static_cast<std::uint64_t>(rows.integer(4).value_or(0))));
  };
  session.each_row("TARGET_INFO_CUDA_STREAM",
                   {"processId", "contextId", "streamId", "priority", "flag"}, read);
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
  session.each_row("ThreadNames", {"globalTid", "nameId"}, [&](const Rows& rows) {
    const auto tid = rows.integer(0);
    const Process* owner = tid ? set.process(tid) : nullptr;
    if (owner == nullptr) return;
    for (const std::uint32_t place : set.ranks_with_threads(*owner)) {
      NsysRankBuilder& rank = set.ranks[place];
      const auto thread = rank.known_thread(thread_of(*tid));
      if (thread) rank.trace.threads[thread->index()].name = session.name(rows.integer(1));
    }
  });
}

std::map<std::int64_t, std::string> process_names(NsysSession& session) {
  std::map<std::int64_t, std::string> names;
  session.each_row("PROCESSES", {"globalPid", "name"}, [&](const Rows& rows) {
    const auto id = rows.integer(0);
    if (id) names.try_emplace(*id, session.clean(rows.text(1).value_or("").substr(0, 256)));
  });
  return names;
}

}  // namespace

void describe_devices(NsysSession& session, RankSet& set) {
  const std::vector<Gpu> gpus = read_gpus(session);
  const auto numbering = read_numbering(session);
  for (NsysRankBuilder& rank : set.ranks) {
    const std::int64_t device = rank.device;
    const auto number = numbering.find({system_process(rank.process), device});
    auto gpu = gpus.end();
    if (number != numbering.end()) gpu = std::ranges::find(gpus, number->second, &Gpu::id);
    if (gpu == gpus.end()) {
      gpu = std::ranges::find(gpus, std::optional(device), &Gpu::cuda_device);
    }
    if (gpu == gpus.end()) gpu = std::ranges::find(gpus, device, &Gpu::id);
    if (gpu == gpus.end()) session.count(kDeviceUnknown);
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

// Which rank of the job a process and GPU is: what MPI, NCCL and launchers left in an export.

namespace {

constexpr std::uint32_t kMaxWorld = 1U << 24U;

/// The numbers if all ranks of the set, which has some, have one and no two the same.
std::optional<RankNumbers> complete(const std::vector<std::optional<std::uint32_t>>& found,
                                    std::uint32_t world) {
  RankNumbers numbers;
  std::set<std::uint32_t> seen;
  for (const auto& rank : found) {
    if (!rank || !seen.insert(*rank).second) return std::nullopt;
    numbers.ranks.push_back(*rank);
  }
  numbers.world_size = std::max(world, *seen.rbegin() + 1);
  numbers.recorded = true;
  return numbers;
}

std::optional<RankNumbers> from_mpi(NsysSession& session, RankSet& set) {
  std::map<std::int64_t, std::uint32_t> by_process;
  session.each_row("MPI_RANKS", {"globalTid", "rank"}, [&by_process](const Rows& rows) {
    const auto tid = rows.integer(0);
    const auto rank = rows.integer(1);
    if (!tid || !rank || *rank < 0 || *rank >= kMaxWorld) return;
    by_process.try_emplace(process_of(*tid), static_cast<std::uint32_t>(*rank));
  });
  std::vector<std::optional<std::uint32_t>> found;
  for (const NsysRankBuilder& rank : set.ranks) {
    const auto known = by_process.find(rank.process);
    found.push_back(known == by_process.end() ? std::nullopt : std::optional(known->second));
  }
  std::uint32_t world = 1;
  session.each_row("MPI_COMMUNICATORS", {"size"}, [&world](const Rows& rows) {
    const std::int64_t size = rows.integer(0).value_or(0);
    if (size > 0 && size <= kMaxWorld) world = std::max(world, static_cast<std::uint32_t>(size));
  });
  return complete(found, world);
}

/// The largest communicator of a process; of a process with several GPUs, that of the GPU.
const NvtxCommunicator* largest(const std::vector<NvtxCommunicator>& all,
                                const NsysRankBuilder& rank, bool by_device) {
  const NvtxCommunicator* best = nullptr;
  for (const NvtxCommunicator& communicator : all) {
    if (by_device && (!communicator.has_device || communicator.device != rank.device)) continue;
    if (best == nullptr || communicator.size > best->size) best = &communicator;
  }
  return best;
}

std::optional<RankNumbers> from_nccl(RankSet& set, const Communicators& communicators) {
  std::vector<std::optional<std::uint32_t>> found;
  std::uint32_t world = 0;
  for (const NsysRankBuilder& rank : set.ranks) {
    const auto known = communicators.find(rank.process);
    if (known == communicators.end()) return std::nullopt;
    const Process& owner = *set.process(rank.process);
    const NvtxCommunicator* best = largest(known->second, rank, owner.ranks.size() > 1);
    // Numbers of communicators of different sizes are not those of one job.
    if (best == nullptr || (world != 0 && best->size != world)) return std::nullopt;
    world = best->size;
    found.emplace_back(best->rank);
  }
  return complete(found, world);
}

using Environment = std::map<std::string, std::string, std::less<>>;

/// "NAME=value"; the value perhaps in quotes.
void add_variable(std::string_view text, Environment& out) {
  const std::size_t equals = text.find('=');
  if (equals == std::string_view::npos || equals > 64) return;
  std::string_view value = text.substr(equals + 1);
  if (value.size() >= 2 && value.front() == '"' && value.back() == '"') {
    value = value.substr(1, value.size() - 2);
  }
  if (value.size() <= 20) out.try_emplace(std::string(text.substr(0, equals)), value);
}

/// Reads the environments of the profiled program and of the shell that nsys ran in.
Environment read_environment(NsysSession& session) {
  Environment variables;
  session.each_row("META_DATA_CAPTURE", {"name", "value"}, [&variables](const Rows& rows) {
    if (!rows.text(0).value_or("").ends_with(":ENVIRONMENT_VARIABLE")) return;
    add_variable(rows.text(1).value_or(""), variables);
  });
  session.each_row("TARGET_INFO_SYSTEM_ENV", {"name", "value"}, [&variables](const Rows& rows) {
    if (rows.text(0) != "DeviceEnvironment") return;
    std::string_view all = rows.text(1).value_or("");
    while (!all.empty()) {
      const std::size_t end = std::min(all.find(';'), all.size());
      add_variable(all.substr(0, end), variables);
      all.remove_prefix(std::min(end + 1, all.size()));
    }
  });
  return variables;
}

std::optional<std::uint32_t> number(const Environment& variables, std::string_view name) {
  const auto found = variables.find(name);
  if (found == variables.end()) return std::nullopt;
  const auto value = parse_number<std::uint32_t>(found->second);
  return value && *value <= kMaxWorld ? value : std::nullopt;
}

/// Launchers that name rank and size, the innermost first.
constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kLaunchers{{
    {"RANK", "WORLD_SIZE"},
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
    {"PMI_RANK", "PMI_SIZE"},
    {"SLURM_PROCID", "SLURM_NTASKS"},
}};

std::optional<RankNumbers> from_environment(NsysSession& session, const RankSet& set) {
  // The environment is that of one program: it cannot tell several ranks apart.
  if (set.ranks.size() != 1) return std::nullopt;
  const Environment variables = read_environment(session);
  for (const auto& [rank_name, size_name] : kLaunchers) {
    const auto rank = number(variables, rank_name);
    const auto size = number(variables, size_name);
    if (!rank || !size || *rank >= *size) continue;
    return complete({*rank}, *size);
  }
  return std::nullopt;
}

}  // namespace

RankNumbers find_ranks(NsysSession& session, RankSet& set, const Communicators& communicators) {
  const std::uint64_t ranks = set.ranks.size();
  if (auto numbers = from_mpi(session, set)) {
    session.count(kRankFromMpi, ranks);
    return *numbers;
  }
  if (auto numbers = from_nccl(set, communicators)) {
    session.count(kRankFromNccl, ranks);
    return *numbers;
  }
  if (auto numbers = from_environment(session, set)) {
    session.count(kRankFromEnvironment, ranks);
    return *numbers;
  }
  RankNumbers numbers;
  for (std::uint32_t i = 0; i < ranks; ++i) numbers.ranks.push_back(i);
  numbers.world_size = static_cast<std::uint32_t>(ranks);
  return numbers;
}

}  // namespace bubblesim::traces::nsys
