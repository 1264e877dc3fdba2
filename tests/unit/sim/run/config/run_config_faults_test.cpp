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
  const char* patch;    ///< JSON merge patch of the valid config; lists are replaced
  const char* place;
  const char* message;  ///< part of it
};

void PrintTo(const Case& fault, std::ostream* out) { *out << fault.name; }

class RunConfigFault : public testing::TestWithParam<Case> {};

TEST_P(RunConfigFault, IsReportedAtItsPlace) {
  Json json = valid_config();
  json.merge_patch(Json::parse(GetParam().patch));
  const auto config = error_of(parse(json));
  ASSERT_EQ(config.size(), 1U) << config[1].text();
  const Error& error = config[0];
  EXPECT_EQ(error.file, "configs/test.json");
  EXPECT_EQ(error.place, GetParam().place);
  EXPECT_THAT(error.message, HasSubstr(GetParam().message));
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
    {"ModeMisspelt", R"({"fillers": [{"name": "a", "mode": "ofline", "program": {"trace": "x"}}]})",
     "/fillers/0/mode", "offline"},
    {"TwoPrograms", R"({"fillers": [{"name": "a", "mode": "offline",
                        "program": {"trace": "x", "kernel_table": "y"}}]})",
     "/fillers/0/program", "both"},
    {"NoProgram", R"({"fillers": [{"name": "a", "mode": "offline", "program": {}}]})",
     "/fillers/0/program", "neither"},
    {"GapWithoutTable", R"({"fillers": [{"name": "a", "mode": "offline",
                            "program": {"trace": "x", "launch_gap": "5us"}}]})",
     "/fillers/0/program/launch_gap", "unknown"},
    {"NoGpus", R"({"fillers": [{"name": "a", "mode": "offline", "program": {"trace": "x"},
                   "gpus": []}]})",
     "/fillers/0/gpus", "empty"},
    {"SomeGpus", R"({"fillers": [{"name": "a", "mode": "offline", "program": {"trace": "x"},
                     "gpus": "some"}]})",
     "/fillers/0/gpus", "all"},
    {"NegativeGpu", R"({"fillers": [{"name": "a", "mode": "offline", "program": {"trace": "x"},
                        "gpus": [0, -1]}]})",
     "/fillers/0/gpus/1", "-1"},
    {"GpuTwice", R"({"fillers": [{"name": "a", "mode": "offline", "program": {"trace": "x"},
                     "gpus": [1, 0, 1]}]})",
     "/fillers/0/gpus", "GPU 1 twice"},
    {"ZeroBatch", R"({"fillers": [{"name": "a", "mode": "offline", "program": {"trace": "x"},
                      "max_batch": 0}]})",
     "/fillers/0/max_batch", "0"},
    {"BatchCostAboveOne", R"({"fillers": [{"name": "a", "mode": "offline",
                              "program": {"trace": "x"}, "batch_cost": 1.5}]})",
     "/fillers/0/batch_cost", "1.5"},
    {"OfflineWithArrivals",
     R"({"fillers": [{"name": "a", "mode": "offline", "program": {"trace": "x"},
         "arrivals": {"process": "poisson", "rate_per_s": 1}}]})",
     "/fillers/0/arrivals", "online"},
    {"OfflineWithDeadline", R"({"fillers": [{"name": "a", "mode": "offline",
                                "program": {"trace": "x"}, "deadline": "1ms"}]})",
     "/fillers/0/deadline", "online"},
    {"OnlineWithoutArrivals",
     R"({"fillers": [{"name": "a", "mode": "online", "program": {"trace": "x"}}]})", "/fillers/0",
     "arrivals"},
    {"ZeroRate", R"({"fillers": [{"name": "a", "mode": "online", "program": {"trace": "x"},
                     "arrivals": {"process": "poisson", "rate_per_s": 0}}]})",
     "/fillers/0/arrivals/rate_per_s", "0"},
    {"PoissonWithCv", R"({"fillers": [{"name": "a", "mode": "online", "program": {"trace": "x"},
                          "arrivals": {"process": "poisson", "rate_per_s": 1, "cv": 2}}]})",
     "/fillers/0/arrivals/cv", "unknown"},
    {"UnknownFormat", R"({"fillers": [{"name": "a", "mode": "online", "program": {"trace": "x"},
                          "arrivals": {"process": "file", "path": "p", "format": "azur"}}]})",
     "/fillers/0/arrivals/format", "azure"},
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
