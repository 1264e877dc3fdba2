// The job of small_job.hpp beside a filler F (1 ms on 50 SMs; 100 us from its end to the next
// one's launch) for 15 ms, by hand. Times in ms. At 0 both launch; F is first, since training's
// thread marks its iteration before.
//
// exclusive: the job alone; iterations of 7, twice, and 1 of the third. GPU 0 is busy for
//   5 + 5 + 1 of 15 = 0.733; without A, B, C for 15 - 3 - 3 - 1 = 8 of 15 = 0.533. SMs of
//   training: 2 x (3 + 2 x 0.2) + 1 = 7.8 of 15 = 0.520.
//
// time_slicing: turns of 1 with 0.1 between: F 0 - 1, A 1.1 - 2.1, F 2.2 - 3.2, and so on. B of
//   rank 1 needs two turns, 3.3 - 4.3 and 5.5 - 6.5; so AR has its second rank at 7.7 and ends at
//   8.7. C ends at 10.9, and 2 later the iteration, at 12.9. Passes: 7 a GPU. GPU 0: bubble 15 -
//   A, B, C, A = 11 of 15 = 0.733, of which F runs in 7 + 0.7 = 7.7 of 11 = 0.700 and on half of
//   the SMs 7.7 / 2 of 15 = 0.257. Nothing runs for 13 switches and gaps of 0.1, but AR counts
//   while it stands still, in two of them: busy 13.9 of 15 = 0.927. SMs of training: 4 + 2 x 0.2 of
//   15 = 0.293.
//
// mps: F holds 50 SMs from 0 to 1, so A places half of its blocks at 0 and the rest at 1: 2 long.
//   B finds 50 SMs at 2 and 50 more when F ends at 2.1: its blocks end at 3 and 3.1 (rank 1: at 4
//   and 4.1). F, launched at 2.2, waits for the first of them. AR 3.1 - 5.1 leaves 80 SMs: F
//   beside it. C 5.1 - 6.1, iteration 6.1 + 2 = 8.1. Passes that ended: 10 on GPU 0, 8 on GPU 1.
//   GPU 0 idles from 7.1 to 7.2: busy 14.9 of 15. Bubbles 3.1 - 5.1, 6.1 - 8.1, 11.1 - 13.1, 14.4
//   - 15: 6.6 of 15 = 0.440; F in them 1.9 + 1.9 + 1.8 + 0.6 = 6.2 of 6.6 = 0.939. SMs of F:
//   (10 + 0.9) / 2 of 15 = 0.363; of training 2 x 3.4 of 15 = 0.453.
//
// pipefill: bubbles measured alone: rank 0 2 - 4 (after B) and 5 - 7 (after C), rank 1 3 - 4 and
//   5 - 7. 0.6 of 2 less 0.1 is 1.1: one F fits; 0.6 of 1 less 0.1 is 0.5: none. Training is as
//   alone. F 2 - 3, 5 - 6, 9 - 10, 12 - 13 on GPU 0, two of them on GPU 1: 6 passes; held are
//   these and one more each: 8. GPU 0: bubble 8, F in 4 of it; busy 11 + 2 (5 - 6, 12 - 13).
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <string_view>
#include <tuple>

#include "policies/builtin.hpp"
#include "sim/base/input_file.hpp"
#include "sim/run/run_policies.hpp"
#include "sim/workload/kernel_table.hpp"
#include "tests/fault.hpp"
#include "tests/golden/filling/small_job.hpp"

namespace bubblesim::golden {
namespace {

const std::string kFolder = std::string(BUBBLESIM_SOURCE_DIR) + "/tests/golden/filling/";

run::LoadedRun load() {
  run::LoadedRun loaded;
  const std::string path = kFolder + "run.json";
  loaded.config =
      must(run::parse_run_config(*read_text_file(path), path, policies::builtin_policies()));
  loaded.device = small_gpu();
  loaded.training = small_job(loaded.device);
  loaded.fillers.push_back(run::LoadedFiller{
      must(workload::read_kernel_table(kFolder + "filler.csv", loaded.device, Duration{}))});
  return loaded;
}

std::string us(Duration span) { return std::to_string(to_ns(span) / 1000); }

std::string fixed(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3f", value);
  return text;
}

// One line an operation that has ended, by GPU and start; times in us.
std::string events(const observe::TimelineRecorder& timeline) {
  std::vector<observe::Slice> slices;
  for (const observe::Slice& slice : timeline.slices()) {
    if (slice.kind <= observe::SliceKind::kMemset) slices.push_back(slice);
  }
  std::stable_sort(slices.begin(), slices.end(), [](const auto& a, const auto& b) {
    return std::tuple(a.gpu, a.start, a.client) < std::tuple(b.gpu, b.start, b.client);
  });
  std::string text;
  for (const observe::Slice& slice : slices) {
    char line[64];
    std::snprintf(line, sizeof line, "%u  %-8s  %-2s  %5s - %5s\n", slice.gpu.value,
                  slice.client == ClientId{0} ? "training" : "filler",
                  timeline.text(slice.name).c_str(), us(slice.start - kSimStart).c_str(),
                  us(slice.end - kSimStart).c_str());
    text += line;
  }
  return text;
}

std::string summary(const observe::PolicyResult& result) {
  const observe::FillerResult& filler = result.fillers.front();
  std::string text = "iterations, us:";
  for (const Duration time : result.training.ranks.front().times) text += " " + us(time);
  return text + "; passes: " + std::to_string(filler.passes) +
         "; launches held: " + std::to_string(result.activity.holds) +
         "\nGPU 0: busy " + fixed(result.gpus[0].busy_fraction) + ", bubble " +
         fixed(result.gpus[0].bubble_fraction) + ", recovered " +
         fixed(result.gpus[0].recovered_fraction) + ", training's SMs " +
         fixed(result.gpus[0].training_sm_fraction) + ", filler's SMs " +
         fixed(result.gpus[0].filler_sm_fraction) + "\n\n";
}

// The run under the config's policy of this name, as text.
std::string output(std::string_view policy) {
  const run::LoadedRun loaded = load();
  std::size_t index = 0;
  while (loaded.config.policies[index].name != policy) ++index;
  observe::TimelineRecorder timeline;
  run::RunOptions options;
  options.timeline_of = index;
  options.timeline = &timeline;
  const policy::Registry registry = policies::builtin_policies();
  const auto report = run::run_policies(loaded, registry, options);
  if (!report) return report.error().text() + "\n";
  return summary(report->policies[index]) + events(timeline);
}

constexpr std::string_view kPolicies[] = {"exclusive", "time_slicing", "mps", "pipefill"};

class Filling : public testing::TestWithParam<std::string_view> {};

TEST_P(Filling, GivesTheReviewedOutput) {
  EXPECT_EQ(output(GetParam()), *read_text_file(kFolder + std::string(GetParam()) + ".txt"));
}

INSTANTIATE_TEST_SUITE_P(Policies, Filling, testing::ValuesIn(kPolicies),
                         [](const auto& tested) { return std::string(tested.param); });

}  // namespace

void write_outputs() {
  for (const std::string_view policy : kPolicies) {
    std::ofstream(kFolder + std::string(policy) + ".txt", std::ios::binary) << output(policy);
  }
}

}  // namespace bubblesim::golden

int main(int argc, char** argv) {
  if (argc == 2 && std::string_view(argv[1]) == "--write") {
    bubblesim::golden::write_outputs();
    return 0;
  }
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
