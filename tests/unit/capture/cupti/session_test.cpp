// A session against a CUPTI of the test's: order of calls, undoing, who is named, late callbacks.
#include <gmock/gmock.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

#include "capture/record/cupti/session.hpp"
#include "capture/record/cupti/traced_calls.hpp"
#include "tests/fault.hpp"
#include "tests/unit/capture/cupti/cupti_double.hpp"

namespace bubblesim::capture {
namespace {

using cupti::Result;
using testing::ElementsAre, testing::HasSubstr, testing::IsEmpty;

bool switches_single_call(const std::string& call) {
  return call.find("runtime ") == 1 || call.find("driver ") == 1;
}

bool is_of_stream_value(const std::string& call) {
  return std::ranges::any_of(cupti::kStreamValueCalls, [&](const cupti::StreamValueCall& it) {
    return call.ends_with("callback 1:" + std::to_string(it.id)) ||
           call.ends_with("callback 1:" + std::to_string(it.id + 1));
  });
}

/// The calls, without the hundreds that switch single API calls.
std::vector<std::string> outline(const CuptiDouble& cupti) {
  std::vector<std::string> outline;
  for (const std::string& call : cupti.calls) {
    if (is_of_stream_value(call)) continue;
    if (!switches_single_call(call)) outline.push_back(call);
    else if (!outline.back().starts_with(call.substr(0, 7)))
      outline.push_back(call.substr(0, 7) + "...");
  }
  return outline;
}

class CuptiSessionTest : public testing::Test {
 protected:
  auto started(const SessionSettings& options = {}) {
    auto session = CuptiSession::start(cupti.api, options, owner);
    EXPECT_TRUE(session) << session.error().text();
    return session;
  }
  Error refused() {
    const auto session = CuptiSession::start(cupti.api, {}, owner);
    EXPECT_FALSE(session);
    return session ? Error{} : session.error();
  }
  CuptiDouble cupti;
  OwnerDouble owner;
};

TEST_F(CuptiSessionTest, StartsInTheOrderThatCuptiWants) {
  const auto session = must(started({.zeroed_buffers = true}));
  EXPECT_THAT(outline(cupti),
              ElementsAre("subscribe", "+callback 6:1", "+callback 3:2", "+callback 3:13",
                          "+callback 3:20", "+callback 2:164",
                          "+callback 1:389", "+callback 1:545", "thread ids 1", "register",
                          "attribute 5 = 1", "all syncs 0", "+kind 8", "+kind 9", "+kind 37",
                          "+kind 5", "-runtim...", "+kind 4", "-driver...", "+kind 1",
                          "+kind 22", "+kind 2", "+kind 38", "+kind 36", "+kind 17", "+kind 49",
                          "+kind 10"));
  EXPECT_THAT(session->reduced(), IsEmpty());
}

// Of the calls cuLaunchKernelEx alone, by which NCCL launches.
TEST_F(CuptiSessionTest, ALightOneEnablesKernelsAndTheLaunchesOfNccl) {
  const auto session = must(started({.light = true}));
  EXPECT_TRUE(cupti.enabled.contains("kind 10"));
  EXPECT_TRUE(cupti.enabled.contains("kind 4"));
  for (const char* kind : {"kind 1", "kind 2", "kind 5", "kind 17", "kind 36", "kind 49"})
    EXPECT_FALSE(cupti.enabled.contains(kind)) << kind;
  EXPECT_TRUE(cupti.records_call(cupti::kKindDriver, 652));
  EXPECT_FALSE(cupti.records_call(cupti::kKindDriver, 307));
  ASSERT_EQ(session->reduced().size(), 1U);
  EXPECT_THAT(session->reduced()[0], HasSubstr("light: "));
}

TEST_F(CuptiSessionTest, StopFlushesDisablesInReverseAndUnsubscribes) {
  const auto session = must(started({.memory = false, .zeroed_buffers = true}));
  cupti.calls.clear();
  EXPECT_TRUE(session->stop(false));
  EXPECT_THAT(outline(cupti),
              ElementsAre("flush 0", "-kind 10", "-kind 17", "-kind 36", "-kind 38", "-kind 2",
                          "-kind 22", "-kind 1", "-kind 4", "-kind 5", "-kind 37", "-kind 9",
                          "-kind 8", "-callback 1:545", "-callback 1:389", "-callback 2:164",
                          "-callback 3:20", "-callback 3:13", "-callback 3:2", "-callback 6:1",
                          "flush 0", "all syncs 1", "attribute 5 = 0", "thread ids 0",
                          "unsubscribe"));
  EXPECT_THAT(cupti.enabled, IsEmpty());
  EXPECT_TRUE(session->stop(false)) << "a second stop does nothing";
  EXPECT_FALSE(session->flush()) << "nothing is left to flush";
  EXPECT_EQ(cupti.calls.back(), "unsubscribe");
}

TEST_F(CuptiSessionTest, AtExitIncompleteRecordsAreTakenToo) {
  const auto session = must(started());
  EXPECT_TRUE(session->stop(true));
  EXPECT_EQ(std::count(cupti.calls.begin(), cupti.calls.end(), "flush 1"), 1);
}

TEST_F(CuptiSessionTest, AWholeGraphIsOneRecordIfAsked) {
  const auto session = must(started({.graphs = GraphDetail::kGraph}));
  EXPECT_TRUE(cupti.enabled.contains("kind 51"));
}

TEST(CuptiSessionFailures, AnErrorAtAnyCallLeavesNothingBehind) {
  std::size_t calls = 0;
  {
    CuptiDouble cupti;
    OwnerDouble owner;
    const auto session = must(CuptiSession::start(cupti.api, {.zeroed_buffers = true}, owner));
    calls = cupti.calls.size();
  }
  EXPECT_GT(calls, 1500U);
  for (std::size_t failing = 1; failing <= calls; ++failing) {
    CuptiDouble cupti;
    OwnerDouble owner;
    cupti.fail_at = failing;
    const auto session = CuptiSession::start(cupti.api, {.zeroed_buffers = true}, owner);
    if (switches_single_call(cupti.calls[failing - 1])) {
      EXPECT_TRUE(session) << failing << ": one more call is recorded, and that is all";
      continue;
    }
    ASSERT_FALSE(session) << failing << " " << cupti.calls[failing - 1];
    EXPECT_THAT(session.error().message, HasSubstr("CUPTI_ERROR_SOME (999)")) << failing;
    EXPECT_THAT(session.error().place, HasSubstr("cupti")) << failing;
    EXPECT_THAT(cupti.enabled, IsEmpty()) << failing;
    EXPECT_FALSE(cupti.subscribed) << failing;
    if (failing > 1) {
      EXPECT_THAT(cupti.calls, testing::Contains("attribute 5 = 0")) << failing;
    }
    EXPECT_EQ(owner.wanted.load(), owner.done.load());
  }
}

TEST_F(CuptiSessionTest, AFailedStartFlushesOnlyIfCuptiHadBegun) {
  cupti.refuses["register"] = Result::kUnknown;
  EXPECT_FALSE(CuptiSession::start(cupti.api, {}, owner));
  EXPECT_EQ(std::count(cupti.calls.begin(), cupti.calls.end(), "flush 0"), 0);
  cupti.refuses = {{"+kind 10", Result::kNotCompatible}};
  EXPECT_EQ(refused().place, "cuptiActivityEnable(CONCURRENT_KERNEL)");
  EXPECT_EQ(std::count(cupti.calls.begin(), cupti.calls.end(), "flush 0"), 1);
}

TEST_F(CuptiSessionTest, NamesWhoHoldsCupti) {
  cupti.holder = "CUPTI for Kineto";
  EXPECT_EQ(refused().text(),
            "double: cuptiSubscribe_v2: CUPTI_ERROR_MULTIPLE_SUBSCRIBERS (39): CUPTI for Kineto "
            "has CUPTI in this process; it was left alone");
  EXPECT_THAT(cupti.calls, IsEmpty());
}

TEST_F(CuptiSessionTest, AnOlderCuptiDoesNotSayWhoHoldsIt) {
  cupti.holder = "Nsight Systems";
  cupti.api.subscribe_v2 = nullptr;
  EXPECT_THAT(refused().message, HasSubstr("another profiler"));
}

TEST_F(CuptiSessionTest, GoesWithoutWhatADriverRefuses) {
  cupti.refuses = {{"+kind 49", Result::kInvalidKind}, {"+kind 17", Result::kNotSupported}};
  const auto session = must(started());
  EXPECT_THAT(session->reduced(),
              ElementsAre(HasSubstr("OVERHEAD): CUPTI_ERROR_SOME (27); neither"),
                          HasSubstr("MEMORY2): CUPTI_ERROR_SOME (21); allocations")));
}

TEST_F(CuptiSessionTest, RecordsAllCallsWhereSingleOnesCannotBe) {
  cupti.api.enable_driver_api = nullptr;
  cupti.api.enable_runtime_api = nullptr;
  cupti.api.enable_and_dump = nullptr;
  cupti.api.enable_all_sync_records = nullptr;
  const auto session = must(started());
  EXPECT_TRUE(cupti.enabled.contains("kind 5"));
  EXPECT_TRUE(cupti.enabled.contains("kind 4"));
  EXPECT_TRUE(cupti.enabled.contains("kind 8")) << "without a dump: for contexts to come";
  EXPECT_EQ(session->reduced().size(), 2U);
}

TEST_F(CuptiSessionTest, RecordsTheListedCallsAndNoOthers) {
  const auto session = must(started());
  std::size_t recorded = 0;
  for (std::uint32_t id = 1; id < kCallNumbers; ++id) {
    recorded += cupti.records_call(cupti::kKindRuntime, id) ? 1 : 0;
    recorded += cupti.records_call(cupti::kKindDriver, id) ? 1 : 0;
  }
  EXPECT_EQ(recorded, traced_runtime_calls().size() + traced_driver_calls().size());
  for (const TracedCall& call : traced_runtime_calls())
    EXPECT_TRUE(cupti.records_call(cupti::kKindRuntime, call.id)) << call.name;
  for (const TracedCall& call : traced_driver_calls())
    EXPECT_TRUE(cupti.records_call(cupti::kKindDriver, call.id)) << call.name;
}

TEST_F(CuptiSessionTest, NumbersThatThisCuptiDoesNotKnowAreNoReduction) {
  cupti.refuses = {{"-runtime 1023", Result::kInvalidParameter},
                   {"-driver 1022", Result::kUnknown}};
  const auto session = must(started());
  EXPECT_THAT(session->reduced(), IsEmpty());
  EXPECT_FALSE(cupti.records_call(cupti::kKindDriver, 1023)) << "others are left out still";
}

TEST_F(CuptiSessionTest, OnlyOneAtATime) {
  auto first = must(CuptiSession::start(cupti.api, {}, owner));
  const auto second = error_of(CuptiSession::start(cupti.api, {}, owner));
  EXPECT_THAT(second.message, HasSubstr("under way already"));
  EXPECT_TRUE(first->stop(false));
  EXPECT_TRUE(CuptiSession::start(cupti.api, {}, owner)) << "and another one afterwards";
}

TEST_F(CuptiSessionTest, BuffersGoToTheOwnerAndDropsAreTold) {
  const auto session = must(started());
  EXPECT_EQ(cupti.ask_for_buffer(), owner.memory);
  cupti.dropped = 7;
  EXPECT_TRUE(session->flush());
  EXPECT_EQ(owner.done, 1);
  EXPECT_EQ(owner.last_valid, 8U);
  EXPECT_EQ(owner.dropped, 7U);
}

TEST_F(CuptiSessionTest, StopWaitsForBuffersButNotForEver) {
  const auto session = must(started());
  cupti.ask_for_buffer();
  cupti.keeps_buffers = true;
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_TRUE(session->stop(false));
  const auto took = std::chrono::steady_clock::now() - begin;
  EXPECT_GE(took, std::chrono::milliseconds{1000});
  EXPECT_LT(took, std::chrono::seconds{5});
  EXPECT_EQ(owner.done, 0);
}

TEST_F(CuptiSessionTest, ARecordWithoutAnEndDoesNotCostItsWholeBuffer) {
  const auto session = must(started());
  cupti.ask_for_buffer();
  cupti.keeps_incomplete = true;
  EXPECT_TRUE(session->stop(false));
  EXPECT_EQ(owner.done, 1);
  EXPECT_EQ(std::count(cupti.calls.begin(), cupti.calls.end(), "flush 1"), 1);
}

TEST_F(CuptiSessionTest, LateCallbacksGetABufferAndReachNobody) {
  auto session = must(started());
  session.reset();
  std::uint8_t* const first = cupti.ask_for_buffer();
  std::uint8_t* const second = cupti.ask_for_buffer();
  ASSERT_NE(first, nullptr);
  EXPECT_NE(first, second);
  EXPECT_NE(first, owner.memory);
  cupti.return_buffers(8);
  EXPECT_EQ(cupti.ask_for_buffer(), first) << "given again";
  cupti.return_buffers(8);
  cupti.callback(nullptr, cupti::kDomainState, cupti::kStateFatalError, nullptr);
  EXPECT_EQ(owner.wanted + owner.done, 0);
  EXPECT_EQ(owner.broken, "");
}

// A barrier between a wait for 7 at 0x100 and a write of 8 to 0x200.
TEST_F(CuptiSessionTest, TellsOfTheValuesOfABatch) {
  cupti.api.get_stream_id = [](void*, void*, std::uint8_t per_thread, std::uint32_t* id) {
    *id = 40U + per_thread;
    return Result::kSuccess;
  };
  const auto session = must(started());
  const cupti::BatchOperation operations[] = {{1, 0x100, 7, {}}, {6, 0, 0, {}}, {5, 0x200, 8, {}}};
  const cupti::BatchParameters batch{nullptr, 3, operations};
  cupti::CallbackData data{};
  data.parameters = &batch;
  data.context_id = 3;
  data.correlation = 99;
  cupti.callback(nullptr, cupti::kDomainDriver, 668, &data);
  ASSERT_EQ(owner.values.size(), 2U);
  EXPECT_TRUE(owner.values[0].waits);
  EXPECT_EQ(owner.values[0].address, 0x100U);
  EXPECT_EQ(owner.values[0].value, 7U);
  EXPECT_EQ(owner.values[0].stream, 41U);
  EXPECT_FALSE(owner.values[1].waits);
  EXPECT_EQ(owner.values[1].address, 0x200U);
  EXPECT_EQ(owner.values[1].correlation, 99U);
  EXPECT_EQ(owner.values[1].context, 3U);
}

TEST_F(CuptiSessionTest, TellsOfEndingContextsAndOwnFailures) {
  const auto session = must(started());
  owner.session = session.get();
  cupti.ask_for_buffer();
  cupti.callback(nullptr, cupti::kDomainResource, cupti::kResourceContextDestroyStarting, nullptr);
  EXPECT_EQ(owner.endings, 1);
  EXPECT_EQ(owner.done, 1) << "a flush within the callback is allowed";
  cupti::CallbackData reset{};
  reset.site = cupti::kSiteEnter, reset.function = "cudaDeviceReset";
  cupti.callback(nullptr, cupti::kDomainRuntime, cupti::kRuntimeDeviceReset, &reset);
  reset.site = 1;
  cupti.callback(nullptr, cupti::kDomainRuntime, cupti::kRuntimeDeviceReset, &reset);
  EXPECT_EQ(owner.endings, 2) << "at the entry only";
  const cupti::StateData state{Result::kUnknown, "out of device memory"};
  cupti.callback(nullptr, cupti::kDomainState, cupti::kStateFatalError, &state);
  EXPECT_EQ(owner.broken, "out of device memory");
}

TEST_F(CuptiSessionTest, CallbacksOfManyThreadsDuringStopAreSafe) {
  for (int round = 0; round < 20; ++round) {
    auto session = must(CuptiSession::start(cupti.api, {}, owner));
    const cupti::BufferRequested requested = cupti.requested;
    const cupti::BufferCompleted completed = cupti.completed;
    std::atomic<bool> go{true};
    std::vector<std::thread> threads;
    for (int i = 0; i < 3; ++i) {
      threads.emplace_back([&go, requested, completed] {
        while (go.load()) {
          std::uint8_t* buffer = nullptr;
          std::size_t size = 0;
          std::size_t records = 0;
          requested(&buffer, &size, &records);
          ASSERT_NE(buffer, nullptr);
          completed(nullptr, 0, buffer, size, 0);
        }
      });
    }
    std::this_thread::sleep_for(std::chrono::milliseconds{1});
    session.reset();
    go.store(false);
    for (std::thread& thread : threads) thread.join();
  }
}

}  // namespace
}  // namespace bubblesim::capture
