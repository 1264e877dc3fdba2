#include "sim/program/kernel_class.hpp"

#include <algorithm>
#include <array>
#include <cctype>

namespace bubblesim::program {
namespace {

constexpr std::array<std::string_view, 18> kComputeWords{
    "gemm",  "conv",    "nvjet",  "cutlass", "wgrad",    "dgrad",  "xmma", "flash",  "attention",
    "fmha",  "winograd", "implicit", "matmul", "tensorop", "cublas", "Cijk", "moe_gemm", "fprop"};

constexpr std::array<std::string_view, 24> kMemoryWords{
    "elementwise", "norm",    "softmax", "reduce", "copy",   "fill",      "embedding", "gather",
    "scatter",     "dropout", "pool",    "cat",    "index",  "sort",      "scan",      "transpose",
    "adam",        "sgd",     "optimizer", "relu", "gelu",   "triton_poi", "triton_red", "memset"};

bool contains(std::string_view text, std::string_view word) {
  const auto same = [](char a, char b) {
    return std::tolower(static_cast<unsigned char>(a)) ==
           std::tolower(static_cast<unsigned char>(b));
  };
  return std::search(text.begin(), text.end(), word.begin(), word.end(), same) != text.end();
}

template <std::size_t N>
bool contains_any(std::string_view text, const std::array<std::string_view, N>& words) {
  return std::any_of(words.begin(), words.end(),
                     [&](std::string_view word) { return contains(text, word); });
}

}  // namespace

KernelClass classify_kernel(std::string_view name) {
  if (contains_any(name, kComputeWords)) return KernelClass::kCompute;
  if (contains_any(name, kMemoryWords)) return KernelClass::kMemory;
  return KernelClass::kUnknown;
}

}  // namespace bubblesim::program
