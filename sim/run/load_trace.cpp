#include "sim/run/load_trace.hpp"

#include <algorithm>
#include <fstream>

#include "sim/base/input_file.hpp"
#include "sim/engine/thread_pool.hpp"
#include "sim/hardware/cluster_spec.hpp"
#include "sim/hardware/gpu_spec_file.hpp"
#include "sim/synth/retarget.hpp"
#include "sim/workload/build_counters.hpp"
#include "traces/align.hpp"
#include "traces/format/trace_reader.hpp"
#include "traces/import/chakra/chakra_import.hpp"
#include "traces/import/kineto_import.hpp"
#include "traces/import/nsys_import.hpp"
#include "traces/join/join_recording.hpp"
#include "traces/join/missing_ranks.hpp"

namespace bubblesim::run {
namespace {

namespace fs = std::filesystem;

bool is_btr(const fs::path& path) { return path.extension() == ".btr"; }

// What reads a file: our own format and Nsight's reports by their names, the rest by what the
// file begins with.
enum class Format : std::uint8_t { kBtr, kNsys, kChakra, kKineto };

Format format_of(const fs::path& path) {
  if (is_btr(path)) return Format::kBtr;
  if (traces::is_nsys_report(path) || traces::looks_like_sqlite(path)) return Format::kNsys;
  return traces::looks_like_chakra(path) ? Format::kChakra : Format::kKineto;
}

// In a folder, only what is named as a trace is one.
bool is_named_as_trace(const fs::path& path) {
  const std::string name = path.filename().string();
  const auto has = [&name](const char* part) { return name.find(part) != std::string::npos; };
  return is_btr(path) || has(".json") || has(".sqlite") || path.extension() == ".et" ||
         name.ends_with(".et.gz");
}

std::string first_bytes(const fs::path& path, std::size_t most) {
  std::string begin(most, '\0');
  std::ifstream file(path, std::ios::binary);
  file.read(begin.data(), static_cast<std::streamsize>(begin.size()));
  begin.resize(static_cast<std::size_t>(file.gcount()));
  return begin;
}

// `bubblesim retarget` writes its figures beside its trace.
bool is_retarget_report(const fs::path& path) {
  if (path.extension() != ".json") return false;
  const std::string begin = first_bytes(path, 64);
  const std::size_t key = begin.find('"');
  return key != std::string::npos && begin.substr(key + 1).starts_with(kRetargetReportKey);
}

void note_file(const std::string& source, const fs::path& path, LoadedTrace& loaded) {
  std::vector<std::string>& files = loaded.files[source];
  if (files.empty() || files.back() != path.string()) files.push_back(path.string());
}

// The file of that name that was read; several are named together.
std::string file_of(const std::string& source, const LoadedTrace& loaded) {
  const auto found = loaded.files.find(source);
  if (found == loaded.files.end()) return source;
  std::string text;
  for (const std::string& file : found->second) text += (text.empty() ? "" : " or ") + file;
  return text;
}

// Ranks of one export of Nsight Systems have its session's clock, and those of one process have its
// own; all other ranks have theirs, and so have those of several exports of one name, which only
// the name would tell apart.
std::vector<std::string> clocks_of(const LoadedTrace& loaded) {
  std::vector<std::string> clocks;
  for (const auto& rank : loaded.job.ranks) {
    const traces::Provenance& from = rank.provenance;
    const auto files = loaded.files.find(from.source);
    const bool known = files != loaded.files.end() && files->second.size() == 1;
    const std::string own = rank.process == 0 ? "" : "process " + std::to_string(rank.process);
    clocks.push_back(from.format == "nsys" && known ? files->second.front() : own);
  }
  return clocks;
}

Result<void> check_ranks_differ(const LoadedTrace& loaded) {
  const auto& ranks = loaded.job.ranks;
  for (std::size_t i = 1; i < ranks.size(); ++i) {
    if (ranks[i].rank != ranks[i - 1].rank) continue;
    const std::string first = file_of(ranks[i - 1].provenance.source, loaded);
    const std::string second = file_of(ranks[i].provenance.source, loaded);
    return fail(second, {},
                "found rank " + std::to_string(ranks[i].rank) + " a second time" +
                    (first == second ? "" : ", first in " + first));
  }
  return {};
}

// Files that were read apart may each know of fewer ranks than there are. Returns whether any does.
bool agree_on_world(traces::JobTrace& job) {
  std::uint32_t world = job.ranks.back().rank + 1;
  for (const auto& rank : job.ranks) world = std::max(world, rank.world_size);
  bool differ = false;
  for (auto& rank : job.ranks) {
    const bool differs = rank.world_size != world;
    differ = differ || differs;
    rank.counters.reset(kWorldsDiffer, differs ? 1 : 0);
    rank.world_size = world;
  }
  return differ;
}

Result<void> add_btr(const fs::path& path, LoadedTrace& loaded) {
  BUBBLESIM_ASSIGN_OR_RETURN(auto outcome, traces::format::read_job(path.string()));
  // What is lost of a file goes with its first rank, wherever that is written or shown.
  if (outcome.job.ranks.empty()) loaded.counters.merge(outcome.counters);
  else outcome.job.ranks.front().counters.merge(outcome.counters);
  for (auto& rank : outcome.job.ranks) {
    // The file keeps these facts as counters.
    loaded.what_ifs_doubtful |= rank.counters.count(workload::kDoubtful.name) > 0;
    loaded.lacks_ranks |= rank.counters.count(traces::kRanksMissing.name) > 0;
    note_file(rank.provenance.source, path, loaded);
    std::ranges::move(traces::join_process(std::move(rank)),
                      std::back_inserter(loaded.job.ranks));
  }
  return {};
}

traces::ProgressCallback callback(const ProgressText& progress) {
  if (!progress) return {};
  return [&progress](const traces::ImportProgress& state) {
    const std::uint64_t percent =
        state.bytes_total == 0 ? 100 : 100 * state.bytes_read / state.bytes_total;
    progress("reading " + fs::path(std::string(state.file)).filename().string() + ", " +
             std::to_string(percent) + " %");
  };
}

// The files of one job, by what reads them.
struct Sorted {
  std::vector<fs::path> btr, nsys, chakra, kineto;

