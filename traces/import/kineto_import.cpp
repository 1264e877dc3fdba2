#include "traces/import/kineto_import.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "traces/import/kineto_counters.hpp"
#include "traces/import/kineto_join.hpp"
#include "traces/import/kineto_reader.hpp"
#include "traces/import/kineto_records.hpp"
#include "traces/import/read_files.hpp"
#include "traces/join/call_index.hpp"
#include "traces/join/missing_ranks.hpp"

namespace bubblesim::traces {
namespace {

// ---- Why a text is not a Kineto trace of one process on a GPU: what it looks like instead.

constexpr std::string_view kExpected =
    "; expected a PyTorch profiler (Kineto) trace: an object with a traceEvents array, or a bare "
    "array of events";

struct Sign {
  std::string_view bytes;
  std::size_t offset;
  std::string_view meaning;
};

/// Formats that are told by their first bytes.
constexpr std::array kSigns{
    Sign{"SQLite format 3", 0, "is an SQLite database (an Nsight Systems export?)"},
    Sign{"\x28\xb5\x2f\xfd", 0, "is packed with zstd; unpack it first"},
    Sign{"BZh", 0, "is packed with bzip2; unpack it first"},
    Sign{"\xfd" "7zXZ", 0, "is packed with xz; unpack it first"},
    Sign{"PK\x03\x04", 0, "is a zip archive; unpack it first"},
    Sign{"ustar", 257, "is a tar archive (of Chakra traces?); unpack it first"},
    Sign{"version https://git-lfs", 0, "is a Git LFS pointer, not the file itself"},
    Sign{"\x80\x04\x95", 0, "is a Python pickle (a snapshot of PyTorch's memory?)"},
    Sign{"<!DOCTYPE", 0, "is an HTML page"},
    Sign{"<html", 0, "is an HTML page"},
    Sign{"\xff\xfe", 0, "is UTF-16 text; Kineto writes UTF-8"},
    Sign{"\xfe\xff", 0, "is UTF-16 text; Kineto writes UTF-8"},
};

bool has_key(const KinetoTextShape& shape, std::string_view key) {
  return std::ranges::find(shape.keys, key) != shape.keys.end();
}

bool mentions(const KinetoTextShape& shape, std::string_view text) {
  return shape.first_bytes.find(text) != std::string::npos;
}

std::string keys_of(const KinetoTextShape& shape) {
  std::string out;
  for (std::size_t i = 0; i < shape.keys.size() && i < 5; ++i) {
    out += (i == 0 ? "'" : ", '") + shape.keys[i] + "'";
  }
  return out.empty() ? "none" : out;
}

std::string look_of_object(const KinetoTextShape& shape) {
  if (has_key(shape, "nodes") && has_key(shape, "schema")) {
    return "looks like a PyTorch or Chakra execution trace (top-level 'schema' and 'nodes'), "
           "which has no device times";
  }
  if (has_key(shape, "rocprofiler-sdk-tool")) {
    return "is JSON of AMD's profiler (rocprofv3), which is not read; PyTorch's profiler records "
           "the same GPU as Kineto";
  }
  if (has_key(shape, "maps")) {
    return "looks like an Ascend (MindInsight) timeline (top-level 'maps'), not a GPU's";
  }
  if (has_key(shape, "timestamp") && has_key(shape, "input_length")) {
    return "looks like a list of request arrivals (JSON lines with 'timestamp')";
  }
  if (has_key(shape, "queries")) return "looks like a list of request arrivals ('queries')";
  return "has no traceEvents; its top-level keys are " + keys_of(shape);
}

/// A message of planes, each with its name near its beginning.
bool is_xplane(std::string_view bytes) {
  const auto names = [bytes](std::string_view text) {
    return bytes.find(text) != std::string_view::npos;
  };
  return bytes.starts_with('\n') && (names("/host:") || names("/device:"));
}

/// PyTorch's export_memory_timeline writes lists of times and sizes, or a list of events as lists.
std::string look_of_array(const KinetoTextShape& shape) {
  const std::string_view text = shape.first_bytes;
  const std::size_t outer = text.find('[');
  const std::size_t inner = text.find_first_not_of(" \t\r\n", outer + 1);
  if (outer == std::string_view::npos || inner == std::string_view::npos || text[inner] != '[') {
    return "is an array, but not of events";
  }
  return "is an array of arrays, as PyTorch writes memory timelines (export_memory_timeline): it "
         "has no device operation";
}

std::string look_of_text(const KinetoTextShape& shape) {
  if (shape.first_bytes.empty()) return "is empty";
  for (const Sign& sign : kSigns) {
    if (shape.first_bytes.size() >= sign.offset &&
        std::string_view(shape.first_bytes).substr(sign.offset).starts_with(sign.bytes)) {
      return std::string(sign.meaning);
    }
  }
  if (is_xplane(shape.first_bytes)) {
    return "is an XPlane file of XLA's profiler (JAX, TensorFlow), which is not read; its job can "
           "be recorded with Nsight Systems, or by `bubblesim capture`";
  }
  const auto unprintable = [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte == 0 || byte == 0x7f || (byte < 0x20 && c != '\n' && c != '\r' && c != '\t');
  };
  if (std::any_of(shape.first_bytes.begin(), shape.first_bytes.end(), unprintable)) {
    return "is a binary file (a Chakra or Perfetto protobuf?)";
  }
  return "is not JSON: it starts with neither { nor [";
}

std::uint64_t count_of(const KinetoRecords& records, KinetoCategory category) {
  return records.category_counts[static_cast<std::size_t>(category)];
}

/// Kineto's categories of devices that are no GPU, by how they begin.
constexpr std::array kOtherDevices{
    std::pair<std::string_view, std::string_view>{"mtia_", "Meta's MTIA"},
    std::pair<std::string_view, std::string_view>{"hpu_", "Intel's Gaudi"},
    std::pair<std::string_view, std::string_view>{"privateuse1_", "an accelerator of PrivateUse1"},
    std::pair<std::string_view, std::string_view>{"glow_", "Glow"},
};

/// Empty: no event is of such a device.
std::string look_of_other_device(const KinetoRecords& records) {
  for (const auto& [prefix, device] : kOtherDevices) {
    std::string names;
    std::uint64_t events = 0;
    for (const auto& [name, count] : records.foreign_categories) {
      if (!name.starts_with(prefix)) continue;
      names += (names.empty() ? "'" : ", '") + std::string(name) + "'";
      events += count;
    }
    if (events == 0) continue;
    return "is a profile of " + std::string(device) + ", not of a GPU: " +
           std::to_string(events) + " events of category " + names + ", which are not read";
  }
  return {};
}

/// What was left out of the file, in the words of the counters.
std::string losses_of(const CounterSet& counters) {
  std::string out;
  for (const auto& [name, entry] : counters) {
    if (entry.severity != Severity::kLoss) continue;
    out += (out.empty() ? ": " : "; ") + std::to_string(entry.count) + " " + entry.help;
  }
  return out;
}

/// Events there are, but no device operation among them.
std::string look_of_events(const KinetoTextShape& shape, const KinetoRecords& records) {
  const std::uint64_t host = count_of(records, KinetoCategory::kCpuOp) +
                             count_of(records, KinetoCategory::kPythonFunction) +
                             count_of(records, KinetoCategory::kUserAnnotation);
  const std::uint64_t calls = count_of(records, KinetoCategory::kHostCall);
  const std::uint64_t gpu = count_of(records, KinetoCategory::kKernel) +
                            count_of(records, KinetoCategory::kCopy) +
                            count_of(records, KinetoCategory::kMemset);
  if (gpu > 0) {
    return "has " + std::to_string(gpu) + " device operations, none of them usable" +
           losses_of(records.trace.counters);
  }
  if (std::string device = look_of_other_device(records); !device.empty()) return device;
  if (host + calls > 0) {
    return "has no device activity: " + std::to_string(host) + " host operators and ranges, " +
           std::to_string(calls) + " runtime calls, but no kernel, gpu_memcpy or gpu_memset " +
           "(profiled without ProfilerActivity.CUDA, or on a rank without a GPU)";
  }
  if (mentions(shape, "Task Type") || mentions(shape, "AI_CORE") || mentions(shape, "AICORE")) {
    return "looks like an Ascend timeline, not a GPU's";
  }
  const auto& foreign = records.foreign_categories;
  const auto count = [](const auto& category) { return category.second; };
  const auto most = std::ranges::max_element(foreign, {}, count);
  if (most != foreign.end() && !most->first.empty()) {
    return "is a Chrome trace of another program: its events are of category '" + most->first +
           "', none of Kineto's";
  }
  return "is a Chrome trace without Kineto's categories: no event is a kernel, copy or call";
}

/// By thread: the process id in its key, "pid\\ntid".
std::vector<std::string_view> processes_of_threads(const KinetoRecords& records) {
  std::vector<std::string_view> processes(records.trace.threads.size());
  for (const auto& [key, thread] : records.thread_ids) {
    processes[thread.index()] = std::string_view(key).substr(0, key.find('\n'));
  }
  return processes;
}

/// Correlations are those of one process: where two processes launch under the same ones, nothing
/// says whose an operation is. A process that launches nothing (a data loader's) does no harm.
std::string look_of_processes(const KinetoRecords& records) {
  const std::vector<std::string_view> processes = processes_of_threads(records);
  const auto each_launch = [&](const auto& visit) {
    for (const PendingCall& call : records.calls) {
      if (!is_launch(call.kind) || call.correlation == 0) continue;
      visit(call.correlation, processes[call.thread.index()]);
    }
  };
  std::set<std::string_view> launching;
  each_launch([&](std::uint64_t, std::string_view process) { launching.insert(process); });
  if (launching.size() < 2) return {};
  std::vector<std::pair<std::uint64_t, std::string_view>> launched;
  each_launch([&](std::uint64_t correlation, std::string_view process) {
    launched.emplace_back(correlation, process);
  });
  std::ranges::sort(launched);
  const auto clash = std::ranges::adjacent_find(launched, [](const auto& a, const auto& b) {
    return a.first == b.first && a.second != b.second;
  });
  if (clash == launched.end()) return {};
  return "holds the launches of " + std::to_string(launching.size()) +
         " processes, which share correlation ids (" + std::to_string(clash->first) +
         " is of pid " + std::string(clash->second) + " and of pid " +
         std::string(std::next(clash)->second) +
         "); split it by pid, one file a process";
}

// A sentence for the user, or empty: the file is a Kineto trace with device operations, whose
// launches can be told from one another.
std::string refusal(const KinetoTextShape& shape, const KinetoMetadata& metadata,
                    const KinetoRecords& records) {
  if (metadata.own_timeline) {
    return "is a timeline that bubblesim wrote for viewers (export --chrome, run --timeline): it "
           "says not which call launched what; give the recording that it was made from";
  }
  if (!records.ops.empty()) return look_of_processes(records);
  if (shape.root == KinetoTextShape::Root::kOther)
    return look_of_text(shape) + std::string(kExpected);
  if (shape.root == KinetoTextShape::Root::kObject && !shape.has_events_array) {
    return look_of_object(shape) + std::string(kExpected);
  }
  if (shape.events == 0) {
    const std::string found = shape.root == KinetoTextShape::Root::kArray
                                  ? look_of_array(shape)
                                  : "has no readable event in traceEvents";
    return found + std::string(kExpected);
  }
  return look_of_events(shape, records);
}

void set_rank(const ImportOptions& options, const KinetoMetadata& metadata, RankTrace& trace) {
  if (!metadata.rank && !options.rank) trace.counters.add(kineto::kRankUnknown);
  trace.rank = options.rank.value_or(metadata.rank.value_or(0));
  trace.world_size = std::max(metadata.world_size.value_or(1), trace.rank + 1);
}

/// "1234 bytes of text, 56 events read".
std::string read_so_far(const TextWindow& window, const KinetoReader& reader) {
  return std::to_string(window.offset() + window.text().size()) + " bytes of text, " +
         std::to_string(reader.shape().events) + " events read";
}

/// Counts a file that ends early, and says how far it was read.
void count_cut(const CounterSpec& spec, const std::string& file, const TextWindow& window,
               const KinetoReader& reader, CounterSet& counters) {
  const std::string name = std::filesystem::path(file).filename().string();
  counters.add(spec.name, {spec.severity,
                           name + " is truncated after " + read_so_far(window, reader) + "; " +
                               std::string(spec.help),
                           1});
}

using Ranks = std::vector<RankTrace>;

/// Where the job has other processes, the rank that the file names is that of its main GPU.
void name_ranks(const ImportOptions& options, const KinetoMetadata& metadata,
                const std::string& file, Ranks& ranks) {
  if (metadata.world_size.value_or(1) > 1) {
    const auto operations = [](const RankTrace& rank) { return rank.device_ops.size(); };
    std::iter_swap(ranks.begin(), std::ranges::max_element(ranks, {}, operations));
  }
  for (RankTrace& rank : ranks) {
    set_rank(options, metadata, rank);
    rank.provenance.source = std::filesystem::path(file).filename().string();
    rank.provenance.format = "kineto";
    rank.provenance.tool = metadata.tool;
  }
}

Result<KinetoProcess> import_from(ByteStream& source, const std::string& file,
                                  const ImportOptions& options, std::function<void()> on_block) {
  TextWindow window(source, options.max_event_bytes, std::move(on_block));
  KinetoReader reader(window);
  reader.run();
  KinetoRecords records = reader.take_records();
  records.trace.counters.merge(reader.counts());
  const bool damaged = source.damaged();
  const bool cut = damaged || reader.shape().truncated;
  if (damaged) count_cut(kineto::kGzipDamaged, file, window, reader, records.trace.counters);
  if (reader.shape().truncated) {
    count_cut(kineto::kTruncated, file, window, reader, records.trace.counters);
  }
  const KinetoMetadata metadata = reader.metadata(records.trace.counters);
  const std::string reason = refusal(reader.shape(), metadata, records);
  if (!reason.empty()) {
    if (!cut || !records.ops.empty()) return fail(file, "", reason);
    const std::string rest =
        reader.shape().events > 0 ? ", none of them a device operation" : ": " + reason;
    return fail(file, "", "truncated after " + read_so_far(window, reader) + rest);
  }
  Ranks ranks = join_records(std::move(records), metadata);
  name_ranks(options, metadata, file, ranks);
  return KinetoProcess{std::move(ranks), metadata.rank.has_value()};
}

}  // namespace

Result<KinetoProcess> import_kineto_process(const std::filesystem::path& path,
                                            const ImportOptions& options,
                                            const ProgressCallback& progress) {
  BUBBLESIM_ASSIGN_OR_RETURN(ByteStream source, ByteStream::open(path));
  const std::string file = path.string();
  std::function<void()> on_block;
  if (progress) {
    on_block = [&] { progress({file, source.consumed(), source.total()}); };
  }
  return import_from(source, file, options, std::move(on_block));
}

Result<RankTrace> import_kineto_text(std::string_view text, std::string_view source,
                                     const ImportOptions& options) {
  ByteStream bytes = ByteStream::from_memory(text);
  BUBBLESIM_ASSIGN_OR_RETURN(KinetoProcess process,
                             import_from(bytes, std::string(source), options, {}));
  return std::move(process.ranks.front());
}

namespace {

// One file a rank makes a job: who is which rank, and do the files belong together.

namespace fs = std::filesystem;

struct JobFile {
  fs::path path;
  RankTrace trace;
  bool has_rank = false;  ///< the file itself gave it
  std::optional<std::uint32_t> named_rank = rank_in_name(path);
  std::vector<RankTrace> others{};  ///< of further GPUs of the process
  std::optional<Error> refused{};  ///< why it is no trace of a rank

