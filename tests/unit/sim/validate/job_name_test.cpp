// Which names are one, which stand in a sentence, and batch sizes in words.
#include "sim/validate/job_name.hpp"

#include <gtest/gtest.h>

namespace bubblesim::validate {
namespace {

TEST(JobName, CaseAndPunctuationDoNotCountButNumbersStayApart) {
  EXPECT_EQ(letters_of("ResNet-50, batch 64"), "resnet50batch64");
  EXPECT_EQ(letters_of("Llama-2-7B"), "llama2-7b");
  EXPECT_NE(letters_of("Llama-2-7B"), letters_of("Llama-27B"));
}

TEST(JobName, ANameStandsWhereNoWordAndNoNumberGoesOn) {
  EXPECT_TRUE(is_within("net batch 1", "two loops, Net-batch 1 (TensorRT)"));
  EXPECT_TRUE(is_within("net batch 1", "net batch 16 beside net batch 1"));
  for (const char* words : {"net batch 16", "net batch 1.5", "net batch 1-16", "net batch 1,000",
                            "resnet batch 1", "tiny-net batch 1"}) {
    EXPECT_FALSE(is_within("net batch 1", words)) << words;
  }
}

TEST(JobName, BatchSizesAreReadAndReplaced) {
  EXPECT_EQ(batches_in("BERT, batch 32"), std::vector<std::uint32_t>{32});
  EXPECT_EQ(batches_in("Batch size: 8 beside batch=8, batch 4"),
            (std::vector<std::uint32_t>{8, 4}));
  EXPECT_TRUE(batches_in("a batch of 3, batch 1.5, batch 16x").empty());
  EXPECT_EQ(at_batch("net, batch size 16, fp32", 1), "net, batch 1, fp32");
}

TEST(JobName, ABatchSizeIsOneHoweverItIsWritten) {
  for (const char* words : {"net, batch size 16", "net (batch 16)", "net batch-size 16",
                            "net batchsize=16", "net bs16", "net-bs16", "net BS = 16", "net bsz:16",
                            "net b=16", "net (b = 16)"}) {
    EXPECT_EQ(batches_in(words), std::vector<std::uint32_t>{16}) << words;
    EXPECT_EQ(job_letters(words), "netbatch16") << words;
    EXPECT_EQ(letters_of(without_batch(words)), "net") << words;
  }
}

TEST(JobName, NamesOfModelsAndOtherWordsAreNoBatchSizes) {
  for (const char* words : {"EfficientNet-B7", "ViT b16", "jobs=4", "jobs 4", "GB=8", "Llama-7B=8",
                            "b=1.5", "bs16x", "obs 3"}) {
    EXPECT_TRUE(batches_in(words).empty()) << words;
  }
}

TEST(JobName, ABatchSizeThatIsNotReadIsTold) {
  EXPECT_TRUE(has_unread_batch("a batch of 3"));
  EXPECT_TRUE(has_unread_batch("net, Batch 1.5"));
  EXPECT_FALSE(has_unread_batch("net, batch 16"));
  EXPECT_FALSE(has_unread_batch("a batched net"));
  EXPECT_FALSE(has_unread_batch("net, batch inference of 3 kinds"));
  EXPECT_FALSE(has_unread_batch("continuous batch"));
}

TEST(JobName, LettersAndDigitsAreThoseOfAscii) {
  EXPECT_TRUE(is_letter('a') && is_letter('Z') && is_digit('0') && is_digit('9'));
  for (const char c : {'@', '[', '`', '{', '/', ':', '\xe9'}) {
    EXPECT_FALSE(is_letter(c) || is_digit(c)) << c;
  }
  EXPECT_EQ(in_lower_case("RPS 30/S \xc9"), "rps 30/s \xc9");
}

}  // namespace
}  // namespace bubblesim::validate
