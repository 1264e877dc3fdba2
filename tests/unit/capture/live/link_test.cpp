// The gate's part in a process, here in this one: threads that launch on a driver that is a few
// functions, so that sanitizers can look at it.
#include "capture/live/interpose/gate_link.hpp"

#include <gmock/gmock.h>

#include <atomic>
#include <cstring>
#include <thread>

#include "capture/live/interpose/calls.hpp"
#include "capture/live/interpose/own_place.hpp"
#include "tests/unit/capture/live/scripted_policy.hpp"
#include "tests/unit/capture/live/wait_for.hpp"

namespace bubblesim::capture::interpose {
namespace {

std::atomic<std::uintptr_t> events{0};
std::atomic<bool> busy{false};     ///< nothing ends
std::atomic<bool> refuses{false};  ///< events cannot be recorded

CuResult context(Handle* into) {
  *into = reinterpret_cast<Handle>(std::uintptr_t{0xC0});
  return kCuSuccess;
}
CuResult set_context(Handle) { return kCuSuccess; }
CuResult create(Handle* event, unsigned) {
  *event = reinterpret_cast<Handle>(++events);
  return kCuSuccess;
}
CuResult record(Handle, Stream) { return refuses ? kCuInvalidValue : kCuSuccess; }
CuResult query(Handle) { return busy ? kCuNotReady : kCuSuccess; }

}  // namespace

// What hooks.cpp and launch_hooks.cpp have.
void* driver_function(const char* symbol) noexcept {
  const auto is = [&](const char* name) { return std::strcmp(symbol, name) == 0; };
  if (is("cuCtxGetCurrent")) return reinterpret_cast<void*>(&context);
  if (is("cuCtxSetCurrent")) return reinterpret_cast<void*>(&set_context);
  if (is("cuEventCreate")) return reinterpret_cast<void*>(&create);
  if (is("cuEventRecord")) return reinterpret_cast<void*>(&record);
  if (is("cuEventQuery")) return reinterpret_cast<void*>(&query);
  return nullptr;
}
thread_local int Inside::depth = 0;

namespace {

/// A host whose client is this process.
class Hosted : public ScriptedHost {
 public:
  explicit Hosted(std::uint32_t window = 0) : ScriptedHost(window) {
    busy = refuses = false;
    policy.let_go(kAllLaunches);
  }
  ~Hosted() {
    link.stop_looking();
    link.leave();
  }

