#include "capture/control/collect_recordings.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <iterator>
#include <system_error>
#include <tuple>

#include "traces/format/trace_reader.hpp"
#include "traces/format/trace_writer.hpp"
#include "traces/join/join_recording.hpp"

namespace bubblesim::capture {
namespace {

namespace fs = std::filesystem;
using traces::DeviceOpKind;
using traces::RankTrace;

/// "rank0.btr" as the file of another rank, if that name is free.
std::string named_for(const std::string& path, std::uint32_t rank) {
  const fs::path name = fs::path(path).filename();
  if (name != "rank0.btr" && !name.string().starts_with("rank0.pid")) return path;
  const fs::path wanted =
      fs::path(path).parent_path() / ("rank" + std::to_string(rank) + ".btr");
  std::error_code fault;
  return fs::exists(wanted, fault) ? path : wanted.string();
}

// Bounds of the records seen so far.
struct Span {
  TraceTime first = TraceTime::max();
  TraceTime last = TraceTime::min();

  void add(TraceTime start, TraceTime end) {
    first = std::min(first, start);
    last = std::max(last, end);
  }
  [[nodiscard]] Duration length() const { return last > first ? last - first : Duration{}; }
};

void count_ops(const RankTrace& trace, RecordingSummary& summary, Span& span) {
  for (const traces::DeviceOp& op : trace.device_ops) {
    span.add(op.start, op.end());
    switch (op.kind) {
      case DeviceOpKind::kKernel: ++summary.kernels; break;
      case DeviceOpKind::kCollective: ++summary.collectives; break;
      case DeviceOpKind::kCopy:
      case DeviceOpKind::kMemset: ++summary.copies; break;
    }
  }
}

void count_losses(const CounterSet& file, const CounterSet& rank, RecordingSummary& summary) {
  for (const auto& [name, entry] : rank) {
    if (entry.severity == Severity::kLoss) summary.lost += entry.count;
  }
  summary.lost += file.count("btr_records_lost");
  for (const auto& [name, entry] : file) {
    if (entry.severity == Severity::kLoss) summary.complete = false;
  }
}

RecordingSummary summary_of(const RankTrace& trace, const CounterSet& file,
                            const std::string& path) {
  RecordingSummary summary;
  summary.path = path;
  summary.rank = trace.rank;
  summary.world_size = trace.world_size;
  summary.device = trace.device.name;
  Span span;
  count_ops(trace, summary, span);
  summary.calls = trace.host_calls.size();
  for (const traces::HostCall& call : trace.host_calls) span.add(call.start, call.end());
  for (const traces::Marker& marker : trace.markers) {
    const bool iteration = marker.kind == traces::MarkerKind::kIteration;
    ++(iteration ? summary.iterations : summary.ranges);
  }
  summary.span = span.length();
  count_losses(file, trace.counters, summary);
  summary.counters = trace.counters;
  summary.counters.merge(file);
  return summary;
}

// The steps that all recordings have in common.
CollectedRecordings collect_all(const std::vector<std::string>& paths,
                                const std::function<std::string(const std::string&)>& destination,
                                const CollectProgress& progress) {
  CollectedRecordings collected;
  for (const std::string& path : paths) {
    if (progress) progress(path);
    auto read = collect_recording(path, destination(path));
    if (!read) {
      collected.faults.push_back(read.error());
      continue;
    }
    for (RecordingSummary& summary : *read) collected.recordings.push_back(std::move(summary));
  }
  std::sort(collected.recordings.begin(), collected.recordings.end(),
            [](const RecordingSummary& a, const RecordingSummary& b) {
              return std::tie(a.rank, a.path) < std::tie(b.rank, b.path);
            });
  return collected;
}

std::string host_name() {
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0) return "host";
  std::string text = name.data();
  std::replace(text.begin(), text.end(), '/', '_');
  return text;
}

}  // namespace

