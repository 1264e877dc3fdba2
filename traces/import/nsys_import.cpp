#include "traces/import/nsys_import.hpp"

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <unordered_set>

#include "sim/base/packed_file.hpp"
#include "traces/import/nsys_database.hpp"
#include "traces/import/nsys_session.hpp"
#include "traces/import/nsys_target.hpp"
#include "traces/import/read_files.hpp"
#include "traces/join/join_recording.hpp"
#include "traces/sort_records.hpp"

namespace bubblesim::traces {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 4> kOpTables{
    "CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_GRAPH_TRACE",
    "CUPTI_ACTIVITY_KIND_MEMCPY", "CUPTI_ACTIVITY_KIND_MEMSET"};

/// A file's ranks, and whether the file itself said which they are.
struct NsysFile {
  JobTrace job;
  bool ranks_recorded = false;
  bool absolute = false;  ///< its times count from 1970
  std::set<std::int64_t> processes;  ///< global ids of the ranks' processes
  TraceTime begin = TraceTime::max();  ///< of its device operations
  TraceTime end = TraceTime::min();
};

/// Why a database has no rank in it.
std::string look_of(const nsys::Database& database) {
  const auto& tables = database.tables();
  const bool export_of_nsys = database.has_table("StringIds") ||
                              database.has_table("META_DATA_EXPORT") ||
                              database.has_table("CUPTI_ACTIVITY_KIND_KERNEL");
  if (std::ranges::any_of(tables, [](const std::string& table) {
        return table.starts_with("rocpd_");
      })) {
    return "is a database of AMD's profiler (rocprofv3, rpd), not of Nsight Systems; PyTorch's "
           "profiler on the same GPU writes a JSON that is read";
  }
  if (!export_of_nsys) {
    std::string found;
    for (std::size_t i = 0; i < tables.size() && i < 5; ++i) {
      found += (i == 0 ? "'" : ", '") + tables[i] + "'";
    }
    return "is an SQLite database, but no export of Nsight Systems: its tables are " +
           (found.empty() ? "none" : found) +
           "; expected StringIds and CUPTI_ACTIVITY_KIND_KERNEL, as 'nsys export --type sqlite' "
           "writes them";
  }
  if (!database.damage().empty()) {
    return "has no readable device operation: SQLite says \"" + database.damage() + "\"";
  }
  for (const std::string_view table : kOpTables) {
    if (!database.has_table(table)) continue;
    return "has no usable device operation: no row of " + std::string(table) +
           " has a time, a GPU and a stream";
  }
  return "is an export of Nsight Systems without device activity: none of its tables is "
         "CUPTI_ACTIVITY_KIND_KERNEL, _MEMCPY, _MEMSET or _GRAPH_TRACE (profiled without "
         "--trace=cuda, or a job that used no GPU)";
}

/// Ranks without a single operation left are none: their rows were unusable.
void drop_empty(nsys::RankSet& set, std::vector<std::uint32_t>& numbers) {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < set.ranks.size(); ++i) {
    if (set.ranks[i].trace.device_ops.empty()) continue;
    if (kept != i) {
      set.ranks[kept] = std::move(set.ranks[i]);
      numbers[kept] = numbers[i];
    }
    ++kept;
  }
  while (set.ranks.size() > kept) set.ranks.pop_back();
  numbers.resize(kept);
}

bool same_row(const DeviceOp& a, const DeviceOp& b) {
  return a.correlation == b.correlation && a.start == b.start && a.duration == b.duration &&
         a.stream == b.stream && a.name == b.name && a.kind == b.kind && a.shape == b.shape &&
         a.bytes == b.bytes;
}

/// Two nodes of one launch of a graph may truly be equal; no other operations of a stream can.
std::uint64_t drop_duplicates(RankTrace& trace) {
  std::unordered_set<std::uint64_t> of_graphs;
  for (const HostCall& call : trace.host_calls) {
    if (call.kind == HostCallKind::kLaunchGraph) of_graphs.insert(call.correlation);
  }
  sort_stably(trace.device_ops,
              [](const DeviceOp& a, const DeviceOp& b) { return a.start < b.start; });
  return remove_duplicates(trace.device_ops, [&of_graphs](const DeviceOp& a, const DeviceOp& b) {
    return same_row(a, b) && !of_graphs.contains(b.correlation);
  });
}

