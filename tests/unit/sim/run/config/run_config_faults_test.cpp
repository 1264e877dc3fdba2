// Each case: what is changed in a valid config, where the fault is reported, what it says.
#include <gmock/gmock.h>

#include "policies/builtin.hpp"
#include "sim/run/run_config.hpp"
#include "tests/fault.hpp"
#include "tests/unit/sim/run/config/config_text.hpp"

namespace bubblesim::run {
namespace {

using testing::HasSubstr;

struct Case {
  const char* name;
  const char* patch;    ///< JSON merge patch of the valid config or its filler; lists are replaced
  const char* place;    ///< in the config or the filler
  const char* message;  ///< part of it
};

void PrintTo(const Case& fault, std::ostream* out) { *out << fault.name; }

void expect_fault(const Json& json, const std::string& place, const char* message) {
  const Errors faults = error_of(parse(json));
  ASSERT_EQ(faults.size(), 1U) << faults[1].text();
  EXPECT_EQ(faults[0].file, "configs/test.json");
  EXPECT_EQ(faults[0].place, place);
  EXPECT_THAT(faults[0].message, HasSubstr(message));
}

class RunConfigFault : public testing::TestWithParam<Case> {};

TEST_P(RunConfigFault, IsReportedAtItsPlace) {
  Json json = valid_config();
  json.merge_patch(Json::parse(GetParam().patch));
  expect_fault(json, GetParam().place, GetParam().message);
}

const Case kCases[] = {
    {"UnknownKey", R"({"warmpu": "1ms"})", "/warmpu", "warmup"},
    {"UnknownTrainingKey", R"({"training": {"jitter": 1}})", "/training/jitter", "jitter_cv"},
    {"UnknownOutput", R"({"outputs": {"csv": true}})", "/outputs/csv", "unknown"},
    {"EmptyName", R"({"name": ""})", "/name", "empty"},
    {"NegativeSeed", R"({"seed": -1})", "/seed", "-1"},
    {"NoLength", R"({"duration": null})", "", "neither"},
    {"TwoLengths", R"({"iterations": 5})", "", "both"},
    {"ZeroDuration", R"({"duration": "0s"})", "/duration", "0"},
    {"DurationWithoutUnit", R"({"duration": "2"})", "/duration", "2"},
    {"ZeroIterations", R"({"duration": null, "iterations": 0})", "/iterations", "0"},
    {"WarmupTooLong", R"({"warmup": "2s"})", "/warmup", "nothing to measure"},
    {"DurationOfNoKnownWord", R"({"duration": "ever"})", "/duration", "auto"},
    {"PrecisionOfAGivenLength", R"({"precision": {"training": 0.01}})", "/precision", "auto"},
    {"PrecisionOfNothing", R"({"duration": "auto", "precision": {"fillers": 0}})",
     "/precision/fillers", "0"},
    {"PrecisionUnknownKey", R"({"duration": "auto", "precision": {"filler": 0.1}})",
     "/precision/filler", "fillers"},
    {"MostBelowLeast", R"({"duration": "auto", "precision": {"least": "3s", "most": "2s"}})",
     "/precision/most", "3s"},
    {"JobsUntilKnown",
     R"({"duration": "auto", "fillers": [{"name": "a", "mode": "jobs",
         "program": {"trace": "b.json"}, "jobs": [{"requests": 5}]}]})",
     "/duration", "jobs"},
    {"GateWithHalfOfItsCosts", R"({"gate": {"ask": "1us"}})", "/gate", "tell"},
    {"GateOfAPause", R"({"gate": {"ask": "1us", "tell": "2ms"}})", "/gate/tell", "2ms"},
    {"PowerOfNoNumber", R"({"power": {"cap_w": "300W"}})", "/power/cap_w", "number"},
    {"PowerMisspelt", R"({"power": {"cap": 300}})", "/power/cap", "cap_w"},
    {"PowerPeriodTooLong", R"({"power": {"period": "1min"}})", "/power/period", "1min"},
    {"StragglerEndsBeforeItBegins",
     R"({"training": {"stragglers": [
         {"rank": 0, "slowdown": 2, "from": "2s", "until": "1s"}]}})",
     "/training/stragglers/0/until", "later"},
    {"FaultBeforeTheJobGoesOn",
     R"({"training": {"faults": [{"at": "1s", "detection": "2s", "restart": "3s"},
                                 {"at": "5s", "detection": "0s", "restart": "1s"}]}})",
     "/training/faults/1/at", "6s or later"},
    {"FaultWithoutDetection", R"({"training": {"faults": [{"at": "1s", "restart": "3s"}]}})",
     "/training/faults/0", "detection"},
    {"CheckpointNever", R"({"training": {"checkpoint_every": 0}})", "/training/checkpoint_every",
     "0"},
    {"NoJob", R"({"training": {"trace": null}})", "/training", "neither"},
    {"TraceAndSynth",
     R"({"training": {"synth": {"model": "m", "plan": "p", "cluster": "c"}}})", "/training",
     "both"},
    {"SynthWithoutPlan",
     R"({"training": {"trace": null, "synth": {"model": "m", "cluster": "c"}}})",
     "/training/synth", "\"plan\""},
    {"SynthUnknownKey",
     R"({"training": {"trace": null,
                      "synth": {"model": "m", "plan": "p", "cluster": "c", "node": 2}}})",
     "/training/synth/node", "nodes"},
    {"SynthNoNodes",
     R"({"training": {"trace": null,
                      "synth": {"model": "m", "plan": "p", "cluster": "c", "nodes": 0}}})",
     "/training/synth/nodes", "0"},
    {"SynthPlanUnknownKey",
     R"({"training": {"trace": null, "synth": {"model": "m", "cluster": "c",
                      "plan": {"global_batch": 8, "dat": 4}}}})",
     "/training/synth/plan/dat", "data"},
    {"SynthPlanWithoutBatch",
     R"({"training": {"trace": null, "synth": {"model": "m", "cluster": "c", "plan": {}}}})",
     "/training/synth/plan", "\"global_batch\""},
    {"NoTraces", R"({"training": {"trace": []}})", "/training/trace", "empty list"},
    {"EmptyTrace", R"({"training": {"trace": ""}})", "/training/trace", "path"},
    {"TraceTwice", R"({"training": {"trace": ["a", "./a"]}})", "/training/trace", "twice"},
    {"ZeroMemory", R"({"training": {"memory": "0GB"}})", "/training/memory", "0"},
    {"HostsThatStandStill", R"({"training": {"host_speed": 0}})", "/training/host_speed",
     "0.01 to 100"},
    {"IterationsThatAreNone", R"({"training": {"use_iterations": "steady"}})",
     "/training/use_iterations", "\"settled\""},
    {"NegativeJitter", R"({"training": {"jitter_cv": -0.1}})", "/training/jitter_cv", "-0.1"},
    {"NoSamples", R"({"training": {"samples_per_iteration": 0}})",
     "/training/samples_per_iteration", "0"},
    {"StragglerTwice",
     R"({"training": {"stragglers": [{"rank": 1, "slowdown": 2}, {"rank": 1, "slowdown": 3}]}})",
     "/training/stragglers/1/rank", "already"},
    {"StragglerStopped", R"({"training": {"stragglers": [{"rank": 1, "slowdown": 0}]}})",
     "/training/stragglers/0/slowdown", "0"},
    {"SameFillerName",
     R"({"fillers": [{"name": "a", "mode": "offline", "program": {"trace": "x"}},
                     {"name": "a", "mode": "offline", "program": {"trace": "y"}}]})",
     "/fillers/1/name", "/fillers/0"},
    {"NoPolicies", R"({"policies": []})", "/policies", "at least one"},
    {"PoliciesAbsent", R"({"policies": null})", "", "policies"},
    {"PolicyOfAnotherKind", R"({"policies": [5]})", "/policies/0", "5"},
    {"UnknownPolicy", R"({"policies": ["mps", "exclusiv"]})", "/policies/1", "exclusive"},
    {"UnknownPolicyName", R"({"policies": [{"name": "exclusiv"}]})", "/policies/0/name",
     "exclusive"},
    {"UnknownParameter",
     R"({"policies": [{"name": "mps", "parameters": {"filer_percentage": 5}}]})",
     "/policies/0/parameters/filer_percentage", "filler_percentage"},
    {"ParameterOutOfRange",
     R"({"policies": ["exclusive", {"name": "mps", "parameters": {"filler_percentage": 0}}]})",
     "/policies/1/parameters/filler_percentage", "0"},
    {"ParameterOfAnotherKind",
     R"({"policies": [{"name": "mps", "parameters": {"filler_percentage": [5]}}]})",
     "/policies/0/parameters/filler_percentage", "[5]"},
    {"PolicyKey", R"({"policies": [{"name": "mps", "parametres": {}}]})",
     "/policies/0/parametres", "parameters"},
    {"SamePolicyTwice",
     R"({"policies": ["mps", {"name": "mps", "parameters": {"filler_percentage": 100}}]})",
     "/policies/1", "same policy"},
};

