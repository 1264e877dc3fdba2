// bubblesim sweep and bubblesim results together: a small sweep, stopped and gone on with.
#include <gmock/gmock.h>

#include "tests/conformance/app/command.hpp"
#include "tests/conformance/app/doubtful_trace.hpp"

namespace bubblesim::app_test {
namespace {

using testing::AllOf, testing::HasSubstr;

// The first runs of a sweep of 36: of the policy exclusive, one a seed.
constexpr const char* kOptions =
    "sweep configs/sweeps/policies.json --set /duration=300ms --set /warmup=100ms "
    "--set /fillers/encoder/arrivals/rate_per_s=200 --threads 2 --store runs.db ";

Json stored_rows(const Workplace& place) {
  const Outcome rows = succeed(place, "results runs.db export --format json");
  return parse_json(rows.out);
}

TEST(Sweep, GoesOnWhereItStoppedAndNothingIsStoredTwice) {
  const Workplace place;
  const Outcome first = succeed(place, std::string(kOptions) + "--limit 2");
  EXPECT_EQ(stored_rows(place).size(), 2U);
  const Outcome second = succeed(place, std::string(kOptions) + "--limit 2");
  EXPECT_THAT(second.out + second.err, HasSubstr("2 stored before"));
  EXPECT_EQ(stored_rows(place).size(), 4U);
}

// The store's name says which share it is.
TEST(Sweep, ATaskOfSlurmHasItsShareAndProcessesThatWouldAllDoTheSameAreRefused) {
  struct Case {
    const char* environment;
    const char* option;
    const char* says;
  };
  const Workplace place;
  for (const Case& c : {
           Case{"SLURM_ARRAY_TASK_ID=3 SLURM_ARRAY_TASK_MIN=1 SLURM_ARRAY_TASK_STEP=2 "
                "SLURM_ARRAY_TASK_COUNT=8",
                "--shard slurm", "policies-1-of-8.db"},
           Case{"SLURM_STEP_NUM_TASKS=4 SLURM_PROCID=3", "--shard slurm", "policies-3-of-4.db"},
           Case{"SLURM_ARRAY_TASK_ID=1 SLURM_ARRAY_TASK_MIN=0 SLURM_ARRAY_TASK_COUNT=3 "
                "SLURM_STEP_NUM_TASKS=4 SLURM_PROCID=2",
                "--shard slurm", "policies-6-of-12.db"},
           Case{"SLURM_STEP_NUM_TASKS=4 SLURM_PROCID=3", "--shard 1/2", "policies-1-of-2.db"},
           Case{"SLURM_ARRAY_TASK_ID=7 SLURM_ARRAY_TASK_MIN=1 SLURM_ARRAY_TASK_COUNT=3",
                "--shard slurm", "expected tasks of the array that are evenly apart"},
           Case{"NONE=1", "--shard slurm", "found neither a task of a job array"},
           Case{"SLURM_STEP_NUM_TASKS=4 SLURM_PROCID=0", "", "expected --shard slurm under srun"},
           Case{"OMPI_COMM_WORLD_SIZE=4", "", "4 processes were started together"},
       }) {
    const std::string command = std::string(c.environment) +
                                " bubblesim sweep configs/sweeps/policies.json --set "
                                "/duration=200ms --set /warmup=100ms --dry-run --limit 1 " +
                                c.option;
    const Outcome outcome = place.shell(command);
    EXPECT_THAT(outcome.out + outcome.err, HasSubstr(c.says)) << command;
    EXPECT_EQ(outcome.code, std::string_view(c.says).ends_with(".db") ? 0 : 2) << command;
  }
}

TEST(Sweep, TheBestRunAndTheIntervalsAreThoseAskedFor) {
  const Workplace place;
  const Outcome swept = place.bubblesim(std::string(kOptions) +
                                        "--limit 12 --best min:latency_p95_ms");
  EXPECT_THAT(swept.out + swept.err, HasSubstr("least latency_p95_ms, training kept >= 0.95: "));
  const std::string compare =
      "results runs.db compare --baseline exclusive --metric training_normalised_fraction ";
  EXPECT_THAT(succeed(place, compare).out, HasSubstr("95 % interval"));
  EXPECT_THAT(succeed(place, compare + "--by-point --confidence 0.5").out,
              HasSubstr("50 % interval"));
  succeed(place, "report runs.db -o page.html --best min:latency_p95_ms --timeline best:1 "
                 "--confidence 0.9 --title 'Shares & limits'");
  const std::string page = place.read("page.html");
  EXPECT_THAT(page, HasSubstr("\"confidence\":0.9"));
  EXPECT_THAT(page, HasSubstr("<title>Shares &amp; limits</title>"));
}

// The sweep of one run of 300 ms, whose filler does a kernel of 1 ms.
std::string one_run_beside_a_kernel(const Workplace& place, const std::string& training,
                                    const Json& policies) {
  place.write("kernels.csv",
              "Name,Profile,Memory_footprint,SM_usage,Duration\nF,-1,0,50,1000000\n");
  const Json filler{{"name", "batch"},
                    {"mode", "offline"},
                    {"memory", "1GB"},
                    {"program", {{"kernel_table", "kernels.csv"}}}};
  place.write("sweep.json", Json{{"name", "twice"},
                                 {"base",
                                  {{"name", "twice"},
                                   {"duration", "300ms"},
                                   {"training", {{"trace", training}}},
                                   {"fillers", Json::array({filler})},
                                   {"policies", policies}}}}
                                .dump());
  return "sweep sweep.json --store runs.db";
}

void sweep_namesakes(const Workplace& place) {
  const auto specinf = [](double budget) {
    return Json{{"name", "specinf"}, {"parameters", {{"budget", budget}}}};
  };
  succeed(place, one_run_beside_a_kernel(place, "traces/samples/training",
                                         Json::array({"exclusive", specinf(0.01), specinf(0.05)})));
}

TEST(Results, PoliciesOfOneNameInARunAreToldApartByTheirParameters) {
  const Workplace place;
  sweep_namesakes(place);
  EXPECT_THAT(succeed(place, "results runs.db").out,
              AllOf(HasSubstr("  exclusive !  "), HasSubstr("  specinf(budget=0.01) !  "),
                    HasSubstr("  specinf(budget=0.05) !  ")));
  EXPECT_THAT(succeed(place, "results runs.db list --csv").out, HasSubstr(",specinf,batch,"));
}

// Nothing recorded explains over 10 % of the job's time: each row of it says so where it is read.
TEST(Results, RowsOfADoubtfulJobAreMarked) {
  const Workplace place;
  place.write("doubtful.json", doubtful_trace());
  static_cast<void>(place.bubblesim(
      one_run_beside_a_kernel(place, "doubtful.json", Json::array({"exclusive", "mps"}))));
  EXPECT_THAT(succeed(place, "results runs.db").out,
              AllOf(HasSubstr("  exclusive !  "), HasSubstr("  mps !  "),
                    HasSubstr("program_what_ifs_doubtful")));
  EXPECT_THAT(succeed(place, "results runs.db compare").out,
              AllOf(HasSubstr("  mps !  "), HasSubstr("\n! program_")));
  EXPECT_THAT(succeed(place, "results runs.db list --csv").out, HasSubstr(",mps,batch,"));
}

TEST(Results, AFilterThatNamesNothingInTheStoreIsAFault) {
  const Workplace place;
  sweep_namesakes(place);
  const std::string known = "exclusive, specinf\n";
  for (const char* command : {"results runs.db", "results runs.db list", "results runs.db compare",
                              "results runs.db export", "report runs.db"}) {
    expect_fault(place, std::string(command) + " --policy exclusive,mps",
                 HasSubstr("bubblesim: runs.db: unknown policy \"mps\"; known: " + known));
  }
  expect_fault(place, "report runs.db --policy specin",
               HasSubstr("\"specin\"; did you mean \"specinf\"? Known: " + known));
  expect_fault(place, "results runs.db --sweep twic", HasSubstr("did you mean \"twice\"?"));
  expect_fault(place, "results runs.db export --filler bath", HasSubstr("did you mean \"batch\"?"));
  const Outcome none = place.bubblesim("results runs.db export --set /seed=2");
  EXPECT_EQ(none.code, 0);
  EXPECT_EQ(none.err, "bubblesim: runs.db: found no such rows\n");
  const Outcome page = place.bubblesim("report runs.db --set /seed=2 -o page.html");
  EXPECT_EQ(page.code, 0);
  EXPECT_EQ(page.err, none.err);
}

TEST(Sweep, AStoreThatIsNotThereIsAFaultOfResults) {
  const Workplace place;
  expect_fault(place, "results nothing.db list", HasSubstr("found no such results store"));
}

}  // namespace
}  // namespace bubblesim::app_test
