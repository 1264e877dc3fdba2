// Peak memory of reading a trace, over what the trace holds: each file is read in a process of its
// own, whose peak of resident memory is compared with what it had before it opened the file,
// once its code was there.
//
//     build/release/tests/bench/import_memory_bench [TRACE.json | TRACE.json.gz | TRACE.btr ...]
//
// Without a file: texts as kineto_import_bench makes them, and the .btr files that they become;
// --quick: the smallest only.
#include <cstdio>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <functional>
#include <malloc.h>
#include <string>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#include "tests/bench/generated_kineto.hpp"
#include "tests/unit/traces/import/gzip_samples.hpp"
#include "traces/format/trace_reader.hpp"
#include "traces/format/trace_writer.hpp"
#include "traces/import/kineto_import.hpp"

namespace bubblesim::traces {
namespace {

namespace fs = std::filesystem;

template <class Record>
std::size_t bytes_of(const std::vector<Record>& records) {
  return records.size() * sizeof(Record);
}

/// Bytes of records and names: what the trace says, without what containers add to hold it.
std::size_t bytes_of(const JobTrace& job) {
  std::size_t bytes = 0;
  for (const RankTrace& trace : job.ranks) {
    bytes += bytes_of(trace.host_calls) + bytes_of(trace.device_ops) + bytes_of(trace.edges) +
             bytes_of(trace.collectives) + bytes_of(trace.markers) + bytes_of(trace.memory) +
             bytes_of(trace.stalls) + bytes_of(trace.clocks) +
             trace.shapes.size() * sizeof(LaunchShape);
    for (const Collective& item : trace.collectives) bytes += bytes_of(item.peers);
    for (std::uint32_t i = 0; i < trace.names.size(); ++i) {
      bytes += sizeof(std::string) + trace.names[NameId{i}].size();
    }
  }
  return bytes;
}

/// KiB that this process has had resident at most.
std::size_t peak_kib() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::size_t>(usage.ru_maxrss);
}

/// KiB that this process has resident now.
std::size_t resident_kib() {
  std::size_t all = 0;
  std::size_t resident = 0;
  std::ifstream("/proc/self/statm") >> all >> resident;
  return resident * static_cast<std::size_t>(sysconf(_SC_PAGESIZE)) / 1024;
}

bool is_btr(const fs::path& path) { return path.extension() == ".btr"; }

Result<JobTrace> read(const fs::path& path) {
  if (is_btr(path)) {
    BUBBLESIM_ASSIGN_OR_RETURN(auto outcome, format::read_job(path.string()));
    return std::move(outcome.job);
  }
  BUBBLESIM_ASSIGN_OR_RETURN(KinetoProcess process, import_kineto_process(path));
  JobTrace job;
  job.ranks.push_back(std::move(process.ranks.front()));
  return job;
}

/// Reads something small in every form, so that the program's own pages do not count.
void warm_up() {
  const std::string text = bench::generated_kineto(1);
  static_cast<void>(import_kineto_text(text, "warm.json"));
  static_cast<void>(import_kineto_text(sample::gzip(text), "warm.json.gz"));
  static_cast<void>(format::read_job_bytes({}, "warm.btr"));
  malloc_trim(0);
}

int measure(const fs::path& path) {
  warm_up();
  const std::size_t before = resident_kib();
  const auto job = read(path);
  const std::size_t peak = peak_kib() - before;
  if (!job) {
    fmt::print(stderr, "{}\n", job.error().text());
    return 1;
  }
  const double result = static_cast<double>(bytes_of(*job)) / 1024;
  const double file = static_cast<double>(fs::file_size(path)) / 1024;
  fmt::print("{:<40.40} {:>10.0f} {:>10.0f} {:>10} {:>8.2f}\n", path.filename().string(), file,
             result, peak, static_cast<double>(peak) / result);
  return 0;
}

/// Runs `work` in a process of its own, whose peak nothing before it has raised.
bool in_child(const std::function<int()>& work) {
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    const int code = work();
    std::fflush(nullptr);
    _exit(code);
  }
  int status = 1;
  return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

int write_btr(const fs::path& json, const fs::path& btr) {
  const auto job = read(json);
  return job && format::write_job(btr.string(), *job) ? 0 : 1;
}

bool measure_generated(const fs::path& folder, int steps) {
  const fs::path json = folder / fmt::format("generated-{}.json", steps);
  const fs::path btr = folder / fmt::format("generated-{}.btr", steps);
  return in_child([&] {
           std::ofstream(json) << bench::generated_kineto(steps);
           return write_btr(json, btr);
         }) &&
         in_child([&] { return measure(json); }) && in_child([&] { return measure(btr); });
}

int measure_all_generated(const std::vector<int>& sizes) {
  std::string folder = (fs::temp_directory_path() / "import_memory_bench_XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) return 1;
  bool good = true;
  for (const int steps : sizes) good = measure_generated(folder, steps) && good;
  fs::remove_all(folder);
  return good ? 0 : 1;
}

int run(const std::vector<fs::path>& paths) {
  fmt::print("{:<40} {:>10} {:>10} {:>10} {:>8}\n", "file", "file KiB", "result KiB", "peak KiB",
             "ratio");
  if (paths.empty()) return measure_all_generated({2'000, 20'000, 200'000});
  if (paths.front() == "--quick") return measure_all_generated({2'000});
  bool good = true;
  for (const fs::path& path : paths) good = in_child([&] { return measure(path); }) && good;
  return good ? 0 : 1;
}

}  // namespace
}  // namespace bubblesim::traces

int main(int count, char** arguments) {
  return bubblesim::traces::run({arguments + 1, arguments + count});
}