/// The number of the rank's process, from 1 on; 0: it has no other GPU.
std::uint32_t process_of(nsys::RankSet& set, const nsys::NsysRankBuilder& rank) {
  const nsys::Process& owner = *set.process(rank.process);
  return owner.ranks.size() > 1 ? owner.ranks.front() + 1 : 0;
}

Result<NsysFile> import_database(const nsys::Database& database,
                                 const ProgressCallback& progress) {
  nsys::NsysSession session(database, progress);
  if (database.gzip_damaged()) session.count(nsys::kGzipDamaged);
  BUBBLESIM_ASSIGN_OR_RETURN(nsys::RankSet set, nsys::RankSet::survey(session));
  if (set.ranks.empty()) return fail(database.source(), {}, look_of(database));
  nsys::describe_devices(session, set);
  nsys::read_device_ops(session, set);
  nsys::read_syncs(session, set);
  nsys::read_calls(session, set);
  nsys::complete_syncs(set);
  const nsys::Communicators communicators = nsys::read_nvtx(session, set);
  nsys::read_stalls(session, set);
  nsys::read_memory(session, set);
  nsys::describe_ranks(session, set);
  nsys::RankNumbers numbers = nsys::find_ranks(session, set, communicators);
  drop_empty(set, numbers.ranks);
  std::vector<std::uint32_t> processes;
  for (const nsys::NsysRankBuilder& rank : set.ranks) processes.push_back(process_of(set, rank));
  if (set.ranks.empty()) return fail(database.source(), {}, look_of(database));
  NsysFile file;
  file.ranks_recorded = numbers.recorded;
  file.absolute = session.is_absolute();
  for (std::size_t i = 0; i < set.ranks.size(); ++i) {
    RankTrace& trace = file.job.ranks.emplace_back(std::move(set.ranks[i].trace));
    trace.rank = numbers.ranks[i];
    trace.world_size = numbers.world_size;
    trace.process = processes[i];
    session.count(nsys::kDuplicates, drop_duplicates(trace));
    if (set.ranks[i].process != 0) file.processes.insert(set.ranks[i].process);
    for (const DeviceOp& op : trace.device_ops) {
      file.begin = std::min(file.begin, op.start);
      file.end = std::max(file.end, op.start + op.duration);
    }
    join_recording(trace);
  }
  std::ranges::stable_sort(file.job.ranks, {}, &RankTrace::rank);
  file.job.ranks.front().counters.merge(session.counters);
  return file;
}

/// Bounds an unpacked gzip file; a larger one is a fault that says to unpack it first.
constexpr std::uint64_t kMaxUnpackedBytes = std::uint64_t{4} << 30U;

Result<NsysFile> read_file(const fs::path& path, const ProgressCallback& progress) {
  if (is_nsys_report(path)) {
    return fail(path.string(), {},
                "is a report of Nsight Systems, which only Nsight Systems can read; export it "
                "first: nsys export --type sqlite --output " +
                    fs::path(path.filename()).replace_extension(".sqlite").string() + " " +
                    path.filename().string());
  }
  BUBBLESIM_ASSIGN_OR_RETURN(const auto database, nsys::Database::open(path, kMaxUnpackedBytes));
  return import_database(*database, progress);
}

void count_order(JobTrace& job) {
  if (job.ranks.size() > 1) {
    job.ranks.front().counters.add(nsys::kRankFromOrder, job.ranks.size());
  }
}

bool distinct(const std::vector<NsysFile>& files) {
  std::vector<std::uint32_t> ranks;
  for (const NsysFile& file : files) {
    for (const RankTrace& rank : file.job.ranks) ranks.push_back(rank.rank);
  }
  std::ranges::sort(ranks);
  return std::ranges::adjacent_find(ranks) == ranks.end();
}

