// What ptxas says that the stand-ins take, on each GPU that the image is made for.
#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <string>

#include "capture/replay/cuda/kernel_image.hpp"
#include "capture/replay/cuda/residency.hpp"

namespace bubblesim::capture::cuda {
namespace {

struct Taken {
  std::string name;
  std::string target;
  std::uint32_t registers = 0;
  std::uint32_t spilled = 0;  ///< bytes
};

std::string between(const std::string& line, const std::string& before, const std::string& after) {
  const auto at = line.find(before) + before.size();
  return line.substr(at, line.find(after, at) - at);
}

std::uint32_t number(const std::string& text) {
  return static_cast<std::uint32_t>(std::stoul(text));
}

std::vector<Taken> read_resources() {
  std::vector<Taken> all;
  std::ifstream in(KERNEL_RESOURCES);
  for (std::string line; std::getline(in, line);) {
    if (line.find("Compiling entry function '") != std::string::npos)
      all.push_back({between(line, "function '", "'"), between(line, "for '", "'")});
    if (all.empty()) continue;
    if (line.find("bytes spill stores") != std::string::npos)
      all.back().spilled = number(between(line, "stack frame, ", " bytes"));
    if (line.find("Used ") != std::string::npos)
      all.back().registers = number(between(line, "Used ", " registers"));
  }
  return all;
}

/// Warps that an SM holds by registers alone.
std::uint32_t warps(std::uint32_t registers) {
  return 65'536 / ((registers * 32 + 255) / 256 * 256) / 4 * 4;
}

TEST(StandInKernels, EachVariantHoldsAsManyWarpsAsItsRegistersSay) {
  if (kernel_image().empty()) GTEST_SKIP() << "built without nvcc";
  std::set<std::string> seen;
  for (const Taken& taken : read_resources()) {
    const auto at = taken.name.find('_');
    for (const Variant& variant : kVariants) {
      if (taken.name.substr(at + 1) != std::to_string(variant.registers)) continue;
      seen.insert(taken.target + " " + taken.name);
      EXPECT_LE(taken.registers, variant.registers) << taken.name << " for " << taken.target;
      EXPECT_EQ(warps(taken.registers), warps(variant.registers))
          << taken.name << " for " << taken.target << " uses " << taken.registers;
      // Two values of the smallest variants do not fit; none of the others spills.
      EXPECT_LE(taken.spilled, variant.registers <= 40 ? 16U : 0U) << taken.name << taken.target;
    }
  }
  EXPECT_EQ(seen.size(), 2U * 3 * kVariants.size());  // sm_80, sm_90; mix, tensor, collective
}

TEST(StandInKernels, TheImageIsAFatBinary) {
  if (kernel_image().empty()) GTEST_SKIP() << "built without nvcc";
  ASSERT_GT(kernel_image().size(), 1000U);
  // FATBINHEADER's magic number, little-endian.
  EXPECT_EQ(std::to_integer<int>(kernel_image()[0]), 0x50);
  EXPECT_EQ(std::to_integer<int>(kernel_image()[1]), 0xED);
}

}  // namespace
}  // namespace bubblesim::capture::cuda
