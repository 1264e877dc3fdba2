#include "sim/step_cost/profile_folder.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>

#include "sim/base/output_file.hpp"
#include "sim/base/scratch_folder.hpp"
#include "sim/step_cost/profile_meta.hpp"

namespace bubblesim::step_cost {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* kMeta =
    "vllm_version: 0.19.0\ngpu: Some GPU\nprofiled_at: '2026-01-01'\nmodel: org/model\n"
    "tp_degrees: [1, 2]\nengine_effective:\n  max_num_seqs: 2\nattention_grid:\n"
    "  chunks: 0, 16-32 x2\n  n_decode: 0, 1-2 x2\n  kv: 0, 16-64 x4\n";

std::string dense_csv() {
  std::string text = "layer,tokens,time_us\n";
  for (const char* layer : {"embedding", "layernorm", "qkv_proj", "rotary_emb", "o_proj",
                            "gate_up_proj", "act_fn", "down_proj", "final_layernorm"}) {
    text += std::string(layer) + ",1,1.5\n" + layer + ",8,2\n";
  }
  return text;
}

/// Times are chunk + 10 x prefix + 100 x sequences + 1000 x cached, in thousandths; with a point
/// that meta.yaml does not declare.
std::string attention_csv() {
  std::string text = "prefill_chunk,kv_prefill,n_decode,kv_decode,time_us\n24,0,0,0,1\n";
  for (const int chunk : {0, 16, 32}) {
    for (const int before : {0, 16, 64}) {
      for (const int sequences : {0, 1, 2}) {
        for (const int cached : {0, 16, 64}) {
          const bool decodes = sequences > 0 && cached > 0;
          if ((sequences > 0) != (cached > 0) || (chunk == 0 && (before > 0 || !decodes))) continue;
          if (chunk > 0 && sequences == 2) continue;  // 3 sequences, of 2 that there can be
          const double time = (chunk + 10 * before + 100 * sequences + 1000 * cached) / 1000.0;
          text += std::to_string(chunk) + "," + std::to_string(before) + "," +
                  std::to_string(sequences) + "," + std::to_string(cached) + "," +
                  std::to_string(time) + "\n";
        }
      }
    }
  }
  return text;
}

class ProfileFolder : public ::testing::Test {
 protected:
  void SetUp() override {
    auto folder = ScratchFolder::make(::testing::TempDir(), "profile");
    ASSERT_TRUE(folder);
    folder_ = std::move(*folder);
    put("meta.yaml", kMeta);
    put("tp1/dense.csv", dense_csv());
    put("tp1/per_sequence.csv", "layer,sequences,time_us\nlm_head,1,10\nsampler,1,5\n");
    put("tp1/attention.csv", attention_csv());
  }

  std::string path() const { return folder_->path(); }

  void put(const std::string& name, const std::string& text) {
    const std::filesystem::path file = std::filesystem::path(path()) / name;
    std::filesystem::create_directories(file.parent_path());
    ASSERT_TRUE(write_whole_file(file.string(), text));
  }

  std::string fault() const { return fault_of(path()); }

  static std::string fault_of(const std::string& folder) {
    const auto read = read_profile_folder(folder);
    return read ? "" : read.error().text();
  }