/// Fault: two files have a process and no time in common, as the parts of `nsys profile
/// --capture-range-end=repeat` have.
Result<void> refuse_repeats(std::span<const fs::path> paths, const std::vector<NsysFile>& files) {
  for (std::size_t i = 0; i < files.size(); ++i) {
    for (std::size_t k = 0; k < i; ++k) {
      if (!files[i].absolute || !files[k].absolute) continue;
      const bool apart = files[i].end <= files[k].begin || files[k].end <= files[i].begin;
      const bool shared = std::ranges::any_of(files[i].processes, [&](std::int64_t process) {
        return files[k].processes.contains(process);
      });
      if (!apart || !shared) continue;
      return fail(paths[i].string(), {},
                  "is another recording of the process in " + paths[k].string() +
                      "; expected the files of one recording: name them, or move the others away");
    }
  }
  return {};
}

/// Numbers all ranks anew, by file names if those tell, else by order.
void number_files(std::span<const fs::path> paths, std::vector<NsysFile>& files) {
  bool named = true;
  for (std::size_t i = 0; i < files.size(); ++i) {
    named = named && files[i].job.ranks.size() == 1 && rank_in_name(paths[i]).has_value();
  }
  std::uint32_t next = 0;
  for (std::size_t i = 0; i < files.size(); ++i) {
    for (RankTrace& rank : files[i].job.ranks) {
      rank.rank = named ? *rank_in_name(paths[i]) : next++;
      rank.counters.add(named ? nsys::kRankFromName : nsys::kRankFromOrder);
    }
  }
}

}  // namespace

bool looks_like_sqlite(const fs::path& path) {
  auto bytes = ByteStream::open(path);
  if (!bytes) return false;
  std::array<char, 16> head{};
  return bytes->read(head.data(), head.size()) == head.size() &&
         std::string_view(head.data(), head.size()) == nsys::kSqliteMagic;
}

bool is_nsys_report(const fs::path& path) {
  const std::string extension = path.extension().string();
  return extension == ".nsys-rep" || extension == ".qdrep" || extension == ".qdstrm";
}

Result<JobTrace> import_nsys_file(const fs::path& path, const ProgressCallback& progress) {
  BUBBLESIM_ASSIGN_OR_RETURN(NsysFile file, read_file(path, progress));
  if (!file.ranks_recorded) count_order(file.job);
  return std::move(file.job);
}

Result<JobTrace> import_nsys_bytes(std::string_view bytes, std::string_view source) {
  BUBBLESIM_ASSIGN_OR_RETURN(
      const auto database, nsys::Database::from_memory(std::string(bytes), std::string(source)));
  BUBBLESIM_ASSIGN_OR_RETURN(NsysFile file, import_database(*database, {}));
  if (!file.ranks_recorded) count_order(file.job);
  return std::move(file.job);
}

Result<JobTrace> import_nsys_job(std::span<const fs::path> paths,
                                 const ProgressCallback& progress) {
  if (paths.empty()) return fail("no export given; expected one or more SQLite files");
  if (paths.size() == 1) return import_nsys_file(paths.front(), progress);
  std::vector<NsysFile> files;
  for (const fs::path& path : paths) {
    BUBBLESIM_ASSIGN_OR_RETURN(NsysFile file, read_file(path, progress));
    files.push_back(std::move(file));
  }
  BUBBLESIM_RETURN_IF_ERROR(refuse_repeats(paths, files));
  const bool recorded = std::ranges::all_of(files, &NsysFile::ranks_recorded);
  if (!recorded || !distinct(files)) number_files(paths, files);
  JobTrace job;
  for (NsysFile& file : files) {
    std::uint32_t before = 0;
    for (const RankTrace& rank : job.ranks) before = std::max(before, rank.process);
    for (RankTrace& rank : file.job.ranks) {
      if (rank.process != 0) rank.process += before;
      job.ranks.push_back(std::move(rank));
    }
  }
  std::ranges::stable_sort(job.ranks, {}, &RankTrace::rank);
  std::uint32_t world = job.ranks.back().rank + 1;
  if (recorded) {
    for (const RankTrace& rank : job.ranks) world = std::max(world, rank.world_size);
  }
  for (RankTrace& rank : job.ranks) rank.world_size = world;
  return job;
}

}  // namespace bubblesim::traces
