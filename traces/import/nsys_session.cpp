#include "traces/import/nsys_session.hpp"

#include <array>
#include <cctype>

#include "sim/base/utf8.hpp"
#include "traces/names/host_call_names.hpp"

namespace bubblesim::traces::nsys {
namespace {

constexpr std::string_view kStringIds = "StringIds";

/// The tables that take the time.
constexpr std::array<std::string_view, 8> kLargeTables{
    "CUPTI_ACTIVITY_KIND_KERNEL",  "CUPTI_ACTIVITY_KIND_MEMCPY",
    "CUPTI_ACTIVITY_KIND_MEMSET",  "CUPTI_ACTIVITY_KIND_RUNTIME",
    "CUPTI_ACTIVITY_KIND_DRIVER",  "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION",
    "NVTX_EVENTS",                 "CUPTI_ACTIVITY_KIND_OVERHEAD"};

/// Whether the export's times are, as `nsys export --ts-normalize=true` writes them, by the first
/// of them: no session lasts kMaxTime.
bool counts_from_1970(const Database& database) {
  for (const std::string_view table : kLargeTables) {
    Rows rows(database, table, {"start"});
    const auto start = rows.next() ? rows.integer(0) : std::nullopt;
    if (start) return *start > kMaxTime;
  }
  return false;
}

}  // namespace

Strings::Strings(const Database& database)
    : keyed_(database.is_row_key(kStringIds, "id")),
      lookup_(keyed_ ? Rows::by_key(database, kStringIds, "id", {"value"})
                     : Rows(database, "", {"value"})) {
  if (keyed_) return;
  Rows rows(database, kStringIds, {"id", "value"});
  while (rows.next()) {
    const auto id = rows.integer(0);
    const auto text = rows.text(1);
    if (id && text) all_.try_emplace(*id, *text);
  }
}

std::optional<std::string> Strings::find(std::int64_t id) {
  if (!keyed_) {
    const auto found = all_.find(id);
    return found == all_.end() ? std::nullopt : std::optional(found->second);
  }
  lookup_.seek(id);
  if (!lookup_.next()) return std::nullopt;
  const auto text = lookup_.text(0);
  return text ? std::optional(std::string(*text)) : std::nullopt;
}

NsysSession::NsysSession(const Database& opened, const ProgressCallback& progress)
    : database(opened), strings(opened), progress_(progress) {
  for (const std::string_view table : kLargeTables) rows_total_ += opened.estimated_rows(table);
  read_base();
  read_product();
}

void NsysSession::read_base() {
  Rows rows(database, "TARGET_INFO_SESSION_START_TIME", {"utcEpochNs"});
  if (rows.next()) {
    const auto base = rows.integer(0);
    if (base && *base > 0 && *base <= 4 * (kMaxTime - 1)) base_ns_ = *base;
  }
  since_1970_ = counts_from_1970(database);
  if (since_1970_) base_ns_ = 0;
  else if (base_ns_ == 0) count(kNoBase);
}

void NsysSession::read_product() {
  std::string version;
  std::string schema;
  each_row("META_DATA_EXPORT", {"name", "value"}, [&](const Rows& rows) {
    const bool is_version = rows.text(0) == "EXPORT_PRODUCT_VERSION";
    if (!is_version && rows.text(0) != "EXPORT_SCHEMA_VERSION") return;
    (is_version ? version : schema) = clean(rows.text(1).value_or("").substr(0, 64));
  });
  product = "Nsight Systems";
  if (!version.empty()) product += " " + version;
  if (!schema.empty()) product += ", schema " + schema;
}

std::optional<RowSpan> NsysSession::span(std::optional<std::int64_t> start,
                                         std::optional<std::int64_t> end) {
  const auto usable = [this](std::int64_t time) {
    return since_1970_ ? time > kMaxTime && time <= 2 * kMaxTime
                       : time >= -kMaxTime && time <= kMaxTime;
  };
  if (!start || !end || !usable(*start) || !usable(*end)) return std::nullopt;
  if (*end < *start) count(kNegativeDuration);
  return RowSpan{TraceTime{Duration{base_ns_ + *start}},
                 Duration{std::max<std::int64_t>(0, *end - *start)}};
}

std::string NsysSession::clean(std::string_view text) {
  if (is_utf8(text)) return std::string(text);
  count(kInvalidUtf8);
  return repaired_utf8(text);
}

std::string NsysSession::name(std::optional<std::int64_t> id) {
  if (id) {
    if (const auto text = strings.find(*id)) return clean(*text);
  }
  count(kNameMissing);
  return "unnamed";
}

void NsysSession::report() {
  if (!progress_) return;
  const std::uint64_t size = database.size();
  const double part = rows_total_ == 0 ? 1.0
                                       : static_cast<double>(std::min(rows_, rows_total_)) /
                                             static_cast<double>(rows_total_);
  progress_({database.source(), static_cast<std::uint64_t>(part * static_cast<double>(size)),
             size});
}

namespace {

struct Counts {
  std::uint64_t kernels = 0;
  std::uint64_t others = 0;
};
using Survey = std::map<std::pair<std::int64_t, std::uint32_t>, Counts>;

void count_table(NsysSession& session, std::string_view table, std::uint64_t Counts::*what,
                 Survey& found) {
  Rows rows(session.database, table, {"globalPid", "deviceId"});
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
  const bool kernels =
      std::ranges::any_of(found, [](const auto& entry) { return entry.second.kernels > 0; });
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
  const auto found = std::ranges::lower_bound(processes_, id, {}, &Process::id);
  if (found != processes_.end() && found->id == id) return &*found;
  // Exports without processes of operations: all calls are of that one.
  const bool only = processes_.size() == 1 && (processes_.front().id == 0 || id == 0);
  return only ? &processes_.front() : nullptr;
}

NsysRankBuilder* RankSet::of_device(std::optional<std::int64_t> global_pid, std::uint32_t device) {
  Process* owner = process(global_pid);
  if (owner == nullptr) return nullptr;
  const auto found = std::ranges::lower_bound(
      owner->ranks, device, {}, [this](std::uint32_t rank) { return ranks[rank].device; });
  const bool own = found != owner->ranks.end() && ranks[*found].device == device;
  return &ranks[own ? *found : owner->main];
}

}  // namespace bubblesim::traces::nsys
