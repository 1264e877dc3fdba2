#include "sim/program/kernel_class.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <random>
#include <string>

namespace bubblesim::program {
namespace {

TEST(KernelClass, words_are_found_anywhere_and_in_any_case) {
  EXPECT_EQ(classify_kernel("ampere_sgemm_32x32_sliced1x4_nn"), KernelClass::kCompute);
  EXPECT_EQ(classify_kernel("Cijk_Ailk_Bljk_HB"), KernelClass::kCompute);
  EXPECT_EQ(classify_kernel("void RELU"), KernelClass::kMemory);
  EXPECT_EQ(classify_kernel("triton_poi_fused_0"), KernelClass::kMemory);
  EXPECT_EQ(classify_kernel(""), KernelClass::kUnknown);
  EXPECT_EQ(classify_kernel("triton_tem"), KernelClass::kUnknown);
}

TEST(KernelClass, a_compute_word_outweighs_memory_words_on_either_side) {
  EXPECT_EQ(classify_kernel("reduce_of_splitk_gemm_copy"), KernelClass::kCompute);
  EXPECT_EQ(classify_kernel("copy_gemm"), KernelClass::kCompute);
  EXPECT_EQ(classify_kernel("conv_copy"), KernelClass::kCompute);
}

TEST(KernelClass, a_word_is_found_after_the_broken_beginning_of_another) {
  EXPECT_EQ(classify_kernel("moe_gegemm"), KernelClass::kCompute);   // moe_ge|gemm
  EXPECT_EQ(classify_kernel("elementwiscat"), KernelClass::kMemory);  // elementwis|cat
  EXPECT_EQ(classify_kernel("scscan"), KernelClass::kMemory);         // sc|scan
  EXPECT_EQ(classify_kernel("moe_gemma"), KernelClass::kCompute);     // gemm within moe_gemm
}

// The second road: each word looked for by itself.
TEST(KernelClass, pieces_of_words_in_any_order_are_classed_as_by_searching_for_each_word) {
  constexpr std::array<std::string_view, 6> kCompute{"gemm", "conv",     "attention",
                                                     "xmma", "moe_gemm", "fprop"};
  constexpr std::array<std::string_view, 6> kMemory{"norm", "softmax", "cat",
                                                    "scan", "scatter", "triton_red"};
  const auto any_in = [](const auto& words, const std::string& name) {
    return std::ranges::any_of(words, [&](std::string_view word) {
      return name.find(word) != std::string::npos;
    });
  };
  std::mt19937 random(7);
  for (int i = 0; i < 20'000; ++i) {
    std::string name;
    for (int piece = 0; piece < 4; ++piece) {
      const auto& words = random() % 2 == 0 ? kCompute : kMemory;
      const std::string_view word = words[random() % words.size()];
      const std::size_t from = random() % word.size();
      name += word.substr(from, 1 + random() % word.size());
    }
    const KernelClass expected = any_in(kCompute, name)  ? KernelClass::kCompute
                                 : any_in(kMemory, name) ? KernelClass::kMemory
                                                         : KernelClass::kUnknown;
    if (expected == KernelClass::kUnknown) continue;  // other words may be made of these pieces
    EXPECT_EQ(classify_kernel(name), expected) << name;
  }
}

}  // namespace
}  // namespace bubblesim::program