INSTANTIATE_TEST_SUITE_P(All, RunConfigFault, testing::ValuesIn(kCases),
                         [](const auto& fault) { return std::string(fault.param.name); });

class FillerFault : public testing::TestWithParam<Case> {};

TEST_P(FillerFault, IsReportedAtItsPlace) {
  Json json = valid_config();
  json["fillers"][0].merge_patch(Json::parse(GetParam().patch));
  expect_fault(json, std::string("/fillers/0") + GetParam().place, GetParam().message);
}

// The first filler is offline, with a trace as its program.
const Case kFillerCases[] = {
    {"ModeMisspelt", R"({"mode": "ofline"})", "/mode", "offline"},
    {"TwoPrograms", R"({"program": {"kernel_table": "y"}})", "/program", "both"},
    {"NoProgram", R"({"program": {"trace": null}})", "/program", "neither"},
    {"GapWithoutTable", R"({"program": {"launch_gap": "5us"}})", "/program/launch_gap", "unknown"},
    {"NoGpus", R"({"gpus": []})", "/gpus", "empty"},
    {"SomeGpus", R"({"gpus": "some"})", "/gpus", "all"},
    {"NegativeGpu", R"({"gpus": [0, -1]})", "/gpus/1", "-1"},
    {"GpuTwice", R"({"gpus": [1, 0, 1]})", "/gpus", "GPU 1 twice"},
    {"ZeroBatch", R"({"max_batch": 0})", "/max_batch", "0"},
    {"BatchCostAboveOne", R"({"batch_cost": 1.5})", "/batch_cost", "1.5"},
    {"OfflineWithArrivals", R"({"arrivals": {"process": "poisson", "rate_per_s": 1}})",
     "/arrivals", "online"},
    {"OfflineWithDeadline", R"({"deadline": "1ms"})", "/deadline", "online"},
    {"OnlineWithoutArrivals", R"({"mode": "online"})", "", "arrivals"},
    {"ZeroRate", R"({"mode": "online", "arrivals": {"process": "poisson", "rate_per_s": 0}})",
     "/arrivals/rate_per_s", "0"},
    {"PoissonWithCv",
     R"({"mode": "online", "arrivals": {"process": "poisson", "rate_per_s": 1, "cv": 2}})",
     "/arrivals/cv", "unknown"},
    {"UnknownFormat",
     R"({"mode": "online", "arrivals": {"process": "file", "path": "p", "format": "azur"}})",
     "/arrivals/format", "azure"},
    {"NoJobs", R"({"mode": "jobs"})", "", "jobs"},
    {"EmptyJobs", R"({"mode": "jobs", "jobs": []})", "/jobs", "at least one job"},
    {"JobOfNoRequest", R"({"mode": "jobs", "jobs": [{"requests": 0}]})", "/jobs/0/requests", "0"},
    {"JobsWithoutCount", R"({"mode": "jobs", "jobs": {"requests": 1}})", "/jobs", "count"},
    {"JobsOfInstances", R"({"mode": "jobs", "jobs": [{"requests": 1}], "instances": 1})",
     "/instances", "one by one"},
    {"JobsThatWait", R"({"mode": "jobs", "jobs": [{"requests": 1}], "max_wait": "1ms"})",
     "/max_wait", "only online fillers"},
    {"JobsOffline", R"({"jobs": [{"requests": 1}]})", "/jobs", "only fillers of mode"},
    {"LimitBelowRequest", R"({"sm_request": 0.5, "sm_limit": 0.4})", "/sm_limit", "less than"},
    {"JobsOfYears", R"({"mode": "jobs", "jobs": {"requests": 1, "count": 2, "every": "8760h"}})",
     "/jobs/every", "beyond a year"},
};

