// Writes pages for advice_page_test.py: advice_fixture FOLDER.
//
// small.html: two answers, a service with a limit of 50 ms and offline work; names hold what would
// break a page out of its data. Policy n has loads 10, 20, ... of which each gains a tenth of a
// GPU, costs training 0.01 and takes 10 ms of p95; the recommendation is the fourth of policy "b".
// large.html: one answer with 3,000 settings. fleet.html: two kinds of jobs and two works.
#include <filesystem>
#include <fstream>

#include "sim/base/json.hpp"
#include "sim/report/advice/advice_page.hpp"

namespace bubblesim::report {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

constexpr const char* kHostile = "</script><script>window.broken=1</script><img src=x onerror=a>";

advise::Tried tried_of(const policy::PolicySpec& spec, int load, bool online) {
  advise::Tried tried;
  tried.proposal.policy = &spec;
  tried.proposal.parameters["share"] = static_cast<std::int64_t>(load);
  tried.result.done = true;
  tried.result.gain = 0.1 * load;
  tried.result.kept = 1 - 0.01 * load;
  tried.result.requests_per_s = 40.0 * load;
  if (online) tried.result.p95 = 10ms * load;
  tried.available = !spec.oracle;
  tried.length = load % 3 == 0 ? 100ms : 3s;
  return tried;
}

advise::Advice advice_of(const policy::Registry& registry, bool online, int loads) {
  advise::Advice advice;
  advice.question.name = (online ? "online " : "offline ") + std::string(kHostile);
  advice.question.limits.keep = 0.95;
  if (online) advice.question.limits.p95 = 50ms;
  advice.alone.device = "NVIDIA A100";
  advice.alone.gpus = 4;
  advice.alone.iteration = 12ms;
  advice.alone.bubble = 0.4;
  advice.alone.causes = {{"collective", 0.1, 0}, {"idle", 0.3, 0}};
  for (const policy::PolicySpec& spec : registry.all()) {
    for (int load = 1; load <= loads; ++load) {
      advice.found.all.push_back(tried_of(spec, load, online));
      // Policy a gains the same and costs more.
      if (spec.name == "a") advice.found.all.back().result.kept -= 0.003;
    }
  }
  advice.found.best = tried_of(registry.all()[1], 4, online);
  advice.found.runner_up = tried_of(registry.all()[0], 3, online);
  advice.found.bounds = {tried_of(registry.all()[2], 6, online)};
  advice.found.length = 3s;
  advice.found.trials = advice.found.all.size();
  advice.unfilled = {{"collective", 0.1, 0.02}, {"idle", 0.3, 0.29}};
  return advice;
}

policy::Registry registry_of() {
  policy::Registry registry;
  for (const char* name : {"a", "b", "seer"}) {
    policy::PolicySpec spec;
    spec.name = name;
    spec.oracle = spec.name == "seer";
    registry.add(std::move(spec));
  }
  return registry;
}

// Kind "big" has 64 GPUs for 24 hours, 200 of its 1,536 GPU-hours beside the first work, where it
// gains 0.5 a GPU, and the others beside the second, where it gains 0.25; "small" takes none.
Json plan_of() {
  Json plan = Json::parse(R"json({
    "summary": "2 jobs of 2 kinds, 2 works: 434.0 of 1584.0 GPU-hours a day gained (27.4 %)",
    "limits": {"keep": 0.98},
    "kinds": [{"kind": "big", "jobs": 1, "device": "NVIDIA A100", "gpu_hours": 1536,
      "bubble_share": 0.4, "answers": [
        {"work": "first", "gpu_hours": 200, "policy": "mps", "setting": "mps share=30",
         "gains_per_gpu": 0.5, "training_kept": 0.99, "requests_per_gpu_s": 1},
        {"work": "second", "gpu_hours": 1336, "policy": "tgs", "setting": "tgs",
         "gains_per_gpu": 0.25, "training_kept": 1, "requests_per_gpu_s": 3}]},
      {"kind": "small", "jobs": 1, "device": "NVIDIA A100", "gpu_hours": 48, "bubble_share": 0,
       "answers": [{"work": "first", "gpu_hours": 0, "reason": "no memory"},
                   {"work": "second", "gpu_hours": 0, "reason": "no gain"}]}],
    "work": [{"work": "first", "weight": 1, "requests_in_queue": 720000, "requests": 720000,
              "gained_gpu_hours": 100},
             {"work": "second", "weight": 1, "requests_in_queue": null, "requests": 14428800,
              "gained_gpu_hours": 334}],
    "placements": [
      {"job": "big", "kind": "big", "gpus": 64, "work": "first", "hours": 3.125, "policy": "mps",
       "gained_gpu_hours": 100, "lost_gpu_hours": 2},
      {"job": "big", "kind": "big", "gpus": 64, "work": "second", "hours": 20.875, "policy": "tgs",
       "gained_gpu_hours": 334, "lost_gpu_hours": 0}]})json");
  plan["kinds"][1]["kind"] = kHostile;
  return plan;
}

bool write(const fs::path& file, const std::string& text) {
  std::ofstream out(file, std::ios::binary);
  out << text;
  return static_cast<bool>(out);
}

}  // namespace
}  // namespace bubblesim::report

int main(int argc, char** argv) {
  using namespace bubblesim::report;
  if (argc < 2) return 2;
  const fs::path folder = argv[1];
  const bubblesim::policy::Registry registry = registry_of();
  const auto online = advice_of(registry, true, 7);
  const auto offline = advice_of(registry, false, 7);
  const auto large = advice_of(registry, true, 1000);
  const ShownAdvice both[] = {{&online, "on.json"}, {&offline, "off.json"}};
  const ShownAdvice one[] = {{&large, "large.json"}};
  return write(folder / "small.html", advice_page(both)) &&
                 write(folder / "large.html", advice_page(one)) &&
                 write(folder / "fleet.html", fleet_page(plan_of()))
             ? 0
             : 1;
}