  [[nodiscard]] std::uint32_t rank() const { return trace.rank; }
  void set_rank(std::uint32_t rank) { trace.rank = rank; }
  [[nodiscard]] CounterSet& counters() { return trace.counters; }
  [[nodiscard]] std::string source() const { return path.string(); }
};

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
  if (!process) return JobFile{.path = path, .trace = {}, .refused = process.error()};
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

/// Of a file named NAME.TIME.pt.trace.json the part before the time, else nothing. So PyTorch's
/// tensorboard_trace_handler names the file of each cycle of one process's schedule.
std::string process_of(const fs::path& path) {
  const std::string text = path.string();
  const std::string_view name = std::string_view(text).substr(0, text.find(".pt.trace.json"));
  const std::size_t dot = name.rfind('.');
  if (name.size() == text.size() || dot == std::string_view::npos) return {};
  const bool is_time = name.find_first_not_of("0123456789", dot + 1) == std::string_view::npos;
  return is_time ? std::string(name.substr(0, dot)) : std::string();
}

/// Fault: two files of one process, one recording after the other.
Result<void> refuse_cycles(const std::vector<JobFile>& files) {
  std::map<std::string, const JobFile*> seen;
  for (const JobFile& file : files) {
    const std::string process = process_of(file.path);
    const auto [first, fresh] = seen.try_emplace(process, &file);
    if (process.empty() || fresh) continue;
    return fail(file.source(), {},
                "is a later recording of the process that wrote " + first->second->source() +
                    "; expected the files of one recording: name them, or move the others away");
  }
  return {};
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
  BUBBLESIM_RETURN_IF_ERROR(refuse_cycles(files));
  BUBBLESIM_RETURN_IF_ERROR(
      order_by_rank(files, kineto::kRankFromName, kineto::kRankFromOrder));
  BUBBLESIM_ASSIGN_OR_RETURN(const std::uint32_t world, agree_on_world(files));
  return all_ranks(std::move(files), world);
}

}  // namespace bubblesim::traces
