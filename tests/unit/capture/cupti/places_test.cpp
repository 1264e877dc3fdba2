// In which order libcupti is looked for.
#include <gmock/gmock.h>

#include <algorithm>

#include "capture/record/cupti/api.hpp"
#include "capture/record/cupti/traced_calls.hpp"
#include "traces/names/host_call_names.hpp"

namespace bubblesim::capture {
namespace {

using testing::ElementsAre;

std::vector<std::string> paths(const std::vector<CuptiPlace>& places) {
  std::vector<std::string> texts;
  for (const CuptiPlace& place : places)
    texts.push_back((place.mapped_only ? "mapped:" : "") + place.path);
  return texts;
}

std::ptrdiff_t place_of(const std::vector<std::string>& texts, const std::string& wanted) {
  return std::find(texts.begin(), texts.end(), wanted) - texts.begin();
}

constexpr const char* kTorchMaps =
    "55d0-55d1 r-xp 00000000 08:01 12 /usr/bin/python3.12\n"
    "7f00-7f01 r-xp 00000000 08:01 13 /opt/env/site-packages/torch/lib/libtorch_cuda.so\n"
    "7f01-7f02 rw-p 00000000 08:01 13 /opt/env/site-packages/torch/lib/libtorch_cuda.so\n"
    "7f02-7f03 r-xp 00000000 00:00 0 \n"
    "7f04-7f05 r-xp 00000000 08:01 14 /opt/my tools/libcupti.so.2025.3.1\n"
    "7ffe-7fff r-xp 00000000 00:00 0 [vdso]";

TEST(CuptiPlaces, ANamedLibraryIsTheOnlyPlace) {
  EXPECT_THAT(paths(cupti_places("/opt/libcupti.so.12", "/cuda", kTorchMaps)),
              ElementsAre("/opt/libcupti.so.12"));
}

TEST(CuptiPlaces, WithoutHintsTheToolkitComesBeforeTheLoader) {
  EXPECT_THAT(paths(cupti_places("", "", "")),
              ElementsAre("mapped:libcupti.so.13", "mapped:libcupti.so.12", "mapped:libcupti.so",
                          "/usr/local/cuda/lib64/libcupti.so.13",
                          "/usr/local/cuda/lib64/libcupti.so.12",
                          "/usr/local/cuda/lib64/libcupti.so",
                          "/usr/local/cuda/extras/CUPTI/lib64/libcupti.so.13",
                          "/usr/local/cuda/extras/CUPTI/lib64/libcupti.so.12",
                          "/usr/local/cuda/extras/CUPTI/lib64/libcupti.so", "libcupti.so.13",
                          "libcupti.so.12", "libcupti.so"));
}

TEST(CuptiPlaces, AMappedCopyOfAnyNameComesBeforeAllOthers) {
  const auto texts = paths(cupti_places("", "/cuda", kTorchMaps));
  EXPECT_EQ(place_of(texts, "mapped:/opt/my tools/libcupti.so.2025.3.1"), 3);
}

TEST(CuptiPlaces, TheWheelsOfTorchComeBeforeTheToolkit) {
  const auto texts = paths(cupti_places("", "/cuda", kTorchMaps));
  const auto wheel = place_of(texts, "/opt/env/site-packages/nvidia/cu13/lib/libcupti.so.13");
  const auto older = place_of(texts, "/opt/env/site-packages/nvidia/cuda_cupti/lib/libcupti.so.12");
  const auto home = place_of(texts, "/cuda/extras/CUPTI/lib64/libcupti.so.13");
  EXPECT_LT(wheel, older);
  EXPECT_LT(older, home);
  EXPECT_LT(home, place_of(texts, "/usr/local/cuda/lib64/libcupti.so.13"));
  EXPECT_LT(home, static_cast<std::ptrdiff_t>(texts.size()));
}

TEST(CuptiPlaces, TheRuntimeOfAWheelPointsToItsNeighbour) {
  const auto texts = paths(cupti_places(
      "", "", "7f00-7f01 r-xp 00000000 08:01 13 /env/nvidia/cuda_runtime/lib/libcudart.so.12\n"));
  EXPECT_EQ(place_of(texts, "/env/nvidia/cuda_runtime/lib/libcupti.so.13"), 3);
  EXPECT_EQ(place_of(texts, "/env/nvidia/cuda_cupti/lib/libcupti.so.12"), 7);
}

TEST(CuptiPlaces, OddMapsGiveNoOddPlaces) {
  const std::size_t without = cupti_places("", "", "").size();
  for (const char* const maps : {"\n\n\n", "/", "nothing", "7f00 /\n/libcudart\n", "\n/x/\n"})
    EXPECT_EQ(cupti_places("", "", maps).size(), without) << maps;
}

// The table of recorded calls.
void expect_rising(std::span<const TracedCall> calls) {
  std::uint32_t before = 0;
  for (const TracedCall& call : calls) {
    EXPECT_GT(call.id, before) << call.name;
    EXPECT_LT(call.id, 1024U) << call.name;
    before = call.id;
  }
}

TEST(TracedCalls, AreInRisingOrderOfId) {
  expect_rising(traced_runtime_calls());
  expect_rising(traced_driver_calls());
}

// Queries of events and streams; of streams by the thread's own default stream, too. Without them a
// thread that waits by asking again and again would be one that computes.
TEST(TracedCalls, PollingWaitsAreAmongThem) {
  for (const auto calls : {traced_runtime_calls(), traced_driver_calls()}) {
    EXPECT_EQ(std::count_if(calls.begin(), calls.end(), [](const TracedCall& call) {
      return traces::classify_host_call(call.name) == traces::HostCallKind::kEventQuery;
    }), 3);
  }
}

}  // namespace
}  // namespace bubblesim::capture
