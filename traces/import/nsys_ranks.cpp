#include "traces/import/nsys_ranks.hpp"

#include <algorithm>
#include <array>
#include <cctype>

#include "traces/import/nsys_counters.hpp"
#include "traces/names/host_call_names.hpp"

namespace bubblesim::traces::nsys {
namespace {

struct Counts {
  std::uint64_t kernels = 0;
  std::uint64_t others = 0;
};
using Survey = std::map<std::pair<std::int64_t, std::uint32_t>, Counts>;

void count_table(NsysSession& session, std::string_view table, std::uint64_t Counts::*what,
                 Survey& found) {
  static constexpr std::array<std::string_view, 2> kColumns{"globalPid", "deviceId"};
  Rows rows(session.database, table, kColumns);
  std::uint64_t nameless = 0;
  while (rows.next() && found.size() <= 2 * kMaxRanks) {
    const auto pid = rows.integer(0);
    const auto device = rows.integer(1);
    if (!device || *device < 0 || *device > kMaxDevice) continue;
    nameless += pid ? 0 : 1;
    ++(found[{process_of(pid.value_or(0)), static_cast<std::uint32_t>(*device)}].*what);
  }
  session.count(kNoProcess, nameless);
}

/// "cudaLaunchKernel_v7000" is "cudaLaunchKernel"; "cuMemcpyDtoH_v2" is a name of its own.
std::string_view without_version(std::string_view name) {
  std::size_t digits = name.size();
  while (digits > 0 && std::isdigit(static_cast<unsigned char>(name[digits - 1])) != 0) --digits;
  const bool version = name.size() - digits >= 4 && digits >= 2 &&
                       name.substr(digits - 2, 2) == "_v";
  return version ? name.substr(0, digits - 2) : name;
}

}  // namespace

StreamId NsysRankBuilder::stream(std::uint32_t device_of, std::int64_t context, std::int64_t id) {
  const StreamId next{static_cast<std::uint32_t>(trace.streams.size())};
  const auto [place, fresh] = streams_.try_emplace({device_of, context, id}, next);
  if (fresh) trace.streams.push_back({static_cast<std::uint64_t>(id), 0, device_of});
  return place->second;
}

ThreadId NsysRankBuilder::thread(std::int64_t thread_id) {
  const ThreadId next{static_cast<std::uint32_t>(trace.threads.size())};
  const auto [place, fresh] = threads_.try_emplace(thread_id, next);
  if (fresh) trace.threads.push_back({static_cast<std::uint64_t>(thread_id), {}});
  return place->second;
}

std::optional<ThreadId> NsysRankBuilder::known_thread(std::int64_t thread_id) const {
  const auto found = threads_.find(thread_id);
  return found == threads_.end() ? std::nullopt : std::optional(found->second);
}

NameId NsysRankBuilder::name(NsysSession& session, std::optional<std::int64_t> id) {
  const auto found = names_.find(id.value_or(-1));
  if (found != names_.end()) return found->second;
  const NameId name = trace.names.intern(session.name(id));
  names_.emplace(id.value_or(-1), name);
  return name;
}

NsysRankBuilder::Call NsysRankBuilder::call(NsysSession& session, std::optional<std::int64_t> id) {
  const auto found = calls_.find(id.value_or(-1));
  if (found != calls_.end()) return found->second;
  const std::string text = session.name(id);
  const std::string_view name = without_version(text);
  const Call made{trace.names.intern(name), classify_host_call(name)};
  calls_.emplace(id.value_or(-1), made);
  return made;
}

Result<RankSet> RankSet::survey(NsysSession& session) {
  Survey found;
  count_table(session, "CUPTI_ACTIVITY_KIND_KERNEL", &Counts::kernels, found);
  count_table(session, "CUPTI_ACTIVITY_KIND_GRAPH_TRACE", &Counts::kernels, found);
  count_table(session, "CUPTI_ACTIVITY_KIND_MEMCPY", &Counts::others, found);
  count_table(session, "CUPTI_ACTIVITY_KIND_MEMSET", &Counts::others, found);
  if (found.size() > kMaxRanks) {
    return fail(session.database.source(), "CUPTI_ACTIVITY_KIND_KERNEL",
                "found operations of more than " + std::to_string(kMaxRanks) +
                    " processes and GPUs; expected those of one profiled job");
  }
  const bool kernels = std::any_of(found.begin(), found.end(),
                                   [](const auto& entry) { return entry.second.kernels > 0; });
  if (!kernels && !found.empty()) session.count(kNoKernels);
  RankSet set;
  std::uint64_t most = 0;
  for (const auto& [key, counts] : found) {
    // Without any kernel in the file, copies alone make a rank.
    const std::uint64_t weight = kernels ? counts.kernels : counts.others;
    if (weight == 0) continue;
    const auto place = static_cast<std::uint32_t>(set.ranks.size());
    set.ranks.emplace_back(key.first, key.second);
    if (set.processes_.empty() || set.processes_.back().id != key.first) {
      set.processes_.push_back({key.first, {}, place, {}, {}});
      most = 0;
    }
    Process& owner = set.processes_.back();
    owner.ranks.push_back(place);
    if (weight > most) owner.main = place;
    most = std::max(most, weight);
  }
  return set;
}

Process* RankSet::process(std::optional<std::int64_t> global_id) {
  const std::int64_t id = process_of(global_id.value_or(0));
  const auto found = std::lower_bound(
      processes_.begin(), processes_.end(), id,
      [](const Process& process, std::int64_t wanted) { return process.id < wanted; });
  if (found != processes_.end() && found->id == id) return &*found;
  // Exports without processes of operations: all calls are of that one.
  const bool only = processes_.size() == 1 && (processes_.front().id == 0 || id == 0);
  return only ? &processes_.front() : nullptr;
}

NsysRankBuilder* RankSet::of_device(std::optional<std::int64_t> global_pid, std::uint32_t device) {
  Process* owner = process(global_pid);
  if (owner == nullptr) return nullptr;
  const auto found = std::lower_bound(
      owner->ranks.begin(), owner->ranks.end(), device,
      [this](std::uint32_t rank, std::uint32_t wanted) { return ranks[rank].device < wanted; });
  const bool own = found != owner->ranks.end() && ranks[*found].device == device;
  return &ranks[own ? *found : owner->main];
}

}  // namespace bubblesim::traces::nsys
