// Which rank of the job a process and GPU is: what MPI, NCCL and launchers left in an export.
#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string>

#include "sim/base/number_text.hpp"
#include "traces/import/nsys_counters.hpp"
#include "traces/import/nsys_target.hpp"

namespace bubblesim::traces::nsys {
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
  static constexpr std::array<std::string_view, 2> kColumns{"globalTid", "rank"};
  static constexpr std::array<std::string_view, 1> kSize{"size"};
  Rows rows(session.database, "MPI_RANKS", kColumns);
  std::map<std::int64_t, std::uint32_t> by_process;
  while (rows.next()) {
    const auto tid = rows.integer(0);
    const auto rank = rows.integer(1);
    if (!tid || !rank || *rank < 0 || *rank >= kMaxWorld) continue;
    by_process.try_emplace(process_of(*tid), static_cast<std::uint32_t>(*rank));
  }
  session.finish(rows);
  std::vector<std::optional<std::uint32_t>> found;
  for (const NsysRankBuilder& rank : set.ranks) {
    const auto known = by_process.find(rank.process);
    found.push_back(known == by_process.end() ? std::nullopt : std::optional(known->second));
  }
  std::uint32_t world = 1;
  Rows sizes(session.database, "MPI_COMMUNICATORS", kSize);
  while (sizes.next()) {
    const std::int64_t size = sizes.integer(0).value_or(0);
    if (size > 0 && size <= kMaxWorld) world = std::max(world, static_cast<std::uint32_t>(size));
  }
  session.finish(sizes);
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

/// Of the profiled program as nsys started it, and of the shell that nsys ran in.
Environment read_environment(NsysSession& session) {
  static constexpr std::array<std::string_view, 2> kColumns{"name", "value"};
  Environment variables;
  Rows capture(session.database, "META_DATA_CAPTURE", kColumns);
  while (capture.next()) {
    if (!capture.text(0).value_or("").ends_with(":ENVIRONMENT_VARIABLE")) continue;
    add_variable(capture.text(1).value_or(""), variables);
  }
  session.finish(capture);
  Rows system(session.database, "TARGET_INFO_SYSTEM_ENV", kColumns);
  while (system.next()) {
    if (system.text(0) != "DeviceEnvironment") continue;
    std::string_view all = system.text(1).value_or("");
    while (!all.empty()) {
      const std::size_t end = std::min(all.find(';'), all.size());
      add_variable(all.substr(0, end), variables);
      all.remove_prefix(std::min(end + 1, all.size()));
    }
  }
  session.finish(system);
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
