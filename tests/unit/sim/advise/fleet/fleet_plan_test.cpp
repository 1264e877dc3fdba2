// Plans of small fleets: kinds of generated jobs, and a placement that is known by hand.
#include "sim/advise/fleet/fleet_plan.hpp"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "policies/builtin.hpp"
#include "sim/advise/fleet/fleet_text.hpp"
#include "sim/base/json.hpp"
#include "tests/conformance/recorded_jobs/generated_job.hpp"

namespace bubblesim::advise {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

const std::string kConfigFolder = std::string(BUBBLESIM_SOURCE_DIR) + "/configs";

FleetJob job_of(const std::string& name, double gpus, double hours) {
  return {name, "line 2", "{}", "", gpus, hours};
}

KindAnswer gaining(double gains, double costs, double requests_per_s) {
  KindAnswer answer;
  answer.policy = answer.setting = "mps";
  answer.gains = gains;
  answer.costs = costs;
  answer.requests_per_s = requests_per_s;
  answer.run_config = "{}";
  return answer;
}

// Kind 0: jobs of 4 and 2 GPUs for 10 and 30 hours (24 count): 40 + 48 GPU-hours. Kind 1: 10. Work
// 0 has 3,600 x 50 requests: at 1 a second and GPU, 50 GPU-hours of kind 0, worth 0.3 an hour more
// than work 1 there; kind 1 gains 0.1 of it and loses 0.2: no work pays there.
TEST(fleet_plan, places_work_job_by_job) {
  FleetPlan plan;
  plan.question.jobs = {job_of("a", 4, 10), job_of("b", 10, 1), job_of("c", 2, 30)};
  plan.question.work = {{"first", "", "{}", 3600.0 * 50, 1}, {"second", "", "{}", {}, 1}};
  plan.kind_of = {0, 1, 0};
  plan.gpus = {4, 10, 2};
  plan.kinds.resize(2);
  plan.kinds[0].first = 0;
  plan.kinds[0].gpu_hours = 88;
  plan.kinds[0].answers = {gaining(0.5, 0, 1), gaining(0.2, 0.01, 2)};
  plan.kinds[1].first = 1;
  plan.kinds[1].gpu_hours = 10;
  plan.kinds[1].answers = {gaining(0.1, 0.2, 1), gaining(0.1, 0.2, 1)};
  place_work(plan);
  ASSERT_EQ(plan.placements.size(), 3U);
  EXPECT_EQ(plan.placements[0].job, 0U);
  EXPECT_NEAR(plan.placements[0].hours, 10, 1e-9);      // 40 GPU-hours of the first
  EXPECT_EQ(plan.placements[1].job, 2U);
  EXPECT_NEAR(plan.placements[1].hours, 5, 1e-9);       // the other 10
  EXPECT_EQ(plan.placements[2].work, 1U);
  EXPECT_NEAR(plan.placements[2].hours, 19, 1e-9);      // 38 of the second
  const FleetSum sum = sum_of(plan);
  EXPECT_NEAR(sum.jobs, 98, 1e-9);
  EXPECT_NEAR(sum.filled, 88, 1e-9);
  EXPECT_NEAR(sum.gained, 50 * 0.5 + 38 * 0.2, 1e-9);
  EXPECT_NEAR(sum.lost, 38 * 0.01, 1e-9);
  EXPECT_NEAR(sum_of_work(plan, 0).requests, 3600 * 50, 1e-3);
  EXPECT_THAT(fleet_csv(plan), HasSubstr("\nb,b,10,,0,,,0,0,0\n"));
  EXPECT_THAT(fleet_text(plan),
              HasSubstr("no work pays under the setting that gains most, or none is left"));
}

class Fleet : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::path(::testing::TempDir()) /
              ::testing::UnitTest::GetInstance()->current_test_info()->name();
    write_job("one", 12ms);
    write_job("same", 12ms);
    write_job("busy", 0ms);
    std::string table = "Name,Profile,Memory_footprint,SM_usage,Duration\n";
    for (int i = 0; i < 20; ++i) table += "F,-1,0,108,20000\n";
    std::ofstream(folder_ / "filler.csv") << table;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  void write_job(const std::string& name, Duration pause) const {
    bubblesim::testing::GeneratedJob job;
    job.ranks = 1;
    job.kernels = 40;
    job.kernel = 100us;
    job.all_reduce = 50us;
    job.pause = pause;
    std::filesystem::create_directories(folder_ / name);
    std::ofstream(folder_ / name / "rank0.json") << bubblesim::testing::kineto_files(job).front();
  }

  FleetJob recorded(const std::string& name, double gpus) const {
    FleetJob job = job_of(name, gpus, 24);
    job.device = "a100-40gb";
    job.training = Json{{"trace", {(folder_ / name).string()}}, {"memory", "8GB"}}.dump();
    return job;
  }

  FillWork filling(const std::string& name, const std::string& memory) const {
    FillWork work;
    work.name = name;
    work.filler = Json{{"name", name}, {"mode", "offline"}, {"memory", memory},
                       {"program", {{"kernel_table", (folder_ / "filler.csv").string()}}}}.dump();
    return work;
  }