Result<std::vector<RecordingSummary>> collect_recording(const std::string& path,
                                                        const std::string& wanted) {
  BUBBLESIM_ASSIGN_OR_RETURN(auto outcome, traces::format::read_job(path));
  std::vector<RecordingSummary> summaries;
  std::string destination = wanted;
  bool joined = false;
  traces::JobTrace job;
  for (RankTrace& rank : outcome.job.ranks) {
    joined = joined || traces::is_recording(rank);
    const std::uint32_t said = rank.rank;
    std::vector<RankTrace> ranks = traces::join_process(std::move(rank));
    if (ranks.front().rank != said) destination = named_for(wanted, ranks.front().rank);
    std::ranges::move(ranks, std::back_inserter(job.ranks));
  }
  for (RankTrace& rank : job.ranks) {
    summaries.push_back(summary_of(rank, outcome.counters, destination));
    // The new file is undamaged, so a count must state the losses of the old one.
    rank.counters.merge(outcome.counters);
  }
  std::error_code fault;
  if (joined) {
    // The new file gets the old one's permissions to read.
    const auto rights = static_cast<unsigned>(fs::status(path, fault).permissions()) & 0666U;
    BUBBLESIM_RETURN_IF_ERROR(
        traces::format::write_job(destination, job, {.rights = rights}));
    if (destination != path) fs::remove(path, fault);
  } else if (destination != path) {
    fs::rename(path, destination, fault);
    if (fault) return fail(path, {}, "cannot be moved to " + destination + ": " + fault.message());
  }
  const std::uintmax_t bytes = fs::file_size(destination, fault);
  for (RecordingSummary& summary : summaries) summary.bytes = fault ? 0 : bytes;
  return summaries;
}

std::vector<std::string> recordings_in(const std::string& folder) {
  std::vector<std::string> found;
  std::error_code fault;
  for (fs::recursive_directory_iterator entry(folder, fault), end; !fault && entry != end;
       entry.increment(fault)) {
    std::error_code ignored;
    if (entry->path().extension() == ".btr" && entry->is_regular_file(ignored)) {
      found.push_back(entry->path().string());
    }
  }
  std::sort(found.begin(), found.end());
  return found;
}

std::string whole_name(const std::string& path) {
  constexpr std::string_view growing = ".recording.btr";
  if (!path.ends_with(growing)) return path;
  return path.substr(0, path.size() - growing.size()) + ".btr";
}

CollectedRecordings collect_in_place(const std::vector<std::string>& paths) {
  const auto destination = [](const std::string& path) {
    std::error_code fault;
    const std::string whole = whole_name(path);
    return fs::exists(whole, fault) ? path : whole;
  };
  return collect_all(paths, destination, {});
}

Result<JobFolder> JobFolder::make(const std::string& output) {
  JobFolder made;
  made.output_ = output;
  made.tag_ = host_name() + "." + std::to_string(getpid());
  made.path_ = output + "/recording." + made.tag_;
  std::error_code fault;
  fs::create_directories(made.path_, fault);
  if (fault) return fail(output, {}, "cannot be made or written to: " + fault.message());
  return made;
}

std::string JobFolder::destination(const std::string& file) const {
  const fs::path name = fs::path(whole_name(file)).filename();
  const fs::path inside = fs::path(file).parent_path().lexically_relative(path_);
  const fs::path folder = (fs::path(output_) / inside / "").lexically_normal();
  std::error_code fault;
  fs::create_directories(folder, fault);
  if (!fs::exists(folder / name, fault)) return (folder / name).string();
  return (folder / (name.stem().string() + "." + tag_ + ".btr")).string();
}

CollectedRecordings JobFolder::collect(const std::vector<std::string>& busy,
                                       const CollectProgress& progress) const {
  std::vector<std::string> paths = recordings_in(path_);
  std::erase_if(paths, [&](const std::string& path) {
    return std::find(busy.begin(), busy.end(), path) != busy.end();
  });
  auto collected = collect_all(
      paths, [this](const std::string& path) { return destination(path); }, progress);
  std::error_code left_as_it_is;  // removal fails while files are in it
  for (const fs::directory_entry& entry : fs::directory_iterator(path_, left_as_it_is))
    if (entry.is_directory(left_as_it_is)) fs::remove(entry.path(), left_as_it_is);
  fs::remove(path_, left_as_it_is);
  return collected;
}

}  // namespace bubblesim::capture
