// One file a rank makes a job: who is which rank, and do the files belong together.
#include <algorithm>
#include <iterator>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "traces/import/kineto_counters.hpp"
#include "traces/import/kineto_import.hpp"
#include "traces/import/read_files.hpp"
#include "traces/join/missing_ranks.hpp"

namespace bubblesim::traces {
namespace {

namespace fs = std::filesystem;

struct JobFile {
  fs::path path;
  RankTrace trace;
  bool has_rank = false;  ///< the file itself gave it
  std::vector<RankTrace> others{};  ///< of further GPUs of the process
  std::optional<Error> refused{};  ///< why it is no trace of a rank
};

/// Ranks for files that do not say theirs: all from their names, or all from their order.
void assign_ranks(std::vector<JobFile>& files) {
  if (std::all_of(files.begin(), files.end(), [](const JobFile& f) { return f.has_rank; })) return;
  const bool by_name = std::all_of(files.begin(), files.end(), [](const JobFile& f) {
    return f.has_rank || rank_in_name(f.path).has_value();
  });
  for (std::uint32_t i = 0; i < files.size(); ++i) {
    if (files[i].has_rank) continue;
    RankTrace& trace = files[i].trace;
    trace.rank = by_name ? *rank_in_name(files[i].path) : i;
    trace.counters.add(by_name ? kineto::kRankFromName : kineto::kRankFromOrder);
  }
}

Result<void> check_distinct(const std::vector<JobFile>& files) {
  for (std::size_t i = 1; i < files.size(); ++i) {
    if (files[i].trace.rank != files[i - 1].trace.rank) continue;
    return fail(files[i].path.string(), "",
                "is rank " + std::to_string(files[i].trace.rank) + ", and so is " +
                    files[i - 1].path.string() +
                    "; expected the files of one recording: name them, or move the others away");
  }
  return {};
}

/// The world size that files record; ranks seen where none does.
Result<std::uint32_t> agree_on_world(const std::vector<JobFile>& files) {
  const JobFile* first = nullptr;
  for (const JobFile& file : files) {
    if (!file.has_rank) continue;
    if (first == nullptr) first = &file;
    if (file.trace.world_size == first->trace.world_size) continue;
    return fail(file.path.string(), "/distributedInfo/world_size",
                "found " + std::to_string(file.trace.world_size) + ", but " +
                    first->path.string() + " has " + std::to_string(first->trace.world_size) +
                    "; expected files of one job");
  }
  const std::uint32_t seen = files.back().trace.rank + 1;
  return std::max(first == nullptr ? 1 : first->trace.world_size, seen);
}

Result<JobFile> read_file(const fs::path& path, const ImportOptions& options,
                          const ProgressCallback& progress) {
  ImportOptions own = options;
  own.rank.reset();
  auto process = import_kineto_process(path, own, progress);
  if (!process) return JobFile{path, {}, false, {}, process.error()};
  std::vector<RankTrace>& ranks = process->ranks;
  JobFile file{path, std::move(ranks.front()), process->names_rank};
  file.others.assign(std::move_iterator(ranks.begin() + 1), std::move_iterator(ranks.end()));
  return file;
}

std::set<std::string_view> kernel_names(const RankTrace& rank) {
  std::set<std::string_view> names;
  for (const DeviceOp& op : rank.device_ops) {
    if (op.kind == DeviceOpKind::kKernel) names.insert(rank.names[op.name]);
  }
  return names;
}

/// Fewer kernels than this are alike or not by chance.
constexpr std::size_t kTellingKernels = 5;

bool hardly_shares(const std::set<std::string_view>& a, const std::set<std::string_view>& b) {
  const auto shared = static_cast<std::size_t>(
      std::ranges::count_if(a, [&](std::string_view name) { return b.contains(name); }));
  const std::size_t fewer = std::min(a.size(), b.size());
  return fewer >= kTellingKernels && 10 * shared < fewer;
}

/// Ranks of one job run one program, or parts of one, on GPUs of one model.
void count_other_jobs(JobTrace& job) {
  const RankTrace& first = job.ranks.front();
  const std::set<std::string_view> names = kernel_names(first);
  for (RankTrace& rank : job.ranks) {
    const bool named = !first.device.name.empty() && !rank.device.name.empty();
    const bool other_model = named && rank.device.name != first.device.name;
    if (other_model || hardly_shares(names, kernel_names(rank))) {
      rank.counters.add(kineto::kOtherJob);
    }
  }
}

/// The ranks of all files, by rank; further GPUs come after the ranks that files name.
JobTrace all_ranks(std::vector<JobFile> files, std::uint32_t world) {
  JobTrace job;
  for (JobFile& file : files) {
    file.trace.process = file.others.empty() ? 0 : file.trace.rank + 1;
    job.ranks.push_back(std::move(file.trace));
  }
  for (std::size_t i = 0; i < files.size(); ++i) {
    for (RankTrace& other : files[i].others) {
      other.rank = world++;
      other.process = job.ranks[i].process;
      job.ranks.push_back(std::move(other));
    }
  }
  for (RankTrace& rank : job.ranks) rank.world_size = world;
  count_missing_ranks(job);
  count_other_jobs(job);
  return job;
}

/// A file among others that is no trace of a rank is left out; the result must not be trusted,
/// since it may be a rank's. The fault of the first where none is a trace.
Result<void> leave_out_refused(std::vector<JobFile>& files) {
  CounterSet left_out;
  for (const JobFile& file : files) {
    if (!file.refused) continue;
    left_out.add(kineto::kFileRefused.name,
                 {kineto::kFileRefused.severity,
                  std::string(kineto::kFileRefused.help) + "; the first: " +
                      file.refused->text(),
                  1});
  }
  const Error first = files.front().refused.value_or(Error{});
  std::erase_if(files, [](const JobFile& file) { return file.refused.has_value(); });
  if (files.empty()) return tl::unexpected<Error>(first);
  files.front().trace.counters.merge(left_out);
  return {};
}

}  // namespace

Result<JobTrace> import_kineto_job(std::span<const fs::path> paths, const ImportOptions& options,
                                   const ProgressCallback& progress) {
  if (paths.empty()) return fail("no trace file given; expected one a rank");
  const auto read_one = [&options](const fs::path& path, const ProgressCallback& tell) {
    return read_file(path, options, tell);
  };
  BUBBLESIM_ASSIGN_OR_RETURN(std::vector<JobFile> files,
                             read_files<JobFile>(paths, options.runner, progress, read_one));
  BUBBLESIM_RETURN_IF_ERROR(leave_out_refused(files));
  assign_ranks(files);
  std::stable_sort(files.begin(), files.end(), [](const JobFile& a, const JobFile& b) {
    return a.trace.rank < b.trace.rank;
  });
  BUBBLESIM_RETURN_IF_ERROR(check_distinct(files));
  BUBBLESIM_ASSIGN_OR_RETURN(const std::uint32_t world, agree_on_world(files));
  return all_ranks(std::move(files), world);
}

}  // namespace bubblesim::traces