  void add(const fs::path& file) {
    switch (format_of(file)) {
      case Format::kBtr: btr.push_back(file); break;
      case Format::kNsys: nsys.push_back(file); break;
      case Format::kChakra: chakra.push_back(file); break;
      case Format::kKineto: kineto.push_back(file); break;
    }
  }
};

// What the trace says of a device that has no file; the rest of the first device of its compute
// capability, else of an A100.
CheckedResult<hardware::GpuSpec> described_by(const traces::DeviceInfo& recorded,
                                              const std::string& device_folder) {
  BUBBLESIM_ASSIGN_OR_RETURN(const auto devices, hardware::read_device_folder(device_folder));
  const auto alike = std::ranges::find_if(devices, [&](const hardware::DeviceFile& device) {
    return device.spec.compute_major == recorded.compute_major &&
           device.spec.compute_minor == recorded.compute_minor;
  });
  BUBBLESIM_ASSIGN_OR_RETURN(
      hardware::GpuSpec spec,
      hardware::find_gpu_spec(alike == devices.end() ? "a100-40gb" : alike->spec.id,
                              device_folder));
  spec.name = recorded.name.empty() ? "unknown device" : recorded.name;
  if (recorded.sm_count > 0) spec.sm_count = recorded.sm_count;
  if (recorded.memory_bytes > 0) spec.memory = Bytes{recorded.memory_bytes};
  return spec;
}

Result<void> add_job(Result<traces::JobTrace> job, LoadedTrace& loaded) {
  if (!job) return tl::unexpected<Error>(job.error());
  loaded.job.ranks.reserve(loaded.job.ranks.size() + job->ranks.size());
  for (auto& rank : job->ranks) loaded.job.ranks.push_back(std::move(rank));
  return {};
}

traces::TaskRunner on_threads(std::size_t threads) {
  return [threads](std::size_t count, const std::function<void(std::size_t)>& task) {
    engine::ThreadPool(std::min(threads, count)).run(count, task);
  };
}

Result<void> add_files(const Sorted& files, const ProgressText& progress, std::size_t threads,
                       const std::optional<hardware::ClusterSpec>& cluster, LoadedTrace& loaded) {
  const traces::ProgressCallback tell = callback(progress);
  traces::ImportOptions options;
  options.runner = on_threads(threads);
  if (cluster) {
    options.collective_times = [times = synth::collective_times(*cluster),
                                &loaded](const traces::UntimedCollective& collective) {
      loaded.collectives_simulated = true;
      return times(collective);
    };
  }
  // Each of these two counts the ranks that its own files lack.
  loaded.lacks_ranks = !files.kineto.empty() || !files.chakra.empty();
  for (const fs::path& file : files.btr) BUBBLESIM_RETURN_IF_ERROR(add_btr(file, loaded));
  if (!files.kineto.empty()) {
    BUBBLESIM_RETURN_IF_ERROR(
        add_job(traces::import_kineto_job(files.kineto, options, tell), loaded));
  }
  if (!files.nsys.empty()) {
    BUBBLESIM_RETURN_IF_ERROR(add_job(traces::import_nsys_job(files.nsys, tell), loaded));
  }
  if (!files.chakra.empty()) {
    BUBBLESIM_RETURN_IF_ERROR(add_job(traces::import_chakra(files.chakra, options, tell), loaded));
  }
  return {};
}

}  // namespace

Result<std::vector<fs::path>> trace_files(const fs::path& path) {
  std::error_code fault;
  const fs::file_status status = fs::status(path, fault);
  if (!fs::exists(status)) {
    return fail(path.string(), {}, "found no such file or folder, expected a trace or a folder");
  }
  // What reads a file is found by its first bytes, and a pipe gives them only once.
  if (fs::is_regular_file(status)) return std::vector<fs::path>{path};
  if (!fs::is_directory(status)) {
    return fail(path.string(), {}, "not a regular file; expected a trace or a folder");
  }
  std::vector<fs::path> files;
  for (fs::recursive_directory_iterator entry(path, fault), end; !fault && entry != end;
       entry.increment(fault)) {
    if (is_hidden_file(entry->path())) {
      entry.disable_recursion_pending();
      continue;
    }
    if (entry->is_regular_file(fault) && is_named_as_trace(entry->path()) &&
        !is_retarget_report(entry->path())) {
      files.push_back(entry->path());
    }
  }
  if (fault) return fail(path.string(), {}, "cannot be listed: " + fault.message());
  if (files.empty()) {
    return fail(path.string(), {},
                "found no .btr, .json, .et or .sqlite file (plain or .gz) in this folder");
  }
  std::sort(files.begin(), files.end(), natural_less);
  return files;
}

bool looks_like_trace(const std::string& path) {
  std::error_code fault;
  if (fs::is_directory(path, fault)) return true;
  if (!fs::is_regular_file(path, fault)) return false;
  if (format_of(path) != Format::kKineto || fs::path(path).extension() == ".gz") return true;
  return first_bytes(path, 64 * 1024).find("\"traceEvents\"") != std::string::npos;
}

Result<LoadedTrace> load_trace(const std::vector<std::string>& paths,
                               const ProgressText& progress, std::size_t threads,
                               const std::optional<hardware::ClusterSpec>& cluster) {
  if (paths.empty()) return fail("found no path, expected those of one trace or more");
  LoadedTrace loaded;
  Sorted sorted;
  for (const std::string& path : paths) {
    BUBBLESIM_ASSIGN_OR_RETURN(const std::vector<fs::path> files, trace_files(path));
    for (const fs::path& file : files) {
      sorted.add(file);
      if (!is_btr(file)) note_file(file.filename().string(), file, loaded);
    }
  }
  BUBBLESIM_RETURN_IF_ERROR(add_files(sorted, progress, threads, cluster, loaded));
  if (loaded.job.ranks.empty()) {
    std::string lost;
    for (const auto& [name, entry] : loaded.counters) lost += "; " + name + ": " + entry.help;
    return fail(paths.front(), {}, "found no rank in it" + lost);
  }
  std::stable_sort(loaded.job.ranks.begin(), loaded.job.ranks.end(),
                   [](const auto& a, const auto& b) { return a.rank < b.rank; });
  BUBBLESIM_RETURN_IF_ERROR(check_ranks_differ(loaded));
  if (agree_on_world(loaded.job) || loaded.lacks_ranks) traces::count_missing_ranks(loaded.job);
  const traces::AlignmentReport aligned = traces::align_ranks(loaded.job, clocks_of(loaded));
  if (aligned.matched > 0) loaded.residual = aligned.residual_median;
  loaded.clocks_apart = aligned.clocks_apart;
  for (const auto& rank : loaded.job.ranks) loaded.counters.merge(rank.counters);
  return loaded;
}

CheckedResult<LoadedTrace> load_trace_on(const std::vector<std::string>& paths,
                                         const std::optional<std::string>& cluster,
                                         const std::string& cluster_folder,
                                         const ProgressText& progress, std::size_t threads) {
  std::optional<hardware::ClusterSpec> spec;
  if (cluster) {
    BUBBLESIM_ASSIGN_OR_RETURN(spec, hardware::find_cluster_spec(*cluster, cluster_folder));
  }
  BUBBLESIM_ASSIGN_OR_RETURN(LoadedTrace loaded, load_trace(paths, progress, threads, spec));
  if (spec && !loaded.collectives_simulated) {
    return fail(paths.front(), {},
                "every collective of it that has a size has a time: it needs no cluster (" +
                    *cluster + "); `bubblesim retarget` takes recorded times to another one");
  }
  return loaded;
}

Error LoadedTrace::located(Error fault) const {
  fault.file = file_of(fault.file, *this);
  return fault;
}

Errors LoadedTrace::located(Errors faults) const {
  for (Error& fault : faults) fault = located(std::move(fault));
  return faults;
}

CheckedResult<hardware::GpuSpec> device_of(const traces::JobTrace& job,
                                           const std::optional<std::string>& wanted,
                                           const std::string& device_folder) {
  if (wanted) return hardware::find_gpu_spec(*wanted, device_folder);
  BUBBLESIM_ASSIGN_OR_RETURN(auto devices, hardware::read_device_folder(device_folder));
  const traces::RankTrace& rank = job.ranks.front();
  const auto device = hardware::match_recorded_name(rank.device.name, devices);
  if (!device) {
    Error fault = device.error();
    if (rank.device.name.empty()) fault.message = "the recording does not name its device";
    fault.file = rank.provenance.source;
    fault.message += "; name the device to use (--device, or \"device\" in a config)";
    return tl::unexpected<Errors>(Errors{fault});
  }
  return (*device)->spec;
}

CheckedResult<hardware::GpuSpec> device_for_replay(const traces::JobTrace& job,
                                                   const std::string& device_folder,
                                                   CounterSet& counters) {
  if (auto known = device_of(job, std::nullopt, device_folder)) return known;
  counters.add(kDeviceAssumed);
  return described_by(job.ranks.front().device, device_folder);
}

CheckedResult<hardware::GpuSpec> device_for_run(const traces::JobTrace& job,
                                                const std::optional<std::string>& wanted,
                                                const std::string& device_folder,
                                                CounterSet& counters) {
  auto known = device_of(job, wanted, device_folder);
  const traces::DeviceInfo& recorded = job.ranks.front().device;
  if (known || wanted || recorded.name.empty() || recorded.sm_count == 0) return known;
  counters.add(kDeviceMade);
  return described_by(recorded, device_folder);
}

}  // namespace bubblesim::run
