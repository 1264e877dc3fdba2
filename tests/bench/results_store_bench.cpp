// What the results store takes and gives: runs added in transactions of 100, rows read back.
// BUBBLESIM_BENCH_STORE names another store than a file in the temporary folder, such as
// postgresql://...; it must be empty, and keeps what is written.
#include <benchmark/benchmark.h>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <unistd.h>

#include "sim/store/results_store.hpp"
#include "tests/unit/sim/store/sample_record.hpp"

namespace {

namespace fs = std::filesystem;
using namespace bubblesim;
using namespace bubblesim::store;

constexpr std::size_t kBatch = 100;

/// A folder that goes when the benchmark does.
class Place {
 public:
  Place() {
    std::string pattern = (fs::temp_directory_path() / "store_bench_XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
  }
  ~Place() { fs::remove_all(folder_); }
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;

  [[nodiscard]] std::string where() const {
    const char* given = std::getenv("BUBBLESIM_BENCH_STORE");
    return given == nullptr ? (folder_ / "results.db").string() : given;
  }
  [[nodiscard]] std::uint64_t bytes() const {
    std::error_code absent;
    const auto size = fs::file_size(folder_ / "results.db", absent);
    return absent ? 0 : size;
  }

 private:
  fs::path folder_;
};

std::string example_config() {
  std::ifstream file(BUBBLESIM_SOURCE_DIR "/configs/runs/example.json");
  std::string text;
  for (char c = 0; file.get(c);) {
    if (c != '\n') text += c;
  }
  return text;
}

/// A run of so many policies: a row each, and a histogram of 1,000 latencies each but the first.
RunRecord template_record(std::uint32_t policies) {
  RunRecord record = sample_record(1);
  record.run.config = example_config();
  record.rows.clear();
  record.latencies.clear();
  for (std::uint32_t policy = 0; policy < policies; ++policy) {
    record.rows.push_back(sample_row(policy, "policy_" + std::to_string(policy)));
    RecordedLatency latency;
    latency.policy = policy;
    for (int i = 0; i < 1000; ++i) {
      latency.histogram.add(std::chrono::microseconds(2000 + (i * i % 30011 * 7919) % 30011));
    }
    record.latencies.push_back(latency);
  }
  return record;
}

std::vector<RunRecord> next_batch(const RunRecord& record, std::uint64_t& number) {
  std::vector<RunRecord> batch(kBatch, record);
  for (RunRecord& row : batch) {
    row.run.index = number;
    // Keys are hashes: neighbours in the plan are not neighbours by key.
    row.run.key = sample_key(number * 0x9E3779B97F4A7C15U);
    ++number;
  }
  return batch;
}

void check(benchmark::State& state, bool right, const std::string& text) {
  if (!right) state.SkipWithError(text.c_str());
}

void add(benchmark::State& state) {
  const Place place;
  auto store = open_store(place.where(), StoreAccess::kWrite);
  if (!store) return check(state, false, store.error().text());
  const auto policies = static_cast<std::uint32_t>(state.range(0));
  const RunRecord record = template_record(policies);
  std::uint64_t number = 0;
  for (auto _ : state) {
    state.PauseTiming();
    const auto batch = next_batch(record, number);
    state.ResumeTiming();
    const auto added = (*store)->add(batch);
    if (!added || *added != kBatch) return check(state, false, "not stored");
  }
  store->reset();
  const auto runs = static_cast<double>(number);
  state.counters["results/s"] = benchmark::Counter(runs, benchmark::Counter::kIsRate);
  state.counters["rows/s"] = benchmark::Counter(runs * policies, benchmark::Counter::kIsRate);
  state.counters["B/run"] = static_cast<double>(place.bytes()) / runs;
}
BENCHMARK(add)->Arg(1)->Arg(8)->Unit(benchmark::kMillisecond)->UseRealTime();

void read_rows(benchmark::State& state) {
  const Place place;
  auto store = open_store(place.where(), StoreAccess::kWrite);
  if (!store) return check(state, false, store.error().text());
  const RunRecord record = template_record(1);
  std::uint64_t number = 0;
  while (number < 5000) {
    if (!(*store)->add(next_batch(record, number))) return check(state, false, "not stored");
  }
  std::size_t rows = 0;
  for (auto _ : state) {
    const auto read = (*store)->each_row({}, [&](const StoredRow&) { ++rows; });
    if (!read) return check(state, false, read.error().text());
  }
  state.counters["rows/s"] =
      benchmark::Counter(static_cast<double>(rows), benchmark::Counter::kIsRate);
}
BENCHMARK(read_rows)->Unit(benchmark::kMillisecond)->UseRealTime();

}  // namespace