  /// Never destroyed, as in a process.
  Link& link = [this]() -> Link& {
    static std::vector<std::unique_ptr<Link>>& made = *new std::vector<std::unique_ptr<Link>>;
    return *made.emplace_back(
        std::make_unique<Link>(GateSettings{host->gate_name(), "1", "", true}));
  }();
  [[nodiscard]] std::size_t completions() const { return policy.heard().completions.size(); }
};

void launch(Link& link, int times, std::uintptr_t stream) {
  for (int i = 0; i < times; ++i) {
    SeenLaunch seen{{}, reinterpret_cast<Stream>(stream), false, std::chrono::steady_clock::now()};
    link.before_launch(seen);
    link.after_launch(seen, kCuSuccess);
  }
}

TEST(GateLink, ThreadsLaunchAtOnceAndEveryEndIsTold) {
  Hosted hosted;
  Link& link = hosted.link;
  std::vector<std::thread> threads;
  for (std::uintptr_t stream : {1U, 2U, 3U, 4U}) {
    threads.emplace_back([&link, stream] { launch(link, 50, stream % 3); });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(becomes_true([&] { return hosted.completions() == 200; }));
  EXPECT_EQ(hosted.policy.launches(), 200U);
}

// 5,000 operations of a graph are more than a ring of 1,024 messages holds.
TEST(GateLink, EveryOperationOfALargeGraphIsToldInOneMessage) {
  Hosted hosted;
  Link& link = hosted.link;
  SeenLaunch graph;
  graph.began = std::chrono::steady_clock::now();
  graph.info.operations = 5'000;
  link.before_launch(graph);
  link.after_launch(graph, kCuSuccess);
  EXPECT_TRUE(becomes_true([&] { return hosted.completions() == 5'000; }));
  EXPECT_EQ(hosted.host->counts().messages_dropped, 0U);
}

// The policy sleeps through 3,000 ends: what finds the ring full is told later.
TEST(GateLink, AnEndThatFindsTheRingFullIsToldLater) {
  Hosted hosted;
  Link& link = hosted.link;
  busy = true;
  launch(link, 3'000, 1);
  hosted.policy.stall(std::chrono::milliseconds(300));
  busy = false;
  EXPECT_TRUE(becomes_true([&] { return hosted.completions() == 3'000; }));
  EXPECT_EQ(hosted.host->counts().messages_dropped, 0U);
}

TEST(GateLink, AnEventThatCannotBeRecordedIsNotUsedAgain) {
  Hosted hosted;
  Link& link = hosted.link;
  launch(link, 1, 1);
  ASSERT_TRUE(becomes_true([&] { return hosted.completions() == 1; }));
  const std::uintptr_t made = events;
  refuses = true;  // as when the context is gone that the event was of
  launch(link, 1, 1);
  refuses = false;
  launch(link, 1, 1);
  EXPECT_TRUE(becomes_true([&] { return hosted.completions() == 3; }));
  EXPECT_EQ(events, made + 1);
}

TEST(GateLink, WhoWaitsForRoomGoesOnWhenTheDriverGoesAway) {
  Hosted hosted(1);
  Link& link = hosted.link;
  busy = true;
  std::thread launching([&] { launch(link, 3, 1); });
  EXPECT_TRUE(becomes_true([&] { return hosted.policy.launches() == 1; }));
  link.stop_looking();
  launching.join();
}

// What is on the GPU waits for the launch: a collective that no name gives away.
TEST(GateLink, WhoWaitsForRoomGoesOnAfterASecond) {
  Hosted hosted(1);
  Link& link = hosted.link;
  busy = true;
  std::atomic<bool> done{false};
  // Collectives that end all the time are no room.
  std::thread collectives([&] {
    while (!done) {
      SeenLaunch seen{{}, reinterpret_cast<Stream>(std::uintptr_t{2}), false,
                      std::chrono::steady_clock::now()};
      seen.info.kind = program::WorkKind::kCollective;
      link.before_launch(seen);
      link.after_launch(seen, kCuInvalidValue);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  });
  const auto began = std::chrono::steady_clock::now();
  launch(link, 2, 1);
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(10));
  done = true;
  collectives.join();
  EXPECT_TRUE(becomes_true([&] { return hosted.policy.launches() >= 2; }));
}

TEST(GateLink, WhoWaitsForRoomGoesOnWhenTheGateIsOpened) {
  Hosted hosted(1);
  Link& link = hosted.link;
  busy = true;
  std::atomic<int> done{0};
  launch(link, 1, 1);
  std::thread launching([&] { launch(link, 1, 1), done = 1; });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  const auto began = std::chrono::steady_clock::now();
  hosted.host->stop();
  launching.join();
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::milliseconds(500));
}

TEST(GateLink, WhoHasLeftGoesOnUngated) {
  Hosted hosted;
  Link& link = hosted.link;
  launch(link, 1, 1);
  ASSERT_TRUE(becomes_true([&] { return hosted.policy.launches() == 1; }));
  link.stop_looking();
  std::thread launching([&] { launch(link, 100, 2); });
  link.leave();
  launching.join();
  launch(link, 5, 1);
  EXPECT_LE(hosted.policy.launches(), 101U);
}

TEST(OwnPlace, IsLeftOnceAndAnotherClientsIsNot) {
  Hosted hosted;
  Link& link = hosted.link;
  launch(link, 1, 1);
  const std::string& gate = hosted.host->gate_name();
  EXPECT_FALSE(give_up_own_place(gate, ClientId{0}));  // nobody's
  EXPECT_FALSE(give_up_own_place(gate, ClientId{7}));
  EXPECT_FALSE(give_up_own_place("bubblesim.gate.that.is.not.there", ClientId{1}));
  EXPECT_TRUE(give_up_own_place(gate, ClientId{1}));
  EXPECT_FALSE(give_up_own_place(gate, ClientId{1}));
}

}  // namespace
}  // namespace bubblesim::capture::interpose
