// Fits in a file.
#include "capture/replay/cuda/stand_in_fit.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "tests/unit/capture/replay_cuda/facts.hpp"

namespace bubblesim::capture::cuda {
namespace {

class FitCacheFile : public ::testing::Test {
 protected:
  void TearDown() override { std::filesystem::remove(path_); }
  void save_one() {
    FitCache cache(path_, h100());
    cache.put(key_, {{2'000.25, 0.1}, {1, 2, 3, 0, 77}, 0.0125, true});
    ASSERT_TRUE(cache.save());
  }
  FitKey key_ = [] {
    FitKey key;
    key.form.shape.grid = {7, 8, 9};
    key.form.dram_share = 0.1;
    key.solo = Duration{123'456};
    return key;
  }();
  std::string path_ = ::testing::TempDir() + "bubblesim-cache-" + std::to_string(::getpid());
};

TEST_F(FitCacheFile, WhatWasPutIsFoundExactly) {
  save_one();
  const FitCache cache(path_, h100());
  const CachedFit* found = cache.find(key_);
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->line.floor_ns, 2'000.25);
  EXPECT_EQ(found->line.loop_ns, 0.1);
  EXPECT_EQ(found->mix, (Mix{1, 2, 3, 0, 77}));
  EXPECT_EQ(found->error, 0.0125);
  EXPECT_TRUE(found->at_floor);
  FitKey other = key_;
  other.solo += Duration{1};
  EXPECT_EQ(cache.find(other), nullptr);
}

TEST_F(FitCacheFile, AnotherGpuOrDriverFindsNothing) {
  save_one();
  DeviceFacts facts = h100();
  facts.uuid = "GPU-1";
  EXPECT_EQ(FitCache(path_, facts).find(key_), nullptr);
  facts = h100();
  ++facts.driver_version;
  EXPECT_EQ(FitCache(path_, facts).find(key_), nullptr);
}

TEST_F(FitCacheFile, ADamagedFileIsEmpty) {
  save_one();
  std::ofstream(path_, std::ios::app) << "1 2 three\n";
  EXPECT_EQ(FitCache(path_, h100()).find(key_), nullptr);
}

TEST_F(FitCacheFile, WithoutAPathNothingIsWritten) {
  FitCache cache("", h100());
  cache.put(key_, {});
  EXPECT_TRUE(cache.save());
  EXPECT_FALSE(std::filesystem::exists(path_));
}

TEST_F(FitCacheFile, APlaceThatCannotBeWrittenIsSaid) {
  FitCache cache("/nonexistent/folder/fits", h100());
  EXPECT_FALSE(cache.save());
}

}  // namespace
}  // namespace bubblesim::capture::cuda
