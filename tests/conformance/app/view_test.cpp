// bubblesim view: a page of a trace, a run's folder, a config, a store; a picture of a run.
#include <gmock/gmock.h>

#include "tests/conformance/app/command.hpp"

namespace bubblesim::app_test {
namespace {

using testing::HasSubstr, testing::IsEmpty, testing::StartsWith;

constexpr const char* kSampleRun =
    "run --training traces/samples/training --filler traces/samples/inference.json.gz "
    "--policy exclusive,mps --duration 1s --warmup 300ms --out out/run";

TEST(View, OfATraceIsOnePage) {
  const Workplace place;
  EXPECT_THAT(succeed(place, "view traces/samples/training -o page.html --no-open").out,
              StartsWith("wrote " + place.path("page.html: ")));
  const std::string page = place.read("page.html");
  EXPECT_THAT(page, HasSubstr("4 ranks"));
  EXPECT_THAT(page, HasSubstr("collective_wait"));
  EXPECT_EQ(page.find("https://"), std::string::npos);
  succeed(place, "view traces/samples/training -o again.html --no-open");
  EXPECT_TRUE(page == place.read("again.html"));
}

TEST(View, OfARunsFolderHasARowForEachPolicyOfBothModes) {
  const Workplace place;
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

TEST(View, PicturesOfARunAreSmallAndHoldTextAsText) {
  const Workplace place;
  succeed(place, kSampleRun);
  succeed(place, "view out/run --svg picture.svg --gpu 1 --section online --policy mps");
  const std::string picture = place.read("picture.svg");
  EXPECT_THAT(picture, HasSubstr(">mps</text>"));
  EXPECT_LT(picture.size(), 30'000U);
  EXPECT_EQ(picture.find("exclusive"), std::string::npos);
}

// docs/looking.md says how.
TEST(View, ThePictureOfTheDocsIsWhatItsCommandsGive) {
  const Workplace place;
  succeed(place,
          "run --training traces/samples/training --filler traces/samples/inference.json.gz "
          "--policy exclusive,mps,pipefill --mode offline --duration 3s --warmup 1s "
          "--out out/filled");
  succeed(place, "view out/filled --svg out/filled.svg");
  EXPECT_TRUE(place.read("out/filled.svg") == place.read("docs/filled.svg"));
}

TEST(View, OfAConfigRunsItAndOfAStoreIsItsReport) {
  const ShortWorkplace place;
  succeed(place, "view configs/runs/example.json --policy exclusive,mps -o page.html --no-open");
  EXPECT_THAT(place.read("page.html"), HasSubstr("encoder-online"));
  const Outcome sweep = place.bubblesim(
      "sweep configs/sweeps/policies.json --set /duration=300ms --set /warmup=100ms --limit 1 "
      "--store out.db");
  ASSERT_EQ(sweep.code, 0) << sweep.err;
  succeed(place, "view out.db -o store.html --no-open");
  EXPECT_THAT(place.read("store.html"), HasSubstr("bubblesim report"));
}

// The store's own reader says what is wrong with it.
TEST(View, AStoreIsToldByWhatItIsNotByWhetherItCanBeRead) {
  const ShortWorkplace place;
  const Outcome sweep = place.bubblesim(
      "sweep configs/sweeps/policies.json --set /duration=300ms --set /warmup=100ms --limit 1 "
      "--store out.db");
  ASSERT_EQ(sweep.code, 0) << sweep.err;
  place.write("cut.db", place.read("out.db").substr(0, 4096));
  expect_fault(place, "view cut.db --no-open", HasSubstr("cut.db: is damaged"));
  expect_fault(place, "view cut.db out.db --no-open",
               HasSubstr("cut.db: is a results store, found beside other paths"));
}

TEST(View, OpensThePageOnADesktopOnly) {
  const Workplace place;
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

TEST(View, BadInputIsASentenceAndExitCodeTwo) {
  const Workplace place;
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
    const Outcome outcome = place.bubblesim(arguments);
    EXPECT_EQ(outcome.code, 2) << arguments;
    EXPECT_THAT(outcome.err, HasSubstr(text)) << arguments;
    EXPECT_THAT(outcome.out, IsEmpty()) << arguments;
  }
}

}  // namespace
}  // namespace bubblesim::app_test
