// The card as NVML shows it, and what changed of it.
#include "capture/substrate/card_state.hpp"
#include "tests/fault.hpp"

#include <gmock/gmock.h>

#include <cstdlib>

namespace bubblesim::capture {
namespace {

using ::testing::HasSubstr;

TEST(CardState, IsReadByIndexAndByUuid) {
  const auto reader = CardReader::open(FAKE_NVML);
  ASSERT_TRUE(reader);
  for (const char* device : {"0", "GPU-a"}) {
    const auto card = (*reader)->read(device);
    ASSERT_TRUE(card);
    EXPECT_EQ(card->name, "H100");
    EXPECT_EQ(card->uuid, "GPU-a");
    EXPECT_EQ(card->driver, "580.65.06");
    EXPECT_EQ(card->sm_count, 132U);  // 16,896 cores, 128 an SM
    EXPECT_EQ(card->memory_bytes, 85'520'809'984U);
    EXPECT_EQ(card->sm_clock_mhz, 1980U);
    EXPECT_EQ(card->memory_clock_mhz, 2619U);
    EXPECT_EQ(card->power_mw, 123'456U);
    EXPECT_EQ(card->temperature_c, 44U);
    EXPECT_EQ(card->compute_mode, "Default");
    EXPECT_EQ(card->mig, "Disabled");
  }
}

TEST(CardState, WhatACardOrAnNvmlDoesNotSayStaysUnknown) {
  const auto reader = CardReader::open(FAKE_NVML);
  const auto card = (*reader)->read("1");
  ASSERT_TRUE(card);
  EXPECT_FALSE(card->compute_mode);       // the card refuses
  EXPECT_FALSE(card->sm_count);           // cores of an SM are not known
  EXPECT_FALSE(card->memory_bytes);
  EXPECT_FALSE(card->persistence);        // the library has no such function
  EXPECT_FALSE(card->sm_clock_mhz);
}

TEST(CardState, ACardThatIsNotThereIsAFaultThatListsThem) {
  const auto reader = CardReader::open(FAKE_NVML);
  EXPECT_EQ(error_of((*reader)->read("7")).text(), "no GPU '7'; there are: 0 (GPU-a), 1 (GPU-b)");
}

TEST(CardState, ALibraryThatIsNotThereOrNoNvmlIsAFault) {
  EXPECT_THAT(CardReader::open("/nonexistent/libnvidia-ml.so.1").error().text(),
              HasSubstr("NVML comes with NVIDIA's driver"));
  EXPECT_THAT(CardReader::open("libm.so.6").error().text(), HasSubstr("has no nvmlInit_v2"));
}

TEST(CardState, ADriverThatIsNotLoadedIsAFaultWithItsText) {
  ::setenv("FAKE_NVML_INIT", "9", 1);
  const auto reader = CardReader::open(FAKE_NVML);
  ::unsetenv("FAKE_NVML_INIT");
  ASSERT_FALSE(reader);
  EXPECT_THAT(reader.error().text(), HasSubstr("nvmlInit_v2 gave 9: Driver Not Loaded"));
}

TEST(CardState, ASettingThatChangedIsAFaultByName) {
  const auto reader = CardReader::open(FAKE_NVML);
  const auto before = (*reader)->read("0");
  ::setenv("FAKE_NVML_MODE", "3", 1);
  const auto after = (*reader)->read("0");
  ::unsetenv("FAKE_NVML_MODE");
  EXPECT_TRUE(settings_unchanged(*before, *before));
  const auto changed = settings_unchanged(*before, *after);
  ASSERT_FALSE(changed);
  EXPECT_EQ(changed.error().text(), "H100 (GPU-a): settings changed during the run: compute mode "
                                    "was Default, is now ExclusiveProcess");
}

TEST(CardState, ClocksAndWhatIsUnknownAreNoSettings) {
  CardState before;
  CardState after;
  before.sm_clock_mhz = 1980;
  after.sm_clock_mhz = 1200;
  after.mig = "Enabled";
  EXPECT_TRUE(setting_changes(before, after).empty());
}

}  // namespace
}  // namespace bubblesim::capture
