// One small run under every policy, drawn so that it can be followed by eye: the job of
// tests/golden/filling/small_job.hpp beside a filler of two kernels, F (0.5 ms on 50 of 100 SMs)
// and G (2,000 blocks on 100 SMs: 20 waves of 50 us). The whole document is policies/TIMELINES.md,
// reviewed like code; `golden_policies --write` writes it anew.
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <set>
#include <sstream>
#include <string_view>

#include "policies/builtin.hpp"
#include "sim/run/run_policies.hpp"
#include "sim/workload/kernel_table.hpp"
#include "tests/golden/filling/small_job.hpp"
#include "tests/golden/policies/timeline_text.hpp"

namespace bubblesim::golden {
namespace {

using namespace std::chrono_literals;

const std::string kRoot = std::string(BUBBLESIM_SOURCE_DIR) + "/";
const std::string kFolder = kRoot + "tests/golden/policies/";
const std::string kDocument = kRoot + "policies/TIMELINES.md";

constexpr std::string_view kHead = R"(# One iteration under every policy

Written by `golden_policies --write`, held by the test of that name; read it line by line when it
changes. GPU 0 of two, one column is 0.25 ms. Training's iteration alone takes 7 ms: A and B on all
100 SMs, the collective (a) on 20 of them for 2 ms, C, and 2 ms in which the host thinks. The filler
repeats F (one wave of 0.5 ms on 50 SMs) and G (20 waves of 50 us on all SMs), 50 us between the end
of one and the next launch. Letters are kernels, `=` a kernel that stands still, `h` a launch that
is held while nothing runs, `.` nothing. Where a policy's own constants are made for longer times,
the ones given are shorter. The two lines begin at the fourth iteration that would be (21 ms);
figures are those of 49 ms, GPU 0: iterations and filler passes that ended, launches held, and the
share of bubble time that the filler used.

)";

std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

run::LoadedRun load(const policy::Registry& registry) {
  run::LoadedRun loaded;
  const std::string path = kFolder + "run.json";
  auto config = run::parse_run_config(read_file(path), path, registry);
  EXPECT_TRUE(config) << (config ? "" : config.error().front().text());
  if (!config) return loaded;
  loaded.config = *config;
  loaded.device = small_gpu();
  loaded.device.mig = {7, 8, 14};
  loaded.device.memory = Bytes{40'000'000'000};
  loaded.training = small_job(loaded.device);
  auto filler = workload::read_kernel_table(kFolder + "filler.csv", loaded.device,
                                            Duration{50us});
  EXPECT_TRUE(filler) << (filler ? "" : filler.error().text());
  if (filler) loaded.fillers.push_back(*filler);
  return loaded;
}

std::string given_parameters(const policy::PolicySpec& spec, const policy::ParameterSet& set) {
  const policy::ParameterSet fallback = policy::defaults(spec);
  std::string text;
  for (auto at = set.begin(), usual = fallback.begin(); at != set.end(); ++at, ++usual) {
    if (at->second == usual->second) continue;
    text += (text.empty() ? " (`" : ", `") + at->first + ": " + policy::value_text(at->second) +
            "`";
  }
  return text.empty() ? text : text + ")";
}

std::string figures(const observe::PolicyResult& result) {
  char text[160];
  std::snprintf(text, sizeof text,
                "iterations %zu, passes %llu, launches held %llu, bubbles used %.0f %%\n",
                result.training.ranks.front().times.size(),
                static_cast<unsigned long long>(result.fillers.front().instances.front().passes),
                static_cast<unsigned long long>(result.activity.holds),
                100 * result.gpus.front().recovered_fraction);
  return text;
}

std::string section(const run::LoadedRun& loaded, const policy::Registry& registry,
                    std::size_t index) {
  const run::PolicyChoice& choice = loaded.config.policies[index];
  observe::TimelineRecorder timeline;
  run::RunOptions options;
  options.timeline_of = index;
  options.timeline = &timeline;
  const auto report = run::run_policies(loaded, registry, options);
  if (!report) return report.error().text() + "\n";
  const TimelineView view{GpuId{0}, kSimStart + Duration{21ms}, Duration{250us}, 84};
  return "## " + choice.name + given_parameters(**registry.find(choice.name), choice.parameters) +
         "\n\n```\n          " + timeline_ruler(view, Duration{7ms}) + "\ntraining  " +
         timeline_row(timeline, ClientId{0}, view) + "\nfiller    " +
         timeline_row(timeline, ClientId{1}, view) + "\n" + figures(report->policies[index]) +
         "```\n\n";
}

std::string document() {
  const policy::Registry registry = policies::builtin_policies();
  const run::LoadedRun loaded = load(registry);
  std::string text(kHead);
  for (std::size_t i = 0; i < loaded.config.policies.size(); ++i) {
    text += section(loaded, registry, i);
  }
  text.pop_back();
  return text;
}

TEST(timelines, are_the_reviewed_ones) { EXPECT_EQ(document(), read_file(kDocument)); }

TEST(timelines, show_every_policy) {
  const policy::Registry registry = policies::builtin_policies();
  const run::LoadedRun loaded = load(registry);
  std::set<std::string> shown;
  for (const run::PolicyChoice& choice : loaded.config.policies) shown.insert(choice.name);
  for (const policy::PolicySpec& spec : registry.all()) {
    EXPECT_TRUE(shown.contains(spec.name)) << spec.name;
  }
}

}  // namespace

void write_document() { std::ofstream(kDocument, std::ios::binary) << document(); }

}  // namespace bubblesim::golden

int main(int argc, char** argv) {
  if (argc == 2 && std::string_view(argv[1]) == "--write") {
    bubblesim::golden::write_document();
    return 0;
  }
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
