// bubblesim sweep and bubblesim results together: a small sweep, stopped and gone on with.
#include <gmock/gmock.h>

#include "tests/conformance/app/command.hpp"
#include "tests/conformance/app/doubtful_trace.hpp"

namespace bubblesim::app_test {
namespace {

using testing::AllOf, testing::HasSubstr, testing::IsEmpty, testing::StartsWith;
using Results = AtWorkplace;
using View = AtShortWorkplace;

// The first runs of a sweep of 36: of the policy exclusive, one a seed.
const std::string kOptions =
    "sweep configs/sweeps/policies.json --set /duration=300ms --set /warmup=100ms "
    "--set /fillers/encoder/arrivals/rate_per_s=200 --threads 2 --store runs.db ";

Json stored_rows(const Workplace& place) {
  const Outcome rows = succeed(place, "results runs.db export --format json");
  return parse_json(rows.out);
}

TEST(Sweep, GoesOnWhereItStoppedAndNothingIsStoredTwice) {
  const Workplace place;
  const Outcome first = succeed(place, kOptions + "--limit 2");
  EXPECT_EQ(stored_rows(place).size(), 2U);
  const Outcome second = succeed(place, kOptions + "--limit 2");
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
  const Outcome swept = place.bubblesim(kOptions + "--limit 12 --best min:latency_p95_ms");
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

TEST_F(Results, PoliciesOfOneNameInARunAreToldApartByTheirParameters) {
  sweep_namesakes(place);
  EXPECT_THAT(succeed(place, "results runs.db").out,
              AllOf(HasSubstr("  exclusive !  "), HasSubstr("  specinf(budget=0.01) !  "),
                    HasSubstr("  specinf(budget=0.05) !  ")));
  EXPECT_THAT(succeed(place, "results runs.db list --csv").out, HasSubstr(",specinf,batch,"));
}

// Nothing recorded explains over 10 % of the job's time: each row of it says so where it is read.
TEST_F(Results, RowsOfADoubtfulJobAreMarked) {
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

TEST_F(Results, AFilterThatNamesNothingInTheStoreIsAFault) {
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

// bubblesim advise: answers, files, faults.
const std::string kAdvise =
    "advise traces/samples/training traces/samples/inference.json.gz --duration 1500ms --warmup "
    "300ms --budget 200ms --policy mps,stream_priority ";

class Advise : public AtWorkplace {};

TEST_F(Advise, PrintsAnAnswerAndWritesItsConfig) {
  const Outcome text = succeed(place, kAdvise + "--keep 0.9 --config advice.json");
  EXPECT_THAT(text.out, AllOf(HasSubstr("iteration alone on 4 x"), HasSubstr("(oracle) would gain"),
                              HasSubstr("\nRun "), HasSubstr("  gains    "), HasSubstr("limit 0.9"),
                              HasSubstr("times what training loses"), HasSubstr("is random"),
                              HasSubstr("bubblesim run advice.json"),
                              HasSubstr("bubblesim fill --policy ")));
  const Json config = parse_json(place.read("advice.json"));
  EXPECT_EQ(config["policies"].size(), 1U);
  // The setting does again what the answer says.
  const Json advice = json_of(place, kAdvise + "--keep 0.9 --config advice.json --force --json");
  const Json report = json_of(place, "run advice.json --json");
  EXPECT_EQ(report["policies"][0]["training"]["normalised_fraction"],
            advice["recommended"]["training_kept"]);
  EXPECT_EQ(report["policies"][0]["fillers"][0]["requests_per_s"],
            advice["recommended"]["requests_per_s"]);
}

// Two roads to every number of the recommendation: the search, and the commands that it hands out.
TEST_F(Advise, CommandsOfTheAnswerWork) {
  const Json advice = json_of(place, kAdvise + "--keep 0.9 --p95 100ms --json --config c.json");
  ASSERT_FALSE(advice["recommended"].is_null());
  ASSERT_EQ(advice["practice"].size(), 3U);
  const auto command = [&](std::size_t step) {
    return advice["practice"][step]["command"].get<std::string>();
  };
  EXPECT_EQ(command(0), "bubblesim run c.json");
  const Json report = parse_json(place.shell(command(0) + " --json").out);
  const Json& policy = report["policies"][0];
  EXPECT_EQ(policy["training"]["normalised_fraction"], advice["recommended"]["training_kept"]);
  EXPECT_EQ(policy["fillers"][0]["requests_per_s"], advice["recommended"]["requests_per_s"]);
  EXPECT_EQ(policy["fillers"][0]["latency"]["p95"]["value_ns"],
            advice["recommended"]["latency_p95_ns"]);

  const Outcome measured = place.shell(command(1) + " --fake --json");
  EXPECT_EQ(measured.code, 0) << measured.err;
  EXPECT_EQ(parse_json(measured.out)["measured"]["place"], "fake");

  // What stands behind policy and parameters is looked at when they have been accepted.
  const std::string fill = command(2);
  EXPECT_THAT(fill, HasSubstr("--filler-role online"));
  const Outcome filled = place.shell(fill + " --grace never");
  EXPECT_EQ(filled.code, 2);
  EXPECT_THAT(filled.err, HasSubstr("--grace"));
}

TEST_F(Advise, OfADoubtfulJobTheAnswerSaysSo) {
  place.write("doubtful.json", doubtful_trace());
  const Outcome text = place.bubblesim(
      "advise doubtful.json traces/samples/inference.json.gz --duration 500ms --warmup 100ms "
      "--budget 200ms --policy mps --keep 0.5");
  EXPECT_THAT(text.out, HasSubstr("  ! loss     program_what_ifs_doubtful: "));
}

TEST_F(Advise, WritesAPage) {
  succeed(place, kAdvise + "--keep 0.9 --want both --html out/advice.html");
  const std::string page = place.read("out/advice.html");
  EXPECT_THAT(page, AllOf(HasSubstr("What to run: offline, online"), HasSubstr("\"front\":[")));
}

TEST_F(Advise, GoesOnWhereAStoreHasWhatItNeeds) {
  const std::string line = kAdvise + "--json -o advice.db";
  EXPECT_EQ(succeed(place, line + " --threads 1").out, succeed(place, line + " --threads 3").out);
  EXPECT_THAT(succeed(place, kAdvise + "-o advice.db").out, HasSubstr("; 0 runs now"));
  EXPECT_THAT(succeed(place, "results advice.db list --limit 1").out, HasSubstr("offline"));
}

TEST_F(Advise, SaysThatNothingGainsWithinTheLimits) {
  EXPECT_THAT(succeed(place, kAdvise + "--keep 1").out, HasSubstr("Leave it alone"));
}

TEST_F(Advise, FaultsSayWhatWouldDo) {
  expect_fault("advise", HasSubstr("expected either CONFIG, or TRAINING and FILLER"));
  expect_fault("advise traces/samples/training", HasSubstr("not a question"));
  expect_fault(kAdvise + "--keep 1.2", HasSubstr("--keep"));
  expect_fault(kAdvise + "--p95 fast", HasSubstr("--p95"));
  expect_fault(kAdvise + "--p95 0s", HasSubstr("expected more than 0s"));
  expect_fault(kAdvise + "--p95 1us", HasSubstr("expected at least that"));
  expect_fault(kAdvise + "--want offline --p95 50ms", HasSubstr("has no latencies"));
  expect_fault(kAdvise + "--slo tftt=1s", HasSubstr("did you mean \"ttft\"?"));
  for (const char* wrong : {"ttft", "ttft=fast", "ttft=1s,ttft=2s"}) {
    expect_fault(kAdvise + "--slo " + wrong, HasSubstr("such as ttft=50ms"));
  }
  expect_fault(kAdvise + "--slo ttft=0s", HasSubstr("expected more than 0s"));
  expect_fault(kAdvise + "--slo latency=1s", HasSubstr("unknown limit \"latency\""));
  expect_fault(kAdvise + "--want offline --slo ttft=1s", HasSubstr("has no latencies"));
  expect_fault(kAdvise + "--want offline --load 0.5", HasSubstr("always has a next request"));
  expect_fault(kAdvise + "--can msp", HasSubstr("did you mean \"mps\"?"));
  expect_fault(kAdvise + "--can mps --cannot mps", HasSubstr("expected it in one of them"));
  expect_fault(kAdvise + "--budget 1", HasSubstr("--budget"));
  expect_fault(kAdvise + "--filler-memory 200GB",
               AllOf(HasSubstr("needs 200.0 GB"), HasSubstr("expected at most that")));
  expect_fault("advise configs/advise/example.json --want online", HasSubstr("expected no --want"));
  expect_fault("advise configs/runs/example.json", HasSubstr("found a run config, not a question"));
  expect_fault(kAdvise + "--p95 1s --load 5", HasSubstr("expected at most 1"));
  expect_fault(kAdvise + "--load 5", HasSubstr("expected at most 1"));  // alone, it means online
  expect_fault("advise traces/samples/training traces/samples/inference.json.gz --policy mps,mps",
               HasSubstr("found \"mps\" again"));
  expect_fault(kAdvise + "--cannot mps", HasSubstr("found \"mps\", which demands mps"));
}

// bubblesim view: a page of a trace, a run's folder, a config, a store; a picture of a run.
constexpr const char* kSampleRun =
    "run --training traces/samples/training --filler traces/samples/inference.json.gz "
    "--policy exclusive,mps --duration 1s --warmup 300ms --out out/run";

TEST_F(View, OfATraceIsOnePage) {
  EXPECT_THAT(succeed(place, "view traces/samples/training -o page.html --no-open").out,
              StartsWith("wrote " + place.path("page.html: ")));
  const std::string page = place.read("page.html");
  EXPECT_THAT(page, HasSubstr("4 ranks"));
  EXPECT_THAT(page, HasSubstr("collective_wait"));
  EXPECT_EQ(page.find("https://"), std::string::npos);
  succeed(place, "view traces/samples/training -o again.html --no-open");
  EXPECT_TRUE(page == place.read("again.html"));
}

TEST_F(View, OfARunsFolderHasARowForEachPolicyOfBothModes) {
  succeed(place, kSampleRun);
  succeed(place, "view out/run -o page.html --no-open");
  const Json view = parse_json(place.read("out/run/view.json"));
  ASSERT_EQ(view["sections"].size(), 2U);
  for (const Json& section : view["sections"]) {
    ASSERT_EQ(section["charts"].size(), 4U);  // GPUs
    EXPECT_EQ(section["charts"][0]["chart"]["rows"].size(), 2U);
    EXPECT_EQ(section["table"]["rows"].size(), 2U);
  }
  EXPECT_THAT(place.read("page.html"), HasSubstr("GPU 3"));
}

TEST_F(View, PicturesOfARunAreSmallAndHoldTextAsText) {
  succeed(place, kSampleRun);
  succeed(place, "view out/run --svg picture.svg --gpu 1 --section online --policy mps");
  const std::string picture = place.read("picture.svg");
  EXPECT_THAT(picture, HasSubstr(">mps</text>"));
  EXPECT_LT(picture.size(), 30'000U);
  EXPECT_EQ(picture.find("exclusive"), std::string::npos);
}

// docs/looking.md says how.
TEST_F(View, ThePictureOfTheDocsIsWhatItsCommandsGive) {
  succeed(place,
          "run --training traces/samples/training --filler traces/samples/inference.json.gz "
          "--policy exclusive,mps,pipefill --mode offline --duration 3s --warmup 1s "
          "--out out/filled");
  succeed(place, "view out/filled --svg out/filled.svg");
  EXPECT_TRUE(place.read("out/filled.svg") == place.read("docs/filled.svg"));
}

/// Into out.db.
void sweep_one_run(const Workplace& place) {
  const Outcome sweep = place.bubblesim(
      "sweep configs/sweeps/policies.json --set /duration=300ms --set /warmup=100ms --limit 1 "
      "--store out.db");
  ASSERT_EQ(sweep.code, 0) << sweep.err;
}

TEST_F(View, OfAConfigRunsItAndOfAStoreIsItsReport) {
  succeed(place, "view configs/runs/example.json --policy exclusive,mps -o page.html --no-open");
  EXPECT_THAT(place.read("page.html"), HasSubstr("encoder-online"));
  sweep_one_run(place);
  succeed(place, "view out.db -o store.html --no-open");
  EXPECT_THAT(place.read("store.html"), HasSubstr("bubblesim report"));
}

// The store's own reader says what is wrong with it.
TEST_F(View, AStoreIsToldByWhatItIsNotByWhetherItCanBeRead) {
  sweep_one_run(place);
  place.write("cut.db", place.read("out.db").substr(0, 4096));
  expect_fault(place, "view cut.db --no-open", HasSubstr("cut.db: is damaged"));
  expect_fault(place, "view cut.db out.db --no-open",
               HasSubstr("cut.db: is a results store, found beside other paths"));
}

TEST_F(View, OpensThePageOnADesktopOnly) {
  ASSERT_EQ(place.shell("mkdir bin").code, 0);
  place.write("bin/xdg-open",
              "#!/bin/sh\nprintf %s \"$1\" > opened.part && mv opened.part opened\n");
  const std::string view =
      "PATH=$PWD/bin:$PATH bubblesim view traces/samples/training -o page.html";
  const std::string wait = "; for i in $(seq 50); do [ -e opened ] && break; sleep 0.1; done";
  ASSERT_EQ(place.shell("chmod +x bin/xdg-open; unset DISPLAY WAYLAND_DISPLAY; " + view).code, 0);
  EXPECT_THAT(place.read("opened"), IsEmpty());
  ASSERT_EQ(place.shell("DISPLAY=:9 WAYLAND_DISPLAY= " + view + " --no-open").code, 0);
  EXPECT_THAT(place.read("opened"), IsEmpty());
  ASSERT_EQ(place.shell("export DISPLAY=:9; " + view + wait).code, 0);
  EXPECT_EQ(place.read("opened"), place.path("page.html"));
}

TEST_F(View, BadInputIsASentenceAndExitCodeTwo) {
  succeed(place, kSampleRun);
  ASSERT_EQ(place.shell("mkdir broken old").code, 0);
  place.write("broken/view.json", "{\"format\": \"bubblesim.view/1\", \"sections\": 3}");
  place.write("old/results.json", "{}");
  const std::pair<const char*, const char*> cases[] = {
      {"view nowhere.btr", "nowhere.btr"},
      {"view broken", "/sections"},
      {"view old", "run it again with --out"},
      {"view out/run --policy mpss", "did you mean \"mps\"?"},
      {"view out/run --svg x.svg --gpu 9", "found 9, expected one of the 4 GPUs"},
      {"view out/run --svg x.svg --section onlin", "did you mean \"online\"?"},
      {"view traces/samples/training --svg x.svg --gpu 1", "of which all ranks are drawn"},
      {"view README.md", "README.md"},
  };
  for (const auto& [arguments, text] : cases) {
    expect_fault(place, arguments, HasSubstr(text));
  }
}

}  // namespace
}  // namespace bubblesim::app_test