INSTANTIATE_TEST_SUITE_P(All, FillerFault, testing::ValuesIn(kFillerCases),
                         [](const auto& fault) { return std::string(fault.param.name); });

TEST(RunConfigFaults, AreReportedAllAtOnce) {
  const auto config = error_of(parse_run_config(
      R"({"name": 5, "training": {}, "fillers": [{}], "policies": ["nope", "mps"], "x": 1})",
      "c.json", policies::builtin_policies()));
  std::vector<std::string> places;
  for (const Error& error : config) places.push_back(error.place);
  EXPECT_THAT(places, testing::UnorderedElementsAre("/name", "", "/training", "/fillers/0",
                                                    "/fillers/0", "/fillers/0", "/policies/0",
                                                    "/x"));
}

TEST(RunConfigFaults, SyntaxFaultHasItsLine) {
  const auto config = parse_run_config("{\n  \"name\": }", "c.json", policies::builtin_policies());
  ASSERT_FALSE(config);
  EXPECT_THAT(config.error()[0].text(), HasSubstr("line 2"));
}

TEST(RunConfigFaults, RepeatedKeyIsAFault) {
  Json json = valid_config();
  std::string text = json.dump();
  text.insert(1, R"("name": "other", )");
  EXPECT_FALSE(parse_run_config(text, "c.json", policies::builtin_policies()));
}

TEST(RunConfigFaults, MissingFilesAreReportedTogether) {
  const auto config = read_run_config(
      BUBBLESIM_SOURCE_DIR "/tests/unit/sim/run/config/missing.json", policies::builtin_policies());
  ASSERT_FALSE(config);
  std::vector<std::string> places;
  for (const Error& error : config.error()) places.push_back(error.place);
  EXPECT_THAT(places, testing::ElementsAre("/training/trace", "/fillers/0/program/trace",
                                           "/fillers/0/arrivals/path"));
}

TEST(RunConfigFaults, FileThatIsNotThereIsAFault) {
  EXPECT_FALSE(read_run_config("no/such/config.json", policies::builtin_policies()));
}

}  // namespace
}  // namespace bubblesim::run
