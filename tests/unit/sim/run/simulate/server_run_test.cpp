// A server of a language-model engine beside the golden job, request by request.
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <functional>

#include "sim/hardware/gpu_spec_file.hpp"
#include "sim/run/model_filler.hpp"
#include "tests/unit/sim/run/simulate/small_run.hpp"

namespace bubblesim::run {
namespace {

using ::testing::HasSubstr;

const std::string kDeviceFolder = BUBBLESIM_SOURCE_DIR "/configs/devices";

FillerConfig server_filler(observe::FillerMode mode) {
  FillerConfig filler = offline("chat");
  filler.mode = mode;
  if (mode == observe::FillerMode::kOnline) filler.arrivals = workload::PoissonArrivals{200};
  synth::InferenceNames names;
  names.model = "llama-68m";
  names.efficiency = "a100-40gb";
  synth::EngineNames& engine = names.engine.emplace();
  engine.settings.scheduler = serving::vllm_settings();
  engine.settings.scheduler.max_model_len = 512;
  engine.settings.cache = synth::CacheBlocks{24};  // 384 tokens: three or four requests
  engine.requests.lengths = workload::DrawnLengths{workload::LognormalLength{60, 1, 1, 200},
                                                   workload::LognormalLength{20, 1, 1, 100}};
  filler.program = names;
  filler.limits = observe::ServiceLimits{50ms, 10ms, {}};
  return filler;
}

/// The golden job for two seconds; its GPU with the memory of a small model besides.
LoadedRun server_run(observe::FillerMode mode) {
  FillerConfig filler = server_filler(mode);
  LoadedRun loaded = small_run({filler});
  loaded.config.duration = 2s;
  const auto device = hardware::find_gpu_spec("a100-40gb", kDeviceFolder);
  loaded.fillers[0] = must(load_model_filler(filler, *device, kDeviceFolder));
  for (const char* name : {"mps", "time_slicing", "specinf"}) {
    loaded.config.policies.push_back(choice(name));
  }
  return loaded;
}

/// Each request is counted once; each that arrived is a sample: it has a first token, or waits for
/// it.
void expect_conserved(const observe::FillerResult& chat) {
  EXPECT_EQ(chat.requests_before + chat.requests_arrived,
            chat.requests_completed + chat.requests_unfinished + chat.requests_refused);
  ASSERT_TRUE(chat.server);
  EXPECT_EQ(chat.server->ttft.completed() + chat.server->ttft.unfinished(), chat.requests_arrived);
}

void fix_lengths(LoadedRun& loaded, std::uint32_t prompt, std::uint32_t output) {
  auto& names = std::get<synth::InferenceNames>(loaded.config.fillers[0].program);
  names.engine->requests.lengths =
      workload::DrawnLengths{workload::FixedLength{prompt}, workload::FixedLength{output}};
}

TEST(ServerRun, OnlineRequestsAreConservedAndWaitForTheirTokens) {
  const auto report = report_of(server_run(observe::FillerMode::kOnline));
  ASSERT_EQ(report.policies.size(), 3U);
  for (const observe::PolicyResult& policy : report.policies) {
    SCOPED_TRACE(policy.policy);
    const observe::FillerResult& chat = policy.fillers[0];
    ASSERT_NO_FATAL_FAILURE(expect_conserved(chat));
    EXPECT_GT(chat.requests_completed, 100U);
    const observe::ServerResult& server = *chat.server;
    EXPECT_LE(server.ttft.percentile(50)->value, chat.latency.percentile(50)->value);
    EXPECT_LE(server.tpot.completed(), chat.requests_completed);
    EXPECT_GT(server.preemptions, 0U);
    EXPECT_LE(server.most_kv_fraction, 1.0);
    EXPECT_LE(server.mean_kv_fraction, server.most_kv_fraction);
    ASSERT_TRUE(server.within_limits);
    EXPECT_LE(*server.within_limits, chat.requests_completed);
  }
}

// Ten requests a second for two seconds, each alone: a prompt of 100 tokens and 2 tokens of output
// hold 7 of a GPU's 24 blocks from arrival to the last token, so the mean over both GPUs is
// 7 / 24 x latencies / (2 x 2 s).
TEST(ServerRun, CacheIsHeldAsLongAsRequestsAre) {
  LoadedRun loaded = server_run(observe::FillerMode::kOnline);
  loaded.config.fillers[0].arrivals = workload::GammaArrivals{10.3, 0.01};
  fix_lengths(loaded, 100, 2);
  loaded.config.policies.pop_back();  // specinf lets requests wait, without blocks
  const auto report = report_of(loaded);
  for (const observe::PolicyResult& policy : report.policies) {
    SCOPED_TRACE(policy.policy);
    const observe::FillerResult& chat = policy.fillers[0];
    ASSERT_EQ(chat.requests_unfinished, 0U);
    ASSERT_EQ(chat.instances.size(), 2U);
    const double held = to_seconds(chat.latency.summary()->mean.value) *
                        static_cast<double>(chat.requests_completed);
    EXPECT_NEAR(chat.server->mean_kv_fraction, 7.0 / 24 * held / (2 * 2), 1e-6);
  }
}

/// Prompts of 100 and outputs of 20 tokens: 8 blocks at the end, so 3 of them fill the 24 blocks of
/// a GPU, and 4 may be there while they are short. `max_num_seqs` is far more.
LoadedRun three_at_once(observe::FillerMode mode) {
  LoadedRun loaded = server_run(mode);
  fix_lengths(loaded, 100, 20);
  loaded.config.policies = {choice("mps")};
  return loaded;
}

/// Requests a second that each GPU serves at most, by itself.
double most_served() {
  const LoadedRun loaded = three_at_once(observe::FillerMode::kOffline);
  return report_of(loaded).baseline.fillers.at(0).requests_per_s;
}

// A tenth more than both GPUs serve alone arrives for half a second: a backlog of far more than the
// 8 requests that both caches hold, and of fewer than max_num_seqs.
TEST(ServerRun, ABacklogOfMoreThanTheCacheHoldsIsAnOverload) {
  const double most = 2 * most_served();
  LoadedRun loaded = three_at_once(observe::FillerMode::kOnline);
  loaded.config.duration = 500ms;
  loaded.config.fillers[0].arrivals = workload::GammaArrivals{1.1 * most, 0.01};
  const observe::FillerResult over = report_of(loaded).policies[0].fillers[0];
  EXPECT_LT(over.requests_unfinished, loaded.server(0)->scheduler.max_num_seqs);
  EXPECT_TRUE(over.overloaded);
}

// A fifth more arrives than a GPU alone serves: what the filler gains is what it serves beside
// training over what a GPU served, not over what arrived.
TEST(ServerRun, WhatAnOverloadedServerGainsIsMeasuredByWhatItServesAlone) {
  const double most = most_served();
  LoadedRun loaded = three_at_once(observe::FillerMode::kOnline);
  loaded.config.precision = PrecisionGoal{.least = 100ms, .most = 5s};
  loaded.config.duration = 5s;
  loaded.config.fillers[0].arrivals = workload::GammaArrivals{2 * 1.2 * most, 0.01};
  const observe::RunReport report = report_of(loaded);
  const double alone = report.baseline.fillers[0].requests_per_s;
  EXPECT_LT(alone, 1.05 * most);
  const observe::FillerResult& chat = report.policies[0].fillers[0];
  EXPECT_DOUBLE_EQ(*chat.normalised_to_own_gpu, chat.requests_per_s / 2 / alone);
}

/// Five recorded requests: the second cannot be read, the fourth has an empty prompt, and the last
/// arrives after the end of server_run().
class RecordedRequests : public ::testing::Test {
 protected:
  RecordedRequests() {
    std::ofstream(path_) << "timestamp,input_tokens,output_tokens\n"
                            "0.0,16,3\n"
                            "0.1,16.5,2\n"
                            "0.2,16,5\n"
                            "0.3,0,7\n"
                            "10.0,16,11\n";
  }
  ~RecordedRequests() override { std::filesystem::remove(path_); }

