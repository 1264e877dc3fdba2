// A real file: the feeder's JSON of a ResNet job that ran in data parallel. Skipped without it.
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/unit/traces/import/invariants.hpp"
#include "traces/import/byte_stream.hpp"
#include "traces/import/chakra_import.hpp"

namespace bubblesim::traces {
namespace {

/// The contents of a file in a tar archive; empty if it is not there. Headers are 512 bytes: name
/// at 0, size in octal at 124; contents are padded to 512.
std::string file_in_tar(const std::string& tar, std::string_view name) {
  for (std::size_t at = 0; at + 512 <= tar.size();) {
    const std::string entry = tar.substr(at, 100).c_str();
    const std::size_t size = std::stoul("0" + std::string(tar.substr(at + 124, 11).c_str()),
                                        nullptr, 8);
    if (entry.ends_with(name)) return tar.substr(at + 512, size);
    at += 512 + (size + 511) / 512 * 512;
  }
  return {};
}

TEST(ChakraData, AResNetJobIsLaidOut) {
  const std::filesystem::path archive =
      std::filesystem::path(BUBBLESIM_DATA_DIR) / "mlcommons+chakra/tests/data/json_trace.tar.gz";
  auto source = ByteStream::open(archive);
  if (!source) GTEST_SKIP() << "no " << archive;
  std::string tar(std::size_t{16} << 20U, '\0');
  tar.resize(source->read(tar.data(), tar.size()));
  const auto trace = import_chakra_bytes(file_in_tar(tar, "/chakra.0.json"), "chakra.0.json");
  ASSERT_TRUE(trace) << trace.error().text();
  EXPECT_EQ(broken_promise(*trace), "");
  EXPECT_EQ(trace->device_ops.size(), 1216U);
  EXPECT_EQ(trace->host_calls.size(), 2448U);
  EXPECT_EQ(trace->collectives.size(), 7U);
  EXPECT_EQ(trace->counters.count("chakra_starts_inferred"), 3664U);
  EXPECT_EQ(trace->counters.count("chakra_cyclic_dependencies_dropped"), 0U);
  for (const DeviceOp& op : trace->device_ops) EXPECT_NE(op.launch, kNone);
}

}  // namespace
}  // namespace bubblesim::traces
