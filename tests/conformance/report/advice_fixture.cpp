// Writes pages for advice_page_test.py: advice_fixture FOLDER.
//
// small.html: two answers, a service with a limit of 50 ms and offline work; names hold what would
// break a page out of its data. Policy n has loads 10, 20, ... of which each gains a tenth of a
// GPU, costs training 0.01 and takes 10 ms of p95; the recommendation is the fourth of policy "b".
// large.html: one answer with 3,000 settings. fleet.html: two kinds of jobs and two works.
#include <filesystem>
#include <fstream>

#include "sim/report/advice/advice_page.hpp"
#include "sim/report/advice/fleet_page.hpp"

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

// Kind "big" has 64 GPUs for 24 hours and gains 0.5 a GPU of the first work, whose 100 GPU-hours
// are soon done, and 0.25 of the other; "small" has 8 for 6 hours and takes none.
advise::FleetPlan plan_of() {
  advise::FleetPlan plan;
  plan.question.jobs = {{"big", "line 2", "{}", "", 64.0, 24},
                        {kHostile, "line 3", "{}", "", 8.0, 6}};
  plan.question.work = {{"first", "line 2", "{}", 200.0 * 3600, 1},
                        {"second", "line 3", "{}", std::nullopt, 1}};
  plan.kind_of = {0, 1};
  plan.gpus = {64, 8};
  plan.kinds.resize(2);
  plan.kinds[0] = {0, 1, "NVIDIA A100", 8, 64 * 24, 0.4, {}, {}};
  plan.kinds[0].answers = {{"", "mps share=30", "mps", 0.5, 0.01, 1, 2, R"({"name":"x"})"},
                           {"", "tgs", "tgs", 0.25, 0, 3, 12, R"({"name":"x"})"}};
  plan.kinds[1] = {1, 1, "NVIDIA A100", 8, 8 * 6, 0, {}, {}};
  plan.kinds[1].answers = {{"no memory", "", "", 0, 0, 0, 0, ""},
                           {"no gain", "", "", 0, 0, 0, 0, ""}};
  advise::place_work(plan);
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