  [[nodiscard]] synth::RequestNames::File file() const {
    return {path_, workload::ArrivalFormat::kServegen, workload::ListedLengths::Pick::kInOrder};
  }
  [[nodiscard]] workload::FileArrivals arrivals() const {
    return {path_, workload::ArrivalFormat::kServegen, 1};
  }
  [[nodiscard]] LoadedRun run() const {
    LoadedRun loaded = server_run(observe::FillerMode::kOnline);
    loaded.config.policies.resize(1);
    lengths_of(loaded).reset();
    return loaded;
  }
  static decltype(synth::RequestNames::lengths)& lengths_of(LoadedRun& loaded) {
    auto& names = std::get<synth::InferenceNames>(loaded.config.fillers[0].program);
    return names.engine->requests.lengths;
  }
  [[nodiscard]] observe::PolicyResult result_of(const LoadedRun& loaded) const {
    return report_of(loaded).policies.at(0);
  }

  const std::string path_ = testing::TempDir() + "bubblesim_recorded_requests.csv";
};

// What arrives at 0, 0.2 and 0.3 s writes 3 + 5 + 7 tokens. If only the lengths lacked the damaged
// line, four would arrive, and the last two would have their successor's length: 3 + 5 + 7 + 11.
TEST_F(RecordedRequests, DamagedOnesAreMissingAndOthersKeepTheirLengths) {
  LoadedRun by_arrivals = run();
  by_arrivals.config.fillers[0].arrivals = arrivals();
  LoadedRun by_both = by_arrivals;
  lengths_of(by_both) = file();
  for (const LoadedRun* loaded : {&by_arrivals, &by_both}) {
    const observe::PolicyResult result = result_of(*loaded);
    EXPECT_EQ(result.fillers[0].requests_arrived, 3U);
    EXPECT_EQ(result.fillers[0].requests_completed, 3U);
    EXPECT_EQ(result.fillers[0].server->output_tokens, 3U + 5 + 7);
    EXPECT_EQ(result.counters.count("arrival_lines_damaged"), 1U);
    EXPECT_EQ(result.counters.count("request_lengths_raised"), 1U);
  }
}

TEST_F(RecordedRequests, DamageOfAFileOfLengthsAloneIsCounted) {
  LoadedRun loaded = run();
  lengths_of(loaded) = file();
  const observe::PolicyResult result = result_of(loaded);
  EXPECT_EQ(result.counters.count("arrival_lines_damaged"), 1U);
  EXPECT_EQ(result.counters.count("request_lengths_raised"), 1U);
}

/// The run with another plan of its server.
LoadedRun with_plan(LoadedRun run, const std::function<void(synth::ServerPlan&)>& change) {
  LoadedFiller filler = *run.fillers[0];
  synth::ServerPlan plan = **filler.server;
  change(plan);
  filler.server.emplace(std::move(plan));
  run.fillers[0] = std::move(filler);
  return run;
}

/// The first of two GPUs computes prompts, which go over `link` to the second.
LoadedRun apart_run(BytesPerSecond link) {
  LoadedRun loaded =
      with_plan(server_run(observe::FillerMode::kOnline), [link](synth::ServerPlan& plan) {
        plan.prefill = synth::PrefillSplit{1, link, Duration{}, synth::KvWrites::kContiguous};
      });
  loaded.config.fillers[0].arrivals = workload::PoissonArrivals{40};
  return loaded;
}

TEST(ServerRun, PrefillAndDecodeApartLoseNoRequestAndTokensWaitForTheLink) {
  const LoadedRun fast = apart_run({1e12});
  const LoadedRun slow = apart_run({1e8});
  const auto fast_report = report_of(fast);
  const auto slow_report = report_of(slow);
  // A prompt of one token takes a block over the link, 100 MB/s slow.
  const Duration least = synth::handover_time(*slow.server(0), 1);
  for (std::size_t i = 0; i < slow_report.policies.size(); ++i) {
    SCOPED_TRACE(slow_report.policies[i].policy);
    const observe::FillerResult& chat = slow_report.policies[i].fillers[0];
    ASSERT_NO_FATAL_FAILURE(expect_conserved(chat));
    EXPECT_GT(chat.requests_completed, 30U);
    EXPECT_GE(chat.server->tbt.percentile(100)->value, least);
    const observe::FillerResult& quick = fast_report.policies[i].fillers[0];
    EXPECT_GT(chat.latency.percentile(50)->value, quick.latency.percentile(50)->value);
    EXPECT_GT(slow_report.policies[i].counters.count("server_tokens_handed_over"), 1000U);
  }
}

/// The same over the ports of a cluster, which carry `rate` and take 2 us to begin; nothing else
/// uses them.
hardware::ClusterSpec two_gpus(BytesPerSecond rate) {
  hardware::ClusterSpec cluster;
  cluster.gpus_per_node = 2;
  cluster.node.bandwidth = rate;
  return cluster;
}

void put_on(LoadedRun& loaded, const hardware::ClusterSpec& cluster) {
  loaded.topology.emplace(network::Topology(cluster));
  workload::JobProgram job = *loaded.training;
  job.links = (*loaded.topology)->links();
  loaded.training = std::move(job);
}

LoadedRun apart_on_cluster(BytesPerSecond rate) {
  LoadedRun loaded = apart_run({0});
  hardware::ClusterSpec cluster = two_gpus(rate);
  cluster.collectives.p2p_base = 2us;
  put_on(loaded, cluster);
  return loaded;
}

// A link of its own as fast, with writes of 2 us, gives each transfer the same time.
TEST(ServerRun, OverFreeLinksOfTheClusterPromptsTakeWhatALinkOfTheirOwnTakes) {
  const LoadedRun own =
      with_plan(apart_run({1e8}), [](synth::ServerPlan& plan) { plan.prefill->write = 2us; });
  const auto shared = report_of(apart_on_cluster({1e8}));
  const auto alone = report_of(own);
  for (std::size_t i = 0; i < alone.policies.size(); ++i) {
    SCOPED_TRACE(alone.policies[i].policy);
    const observe::FillerResult& a = alone.policies[i].fillers[0];
    const observe::FillerResult& b = shared.policies[i].fillers[0];
    EXPECT_GT(b.requests_completed, 30U);
    EXPECT_NEAR(to_seconds(b.latency.percentile(50)->value),
                to_seconds(a.latency.percentile(50)->value),
                1e-2 * to_seconds(a.latency.percentile(50)->value));
  }
}

/// Collectives of training send so many bytes out of the first GPU's port.
void send_from_first_port(LoadedRun& loaded, double bytes) {
  workload::JobProgram job = *loaded.training;
  network::Transfer transfer;
  transfer.loads = {{(*loaded.topology)->port(0, network::Direction::kOut), bytes}};
  job.transfers = {transfer};
  for (workload::JoinedCollective& collective : job.collectives) collective.transfer = 0;
  loaded.training = std::move(job);
}

// Against prompts that have a link of their own, as fast: each waits for the other.
TEST(ServerRun, PromptsAndGradientsShareALink) {
  LoadedRun apart = apart_run({1e8});
  put_on(apart, two_gpus({1e8}));
  LoadedRun shared = apart_on_cluster({1e8});
  for (LoadedRun* run : {&apart, &shared}) {
    send_from_first_port(*run, 500'000);  // 5 ms with the port to themselves
    run->config.policies = {choice("mps")};
  }
  const auto own_link = report_of(apart);
  const auto one_link = report_of(shared);
  const auto p50 = [](const observe::RunReport& report) {
    return report.policies[0].fillers[0].latency.percentile(50)->value;
  };
  const auto kept = [](const observe::RunReport& report) {
    return *report.policies[0].training.normalised_to_alone;
  };
  EXPECT_GT(p50(one_link), p50(own_link) + 1ms);
  EXPECT_LT(kept(one_link), kept(own_link) - 0.01);
}

TEST(ServerRun, WithoutAGpuToDecodeOnItIsAFault) {
  const LoadedRun loaded =
      with_plan(apart_run({1e9}), [](synth::ServerPlan& plan) { plan.prefill->gpus = 2; });
  EXPECT_THAT(error_of(run_policies(loaded, registry(), {})).text(),
              HasSubstr("found \"prefill\" on 2 of its 2 GPUs"));
}

/// One server over both GPUs, whose ports carry 100 GB/s: the model split, or two members that
/// share the experts of another one.
enum class Over : std::uint8_t { kSplit, kMembers };

LoadedRun split_run(observe::FillerMode mode, Over over = Over::kSplit) {
  LoadedRun loaded = server_run(mode);
  auto& names = std::get<synth::InferenceNames>(loaded.config.fillers[0].program);
  if (over == Over::kSplit) names.engine->settings.tensor = 2;
  if (over == Over::kMembers) {
    names.model = "qwen3-30b-a3b";
    names.engine->settings.members = 2;
    if (mode == observe::FillerMode::kOnline) {
      loaded.config.fillers[0].arrivals = workload::PoissonArrivals{5};
    }
  }
  const auto device = hardware::find_gpu_spec("a100-40gb", kDeviceFolder);
  FillerConfig filler = loaded.config.fillers[0];
  loaded.fillers[0] = must(load_model_filler(filler, *device, kDeviceFolder));
  put_on(loaded, two_gpus({100e9}));
  return loaded;
}

void expect_parts_on_both_gpus(Over over, std::uint64_t completed) {
  const LoadedRun loaded = split_run(observe::FillerMode::kOnline, over);
  const auto report = report_of(loaded);
  for (const observe::PolicyResult& policy : report.policies) {
    SCOPED_TRACE(policy.policy);
    const observe::FillerResult& chat = policy.fillers[0];
    ASSERT_NO_FATAL_FAILURE(expect_conserved(chat));
    EXPECT_GT(chat.requests_completed, completed);
    EXPECT_LE(chat.server->most_kv_fraction, 1.0);
    ASSERT_EQ(chat.instances.size(), 2U);
    EXPECT_TRUE(chat.instances[0].admitted && chat.instances[1].admitted);
    for (const observe::GpuUse& gpu : policy.gpus) EXPECT_GT(gpu.filler_sm_fraction, 0);
  }
  const auto again = report_of(loaded, on_threads(4));
  EXPECT_EQ(again.policies[0].fillers[0].latency.samples(),
            report.policies[0].fillers[0].latency.samples());
}

TEST(ServerRun, OverTwoGpusItHasPartsOnBothAndLosesNoRequest) {
  expect_parts_on_both_gpus(Over::kSplit, 100);
}

TEST(ServerRun, OfTwoMembersItHasPartsOnBothAndLosesNoRequest) {
  expect_parts_on_both_gpus(Over::kMembers, 3);
}

TEST(ServerRun, RefusedOnOneOfItsGpusItStartsOnNone) {
  LoadedRun loaded = split_run(observe::FillerMode::kOnline);
  loaded.rank_memory = {Bytes{10'000'000'000}, loaded.device.memory};
  const auto report = report_of(loaded);
  const observe::FillerResult& chat = report.policies[0].fillers[0];
  EXPECT_FALSE(chat.instances[0].admitted);
  EXPECT_EQ(chat.instances[0].reason, "its server was refused on GPU 1");
  EXPECT_FALSE(chat.instances[1].admitted);
  EXPECT_GT(chat.requests_refused, 0U);
  EXPECT_EQ(chat.requests_refused, chat.requests_arrived);
  for (const observe::GpuUse& gpu : report.policies[0].gpus) EXPECT_EQ(gpu.filler_sm_fraction, 0);
}

TEST(ServerRun, OverTwoGpusOfflineItServesWithoutEnd) {
  const auto report = report_of(split_run(observe::FillerMode::kOffline));
  EXPECT_GT(report.policies[0].fillers[0].requests_completed, 100U);
}

TEST(ServerRun, OfflineItServesWithoutEndAndNobodyWaits) {
  const auto report = report_of(server_run(observe::FillerMode::kOffline));
  const observe::FillerResult& chat = report.policies[0].fillers[0];
  EXPECT_GT(chat.requests_completed, 100U);
  EXPECT_TRUE(chat.server->ttft.empty());
  EXPECT_GT(chat.server->output_tokens, chat.requests_completed);
  EXPECT_FALSE(chat.server->within_limits);
}

TEST(ServerRun, ResultsDoNotDependOnThreads) {
  const LoadedRun loaded = server_run(observe::FillerMode::kOnline);
  const auto one = report_of(loaded);
  const auto four = report_of(loaded, on_threads(4));
  for (std::size_t i = 0; i < one.policies.size(); ++i) {
    const observe::FillerResult& a = one.policies[i].fillers[0];
    const observe::FillerResult& b = four.policies[i].fillers[0];
    EXPECT_EQ(a.server->ttft.samples(), b.server->ttft.samples());
    EXPECT_EQ(a.server->tpot.samples(), b.server->tpot.samples());
    EXPECT_EQ(a.latency.samples(), b.latency.samples());
  }
}

TEST(ServerRun, RequestsThatTheEngineCannotServeAreAFault) {
  LoadedRun loaded = server_run(observe::FillerMode::kOnline);
  const auto fault = [&loaded](std::uint32_t prompt, std::uint32_t output) {
    fix_lengths(loaded, prompt, output);
    return error_of(run_policies(loaded, registry(), {})).text();
  };
  EXPECT_THAT(fault(500, 100),
              HasSubstr("500 prompt and 100 output tokens; expected at most what max_model_len "
                        "512 holds together"));
  EXPECT_THAT(fault(300, 100), HasSubstr("the KV cache of 24 blocks of 16 tokens holds"));
}

}  // namespace
}  // namespace bubblesim::run
