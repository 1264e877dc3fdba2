#include "tests/validation/recorded_jobs.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <thread>

#include "sim/run/load_trace.hpp"
#include "sim/run/parallel.hpp"
#include "sim/workload/program_builder.hpp"

namespace bubblesim::validation {
namespace {

namespace fs = std::filesystem;

const std::string kDevices = std::string(BUBBLESIM_SOURCE_DIR) + "/configs/devices";

// README.md of the data folder says which files belong together.
constexpr std::array<const char*, 7> kFolders{
    "KellerJordan+modded-nanogpt",
    "ModelTC+lightllm/test/model/logs",
    "ModelTC+lightllm/test/model/logs_sglang",
    "pytorch+torchrec/examples/golden_training/log/resnet18",
    "pytorch+torchrec/examples/golden_training/trace/sst_long_a2a_optimizer",
    "pytorch+torchrec/examples/golden_training/trace/sst_long_a2a_optimizer_3",
    "pytorch+torchrec/examples/golden_training/trace/sst_long_a2a_optimizer_5_qcomm"};
// Two runs of four ranks in one folder; the process numbers in the names are in order of the runs.
constexpr const char* kTwoRuns =
    "pytorch+torchrec/examples/golden_training/trace/sst_long_a2a_optimizer_2";
constexpr std::size_t kRanksOfARun = 4;

std::string cell(const std::string& line, std::size_t column) {
  std::size_t begin = 0;
  for (; column > 0; --column) {
    const std::size_t tab = line.find('\t', begin);
    if (tab == std::string::npos) return {};
    begin = tab + 1;
  }
  return line.substr(begin, line.find('\t', begin) - begin);
}

std::vector<std::string> files_below(const fs::path& folder) {
  std::vector<std::string> files;
  std::error_code fault;
  for (fs::recursive_directory_iterator it(folder, fault), end; !fault && it != end;
       it.increment(fault)) {
    if (it->is_regular_file()) files.push_back(it->path().string());
  }
  std::sort(files.begin(), files.end());
  return files;
}

bool has_host_calls(const traces::JobTrace& job) {
  return std::any_of(job.ranks.begin(), job.ranks.end(),
                     [](const auto& rank) { return !rank.host_calls.empty(); });
}

Result<LoadedJob> build(const std::string& name, const traces::JobTrace& trace) {
  CounterSet counters;
  auto device = run::device_for_replay(trace, kDevices, counters);
  if (!device) return tl::unexpected<Error>(device.error().front());
  auto program = workload::build_job_program(trace, *device, {workload::Window::kWhole});
  if (!program) return tl::unexpected<Error>(program.error());
  return LoadedJob{name, std::move(*program), std::move(*device)};
}

Replayed replay(const RecordedJob& job) {
  Replayed result;
  result.name = job.name;
  const auto trace = run::load_trace(job.paths);
  if (!trace) {
    result.fault = trace.error().message;
    return result;
  }
  result.has_host_calls = has_host_calls(trace->job);
  if (!result.has_host_calls) return result;
  const auto loaded = build(job.name, trace->job);
  if (!loaded) {
    result.fault = loaded.error().text();
    return result;
  }
  auto report = workload::replay_alone(loaded->program, loaded->device);
  if (!report) {
    result.fault = report.error().text();
  } else {
    result.report = std::move(*report);
  }
  return result;
}

}  // namespace

bool has_data(const std::string& data_folder) {
  return fs::exists(fs::path(data_folder) / "INDEX.tsv");
}

std::vector<RecordedJob> single_files(const std::string& data_folder) {
  std::vector<RecordedJob> jobs;
  std::ifstream index(fs::path(data_folder) / "INDEX.tsv");
  for (std::string line; std::getline(index, line);) {
    if (cell(line, 1) != "kineto") continue;
    const std::string file = cell(line, 0);
    jobs.push_back({file, {(fs::path(data_folder) / file).string()}});
  }
  return jobs;
}

std::vector<RecordedJob> whole_jobs(const std::string& data_folder) {
  std::vector<RecordedJob> jobs;
  for (const char* folder : kFolders) {
    jobs.push_back({folder, files_below(fs::path(data_folder) / folder)});
  }
  const std::vector<std::string> both = files_below(fs::path(data_folder) / kTwoRuns);
  for (std::size_t first = 0; first < both.size(); first += kRanksOfARun) {
    const std::size_t last = std::min(first + kRanksOfARun, both.size());
    jobs.push_back({kTwoRuns + std::string(", run ") + std::to_string(first / kRanksOfARun + 1),
                    {both.begin() + static_cast<std::ptrdiff_t>(first),
                     both.begin() + static_cast<std::ptrdiff_t>(last)}});
  }
  return jobs;
}

std::size_t Replayed::iterations() const {
  std::size_t most = 0;
  for (const auto& rank : report.ranks) most = std::max(most, rank.recorded.size());
  return most;
}

double Replayed::span_error() const {
  double sum = 0;
  for (const auto& rank : report.ranks) sum += rank.span_error();
  return report.ranks.empty() ? 0 : sum / static_cast<double>(report.ranks.size());
}

Result<LoadedJob> load(const RecordedJob& job) {
  BUBBLESIM_ASSIGN_OR_RETURN(const run::LoadedTrace trace, run::load_trace(job.paths));
  return build(job.name, trace.job);
}

std::vector<Replayed> replay_all(const std::vector<RecordedJob>& jobs) {
  std::vector<Replayed> results(jobs.size());
  run::for_each_parallel(jobs.size(), std::thread::hardware_concurrency(),
                         [&](std::size_t i) { results[i] = replay(jobs[i]); });
  return results;
}

}  // namespace bubblesim::validation