  CheckedResult<FleetPlan> plan_of(std::vector<FleetJob> jobs, std::vector<FillWork> work,
                                   std::size_t threads) const {
    FleetQuestion question;
    question.file = "jobs.csv";
    question.work_file = "work.csv";
    question.jobs = std::move(jobs);
    question.work = std::move(work);
    question.length = 1s;
    question.warmup = 250ms;
    question.budget = 1s;
    question.limits.keep = 0.95;  // stream_priority keeps 0.972
    question.system.policies = {"mps", "time_slicing", "stream_priority"};
    AnswerOptions options;
    options.config_folder = kConfigFolder;
    options.version = "test";
    options.threads = threads;
    return plan_fleet(std::move(question), registry_, options);
  }

  const policy::Registry registry_ = policies::builtin_policies();
  std::filesystem::path folder_;
};

// Two jobs of the same content are one kind; three quarters of its time are idle, of which a filler
// of short kernels has most. What does not fit beside training is taken by nobody, with the reason.
TEST_F(Fleet, jobs_that_are_alike_are_simulated_once) {
  const std::vector<FleetJob> jobs{recorded("one", 8), recorded("same", 16), recorded("busy", 8)};
  const std::vector<FillWork> work{filling("large", "36GB"), filling("small", "2GB")};
  const auto plan = plan_of(jobs, work, 2);
  ASSERT_TRUE(plan) << plan.error().front().text();
  EXPECT_EQ(plan->kind_of, (std::vector<std::size_t>{0, 0, 1}));
  EXPECT_THAT(plan->kinds[0].answers[0].reason, HasSubstr("needs 36.0 GB"));
  const KindAnswer& small = plan->kinds[0].answers[1];
  EXPECT_GT(small.gains, 0.6) << small.setting;
  EXPECT_GE(1 - small.costs, 0.95);
  const FleetSum sum = sum_of(*plan);
  EXPECT_NEAR(sum.jobs, 24 * 32, 1e-9);
  EXPECT_GE(sum.gained, 24 * 24 * small.gains - 1e-6);
  const auto again = plan_of(jobs, work, 1);
  ASSERT_TRUE(again);
  EXPECT_EQ(fleet_json(*plan).dump(), fleet_json(*again).dump());
  EXPECT_EQ(fleet_csv(*plan), fleet_csv(*again));
}

TEST_F(Fleet, work_that_fits_no_job_is_a_fault_with_what_would_do) {
  const auto plan = plan_of({recorded("one", 8)}, {filling("large", "36GB")}, 1);
  ASSERT_FALSE(plan);
  EXPECT_THAT(plan.error().front().text(),
              HasSubstr("fits no job; beside one: filler large needs 36.0 GB"));
}

// A job that gains a little from its filler loses -0.001 GPU-hours.
TEST(fleet_text, has_no_negative_nothing) {
  FleetPlan plan;
  plan.question.jobs = {job_of("a", 1, 24)};
  plan.question.work = {{"first", "", "{}", {}, 1}};
  plan.kind_of = {0};
  plan.gpus = {1};
  plan.kinds.resize(1);
  plan.kinds[0].gpu_hours = 24;
  plan.kinds[0].answers = {gaining(0.5, -0.00004, 1)};
  place_work(plan);
  EXPECT_THAT(fleet_text(plan), ::testing::Not(HasSubstr("-0.00")));
}

// Before anything is simulated, and of all works at once.
TEST_F(Fleet, works_that_cannot_be_loaded_are_told_by_their_lines_and_columns) {
  FillWork unknown = filling("unknown", "2GB");
  unknown.place = "line 3";
  unknown.filler =
      R"({"name": "unknown", "mode": "offline", "program": {"model": "bert-basee"}})";
  FillWork no_trace = filling("no_trace", "2GB");
  no_trace.place = "line 4";
  std::ofstream(folder_ / "text.json") << "no trace";
  no_trace.filler = Json{{"name", "no_trace"}, {"mode", "offline"},
                         {"program", {{"trace", (folder_ / "text.json").string()}}}}.dump();
  FillWork one_pass = filling("one_pass", "2GB");
  one_pass.place = "line 5";
  one_pass.filler = R"({"name": "one_pass", "mode": "offline",
                        "program": {"model": "gpt2-large", "output_tokens": 5}})";
  const auto plan =
      plan_of({recorded("one", 8)}, {filling("small", "2GB"), unknown, no_trace, one_pass}, 1);
  ASSERT_FALSE(plan);
  ASSERT_EQ(plan.error().size(), 3U) << plan.error().front().text();
  EXPECT_THAT(plan.error()[0].text(),
              ::testing::AllOf(HasSubstr("work.csv: line 3: model: "),
                             HasSubstr("unknown model \"bert-basee\"; did you mean")));
  EXPECT_THAT(plan.error()[1].text(), HasSubstr("work.csv: line 4: trace: "));
  EXPECT_THAT(plan.error()[1].text(), HasSubstr("text.json: is not JSON"));
  EXPECT_THAT(plan.error()[2].text(), HasSubstr("work.csv: line 5: output_tokens: "));
}

TEST_F(Fleet, a_job_that_cannot_be_loaded_is_told_by_its_line) {
  FleetJob broken = recorded("one", 8);
  broken.training = R"({"trace": ["/nowhere"]})";
  const auto plan = plan_of({broken}, {filling("small", "2GB")}, 1);
  ASSERT_FALSE(plan);
  EXPECT_THAT(plan.error().front().text(), HasSubstr("jobs.csv: line 2: job one: "));
}

}  // namespace
}  // namespace bubblesim::advise
