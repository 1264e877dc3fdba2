// Attention over unequal lengths against measured: LLMServingSim's profiler timed batches of two
// lengths (skew.csv: nb of n sequences have kv_big tokens, the others kvs), which no table of
// AttentionTime has seen. Its times are sums of three calls; t_mean_us is that of equal lengths of
// the same mean. Batches are those that a server has: means up to 4096 tokens, and no more than
// 100,000 tokens together.
//
// Limits are what is reached, with a little room; the profile's equal lengths alone have twice the
// error where the batch fills the GPU.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <ostream>
#include <vector>

#include "sim/base/csv_table.hpp"
#include "sim/base/packed_file.hpp"
#include "sim/hardware/gpu_spec_file.hpp"
#include "sim/step_cost/table_times.hpp"
#include "tests/fault.hpp"
#include "tests/folders.hpp"
#include "tests/validation/serving/profile_tables.hpp"

namespace bubblesim::step_cost {
namespace {

constexpr double kCalls = 3;
constexpr std::uint32_t kKvHeads = 8;

struct Mixture {
  Batch batch;
  double measured_us = 0;
};

std::vector<Mixture> mixtures_of(const CsvTable& table, std::uint32_t least, bool with_prompt) {
  std::vector<Mixture> out;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    const auto whole = [&](std::string_view column) {
      return static_cast<std::uint32_t>(*table.figure(row, column));
    };
    const std::uint32_t sequences = whole("n");
    const double mean = *table.figure(row, "kv_mean");
    const bool is_of_server = mean <= 4096 && mean * sequences <= 100000 && whole("kp") <= 2048;
    if (!is_of_server || sequences < least || (whole("pc") > 0) != with_prompt) continue;
    Mixture mixture;
    mixture.batch.shape.padded = sequences;
    if (with_prompt) mixture.batch.chunks.push_back({whole("pc"), whole("kp")});
    for (std::uint32_t i = 0; i < sequences; ++i) {
      mixture.batch.decodes.push_back(i < whole("nb") ? whole("kv_big") : whole("kvs"));
    }
    mixture.measured_us = *table.figure(row, "t_skew_us") / kCalls;
    out.push_back(std::move(mixture));
  }
  return out;
}

struct MeanErrors {
  std::size_t rows = 0;
  double ours = 0;   ///< mean absolute
  double equal = 0;  ///< of equal lengths
};

MeanErrors errors_of(const std::vector<Mixture>& mixtures, const AttentionTime& attention) {
  MeanErrors errors;
  Beyond beyond;
  for (const Mixture& mixture : mixtures) {
    double mean = 0;
    for (const std::uint32_t length : mixture.batch.decodes) mean += length;
    mean /= static_cast<double>(mixture.batch.decodes.size());
    Batch equal = mixture.batch;
    equal.decodes.assign(equal.decodes.size(), static_cast<std::uint32_t>(std::lround(mean)));
    errors.ours += std::abs(attention.layer_us(mixture.batch, beyond) / mixture.measured_us - 1);
    errors.equal += std::abs(attention.layer_us(equal, beyond) / mixture.measured_us - 1);
    ++errors.rows;
  }
  errors.ours /= static_cast<double>(errors.rows);
  errors.equal /= static_cast<double>(errors.rows);
  return errors;
}

struct Limits {
  std::string gpu;
  std::string device;
  double decodes;  ///< most mean error of batches that decode only, and fill the GPU
  double mixed;    ///< of those beside a prompt

  friend std::ostream& operator<<(std::ostream& out, const Limits& limits) {
    return out << limits.gpu;
  }
};

class MeasuredMixtures : public ::testing::TestWithParam<Limits> {};

TEST_P(MeasuredMixtures, TakeAsLongAsSlopesOfTheProfileSay) {
  const std::string folder = kDataFolder + "/casys-kaist+LLMServingSim/profiler/perf/" +
                             GetParam().gpu + "/meta-llama/Llama-3.1-8B/bf16";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "no " << folder;
  const auto profile = must(test::profile_tables(folder));
  const auto gpu = must(hardware::find_gpu_spec(GetParam().device, kDeviceFolder));
  const std::string text = must(read_packed_text(folder + "/tp1/skew.csv.gz", 512, "a table"));
  const auto table = must(CsvTable::parse(text, "skew.csv"));
  const AttentionTime attention(profile.ranks[0], kKvHeads, gpu.sm_count);
  const MeanErrors decodes = errors_of(mixtures_of(table, 64, false), attention);
  const MeanErrors mixed = errors_of(mixtures_of(table, 16, true), attention);
  std::printf("%s: decoding %.1f %% (equal lengths %.1f %%), beside a prompt %.1f %% (%.1f %%)\n",
              GetParam().gpu.c_str(), 100 * decodes.ours, 100 * decodes.equal, 100 * mixed.ours,
              100 * mixed.equal);
  EXPECT_GT(decodes.rows, 50U);
  EXPECT_GT(mixed.rows, 2000U);
  EXPECT_LT(decodes.ours, GetParam().decodes);
  EXPECT_LT(mixed.ours, GetParam().mixed);
  EXPECT_LT(decodes.ours, 0.7 * decodes.equal);
  EXPECT_LT(mixed.ours, mixed.equal);
}

INSTANTIATE_TEST_SUITE_P(Gpus, MeasuredMixtures,
                         ::testing::Values(Limits{"RTX4090", "rtx4090", 0.04, 0.06},
                                           Limits{"RTXPRO6000", "rtxpro6000", 0.04, 0.06}),
                         [](const auto& tested) { return tested.param.gpu; });

}  // namespace
}  // namespace bubblesim::step_cost