 private:
  std::unique_ptr<ScratchFolder> folder_;
};

TEST_F(ProfileFolder, GivesTheDeclaredGridAndCountsOtherPoints) {
  const auto read = read_profile_folder(path());
  ASSERT_TRUE(read) << read.error().text();
  EXPECT_EQ(read->tables.gpu, "Some GPU");
  EXPECT_EQ(read->tables.model, "org/model");
  ASSERT_EQ(read->tables.ranks.size(), 1U);  // there is no folder tp2
  const RankTables& rank = read->tables.ranks[0];
  EXPECT_THAT(rank.decode.axes(), ElementsAre(Axis{1, 2}, Axis{16, 64}));
  EXPECT_THAT(rank.decode.microseconds(), ElementsAre(16.1, 64.1, 16.2, 64.2));
  EXPECT_THAT(rank.prefill.axes(), ElementsAre(Axis{16, 32}, Axis{0, 16, 64}));
  EXPECT_THAT(rank.mixed.axes(), ElementsAre(Axis{16, 32}, Axis{0, 16, 64}, Axis{1}, Axis{16, 64}));
  EXPECT_EQ(read->counters.count("attention_points_off_grid"), 1U);
}

TEST_F(ProfileFolder, NamesTheProfilesBelowAFolderThatIsNone) {
  put("all/card/model/bf16/meta.yaml", kMeta);
  put("all/card/model/fp8/meta.yaml", kMeta);
  EXPECT_THAT(fault_of(path() + "/all"), HasSubstr("all: no meta.yaml; profiles are below it: "
                                                   "card/model/bf16, card/model/fp8"));
  EXPECT_THAT(fault_of(path() + "/tp1"), HasSubstr("tp1/meta.yaml: cannot be read"));
  EXPECT_THAT(fault_of(path() + "/absent"), HasSubstr("absent/meta.yaml: cannot be read"));
}

TEST_F(ProfileFolder, RefusesAHoleInAttention) {
  std::string text = attention_csv();
  const std::string line = "0,0,2,64,64.200000\n";
  text.erase(text.find(line), line.size());
  put("tp1/attention.csv", text);
  EXPECT_THAT(fault(), HasSubstr("a hole: no time at prefill_chunk 0, kv_prefill 0, n_decode 2, "
                                 "kv_decode 64, which meta.yaml declares"));
}

TEST_F(ProfileFolder, RefusesUnknownAndMissingLayers) {
  put("tp1/dense.csv", dense_csv() + "o_porj,1,2\n");
  EXPECT_THAT(fault(), HasSubstr("the layer 'o_porj' is not known"));
  put("tp1/dense.csv", "layer,tokens,time_us\nembedding,1,1\n");
  EXPECT_THAT(fault(), HasSubstr("no times of the layer 'layernorm'"));
}

TEST_F(ProfileFolder, TakesTheExpertsOfOneGpuForAll) {
  put("tp1/moe.csv", "tokens,activated_experts,time_us\n1,8,50\n2,8,60\n2,16,90\n");
  const auto read = read_profile_folder(path());
  ASSERT_TRUE(read) << read.error().text();
  const auto& experts = read->tables.ranks[0].experts;
  ASSERT_TRUE(experts);
  EXPECT_THAT(experts->tokens, ElementsAre(1, 2));
  EXPECT_THAT(experts->by_busy_experts[1].microseconds(), ElementsAre(60, 90));
}

// The second of two rows of a point counts; a third one with the same time says nothing new.
TEST_F(ProfileFolder, CountsPointsWithTwoTimesAndRefusesTimesThatItsFileWould) {
  put("tp1/dense.csv", dense_csv() + "o_proj,8,3\no_proj,8,3\n");
  const auto read = read_profile_folder(path());
  ASSERT_TRUE(read) << read.error().text();
  EXPECT_THAT(read->tables.ranks[0].dense.at("o_proj").microseconds(), ElementsAre(1.5, 3));
  EXPECT_EQ(read->counters.count("layer_points_measured_twice"), 1U);
  put("tp1/dense.csv", dense_csv() + "o_proj,9,2e9\n");
  EXPECT_THAT(fault(), HasSubstr("a number above 0, at most 1e9"));
}

/// kMeta with one of its values changed.
std::string meta_with(const std::string& from, const std::string& to) {
  std::string text = kMeta;
  return text.replace(text.find(from), from.size(), to);
}

// It never decodes beside a prompt, and never two.
TEST_F(ProfileFolder, OfOneSequenceHasNoMixedBatches) {
  put("meta.yaml", meta_with("max_num_seqs: 2", "max_num_seqs: 1"));
  const auto read = read_profile_folder(path());
  ASSERT_TRUE(read) << read.error().text();
  const RankTables& rank = read->tables.ranks[0];
  EXPECT_THAT(rank.decode.axes(), ElementsAre(Axis{1}, Axis{16, 64}));
  EXPECT_TRUE(rank.mixed.empty());
  // Off the grid: 1 as above, 2 of two sequences, 2 x 3 x 2 beside prompts.
  EXPECT_EQ(read->counters.count("attention_points_off_grid"), 15U);
}

TEST_F(ProfileFolder, RefusesAxesWithoutAPointThatIsUsed) {
  put("meta.yaml", meta_with("chunks: 0, 16-32 x2", "chunks: 0"));
  EXPECT_THAT(fault(), HasSubstr("meta.yaml: chunks: found '0'; expected a point above 0"));
  put("meta.yaml", meta_with("kv: 0, 16-64 x4", "kv: 0"));
  EXPECT_THAT(fault(), HasSubstr("meta.yaml: kv: found '0'; expected a point above 0"));
  for (const char* sequences : {"0", "2"}) {
    put("meta.yaml", meta_with("n_decode: 0, 1-2 x2", std::string("n_decode: ") + sequences));
    EXPECT_THAT(fault(), HasSubstr(std::string("meta.yaml: n_decode: found '") + sequences +
                                   "'; expected a point from 1 to 1, max_num_seqs being 2"));
  }
}

TEST_F(ProfileFolder, RefusesCountsThatCannotBe) {
  for (const char* degrees : {"[1.5]", "[1, 1]", "[1025]", "[0]"}) {
    put("meta.yaml", meta_with("[1, 2]", degrees));
    EXPECT_THAT(fault(), HasSubstr("expected whole numbers from 1 to 1024, each once")) << degrees;
  }
  put("meta.yaml", meta_with("max_num_seqs: 2", "max_num_seqs: 2.7"));
  EXPECT_THAT(fault(), HasSubstr("max_num_seqs: found '2.7'; expected a whole number from 1"));
}

TEST_F(ProfileFolder, TakesQuotesOffTexts) {
  put("meta.yaml", meta_with("gpu: Some GPU", "gpu: \"Some GPU\""));
  const auto read = read_profile_folder(path());
  ASSERT_TRUE(read) << read.error().text();
  EXPECT_EQ(read->tables.gpu, "Some GPU");
}

TEST(ProfilePoints, AreValuesAndRangesWithARatio) {
  EXPECT_EQ(parse_points("0, 16-128 x2"), (Axis{0, 16, 32, 64, 128}));
  EXPECT_EQ(parse_points("2-9 x2"), (Axis{2, 4, 8, 9}));
  EXPECT_EQ(parse_points("16-54 x1.5"), (Axis{16, 24, 36, 54}));
  EXPECT_TRUE(parse_points("raw").empty());
  EXPECT_TRUE(parse_points("8, 4").empty());
  EXPECT_TRUE(parse_points("0, 1.5").empty());
  EXPECT_TRUE(parse_points("1.5-8 x2").empty());
}

}  // namespace
}  // namespace bubblesim::step_cost
