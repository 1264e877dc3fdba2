// Writes pages for report_page_test.py: report_fixture FOLDER.
//
// small.html: two sweeps. "load" has policies exclusive, mps, tgs and an oracle at loads 50, 100,
// 200 with three seeds, a failed run, a counter of severity error and a timeline; its names hold
// what would break a page out of its data. "devices" has no axis of numbers.
// large.html: 5,000 runs, each a point of its own but for 5 seeds.
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string_view>

#include "sim/report/report_page.hpp"
#include "tests/unit/sim/store/sample_record.hpp"

namespace bubblesim::report {
namespace {

namespace fs = std::filesystem;

constexpr const char* kHostile = "</script><script>window.broken=1</script><img src=x onerror=a>";
constexpr CounterSpec kUntrusted{"run_cut", Severity::kError, "the run was cut"};

struct Figures {
  double p95 = 0;
  double kept = 0;
  double rate = 0;
  double recovered = 0;
};

store::RunRecord record_of(std::uint64_t number, const std::string& policy, std::uint64_t seed,
                    const std::string& pointer, const std::string& value,
                    const Figures& figures) {
  store::RunRecord record = store::sample_record(number);
  record.rows.erase(record.rows.begin());
  record.latencies.clear();
  record.rows[0].policy = 0;
  record.run.seed = seed;
  record.run.settings = {{"/policies/0", '"' + policy + '"'}, {pointer, value}};
  record.run.config = R"({"seed":)" + std::to_string(seed) + R"(,"policies":[")" + policy +
                      R"("],"fillers":[{"name":"encoder","rate":)" + value + "}]}";
  set_cell(record, 0, "policy", policy);
  set_cell(record, 0, "filler", std::string("encoder"));
  set_cell(record, 0, "device", std::string("NVIDIA A100"));
  set_cell(record, 0, "oracle", std::int64_t{policy == "ideal" ? 1 : 0});
  set_cell(record, 0, "latency_p95_ms", figures.p95);
  set_cell(record, 0, "training_normalised_fraction", figures.kept);
  set_cell(record, 0, "filler_requests_per_s", figures.rate);
  set_cell(record, 0, "bubble_recovered_fraction", figures.recovered);
  set_cell(record, 0, "losses", std::string());
  return record;
}

void add_load_sweep(std::vector<store::RunRecord>& records) {
  struct Policy {
    const char* name;
    double p95, kept;
  };
  std::uint64_t number = 0;
  for (const Policy& policy : {Policy{"exclusive", 400, 1.0}, Policy{"mps", 20, 0.9},
                               Policy{"tgs", 60, 0.97}, Policy{"ideal", 10, 1.0}}) {
    for (const int load : {50, 100, 200}) {
      for (std::uint64_t seed = 1; seed <= 3; ++seed) {
        const double more = 1 + load / 400.0 + 0.01 * static_cast<double>(seed);
        store::RunRecord record =
            record_of(number++, policy.name, seed, "/fillers/0/arrivals/rate_per_s",
                      std::to_string(load),
                      {policy.p95 * more, policy.kept / more, load * 0.98, 0.2 * more});
        record.host = kHostile;
        if (number == 5) record.counters.add(kUntrusted);
        // One seed of one point.
        if (policy.name == std::string_view("tgs") && load == 100 && seed == 2) {
          set_cell(record, 0, "losses", std::string("program_delays_unexplained"));
        }
        records.push_back(std::move(record));
      }
    }
  }
  records.push_back(store::failed_record(number, std::string("no such file: ") + kHostile));
}

void add_device_sweep(std::vector<store::RunRecord>& records) {
  std::uint64_t number = 500;
  for (const char* policy : {"mps", "tgs"}) {
    for (const char* device : {"\"a100\"", "\"h100\""}) {
      records.push_back(record_of(number++, policy, 1, "/device", device, {5, 0.9, 100, 0.5}));
      records.back().sweep = "with devices";
    }
  }
}

ReportTimeline timeline_of(const store::RunRecord& record) {
  ReportTimeline timeline;
  timeline.key = record.run.key;
  timeline.policy = "mps";
  timeline.chart.length = std::chrono::milliseconds(100);
  timeline.iteration_ns = 80'000'000;
  timeline.same_result = true;
  traces::ChromeTrace trace;
  trace.processes = {"GPU 0"};
  trace.tracks = {{0, "training: device", {}}, {0, "encoder: device", {}}};
  for (std::int64_t i = 0; i < 40; ++i) {
    trace.slices.push_back({static_cast<std::uint32_t>(i % 2), kHostile,
                            i % 3 == 0 ? "collective" : "kernel", i * 2'400'000, 2'000'000});
  }
  add_lanes(trace, {}, timeline);
  return timeline;
}

std::vector<store::RunRecord> many(std::uint64_t runs, std::uint64_t seeds) {
  std::vector<bubblesim::store::RunRecord> records;
  for (std::uint64_t i = 0; i < runs; ++i) {
    const std::uint64_t point = i / seeds;
    const double load = 10 + static_cast<double>(point / 8);
    const double kept = 1 - 0.08 * static_cast<double>(point % 8) - 0.0001 * load;
    const double p95 = 20 + 400 * std::abs(std::sin(static_cast<double>(point))) / kept;
    records.push_back(record_of(i, "policy" + std::to_string(point % 8), i % seeds + 1,
                                "/fillers/0/arrivals/rate_per_s", std::to_string(point / 8 + 10),
                                {p95, kept, load, kept / 2}));
  }
  return records;
}

bool write_page(const fs::path& folder, const std::string& name,
                const std::vector<store::RunRecord>& records, bool with_timeline) {
  const auto store =
      store::open_store((folder / (name + ".db")).string(), store::StoreAccess::kWrite);
  if (!store || !(*store)->add(records)) return false;
  auto data = collect_report(**store, {});
  if (!data) {
    std::fprintf(stderr, "%s\n", data.error().text().c_str());
    return false;
  }
  data->title = "Fixture " + std::string(kHostile);
  if (with_timeline) data->timelines.push_back(timeline_of(records[9]));
  std::ofstream out(folder / (name + ".html"), std::ios::binary);
  out << report_page(*data);
  return static_cast<bool>(out);
}

}  // namespace
}  // namespace bubblesim::report

int main(int argc, char** argv) {
  using namespace bubblesim::report;
  if (argc < 2) return 2;
  const fs::path folder = argv[1];
  std::vector<bubblesim::store::RunRecord> records;
  add_load_sweep(records);
  add_device_sweep(records);
  const std::uint64_t seeds = argc > 2 ? std::stoull(argv[2]) : 5;
  return write_page(folder, "small", records, true) &&
                 write_page(folder, "large", many(5000, seeds), false)
             ? 0
             : 1;
}
