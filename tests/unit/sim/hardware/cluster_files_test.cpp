// The cluster files that ship, and the faults of others.
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "sim/hardware/cluster_spec.hpp"
#include "sim/hardware/gpu_spec_file.hpp"
#include "tests/folders.hpp"

namespace bubblesim::hardware {
namespace {

std::vector<ClusterFile> shipped_clusters() {
  auto clusters = read_cluster_folder(kConfigFolder + "/clusters");
  if (clusters) return *std::move(clusters);
  for (const Error& error : clusters.error()) ADD_FAILURE() << error.text();
  return {};
}

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

/// A shipped file with one piece of text replaced, as read; its faults in one string.
std::string faults_after(const std::string& from, const std::string& to) {
  std::string text = text_of(kConfigFolder + "/clusters/dgx-a100-80gb.json");
  const auto at = text.find(from);
  if (at == std::string::npos) return "not found: " + from;
  text.replace(at, from.size(), to);
  // One file a test: they run side by side.
  const std::string path = testing::TempDir() + "/cluster_" +
                           testing::UnitTest::GetInstance()->current_test_info()->name() +
                           ".json";
  std::ofstream(path) << text;
  const auto spec = read_cluster_spec(path);
  std::string out;
  if (!spec) {
    for (const Error& error : spec.error()) out += error.text() + "\n";
  }
  return out;
}

TEST(ClusterFiles, EveryShippedFileLoadsAndNamesADeviceThatShips) {
  const std::vector<ClusterFile> clusters = shipped_clusters();
  EXPECT_GE(clusters.size(), 10U);
  for (const ClusterFile& cluster : clusters) {
    EXPECT_TRUE(find_gpu_spec(cluster.spec.device, kDeviceFolder)) << cluster.id;
  }
}

TEST(ClusterFiles, AClusterIsFoundByIdAndByPath) {
  const auto by_id = find_cluster_spec("a100-80gb-800g", kConfigFolder + "/clusters");
  ASSERT_TRUE(by_id);
  EXPECT_EQ(by_id->gpus_per_node, 8U);
  EXPECT_EQ(by_id->nics.count, 4U);
  EXPECT_EQ(by_id->nics.bandwidth, BytesPerSecond{24e9});
  EXPECT_TRUE(find_cluster_spec(kConfigFolder + "/clusters/selene.json", ""));
  const auto unknown = find_cluster_spec("selen", kConfigFolder + "/clusters");
  ASSERT_FALSE(unknown);
  EXPECT_NE(unknown.error().at(0).message.find("did you mean \"selene\"?"), std::string::npos);
}

TEST(ClusterFiles, NodesMayBeOverridden) {
  const auto spec = find_cluster_spec("dgx-a100-80gb", kConfigFolder + "/clusters");
  ASSERT_TRUE(spec);
  EXPECT_EQ(with_nodes(*spec, 64).gpus(), 512U);
}

// A million up-links that share a leaf's bandwidth made iterations of an hour, without a word.
TEST(ClusterFiles, ALeafHasNoMoreUplinksThanNicsBelowIt) {
  const auto dgx = find_cluster_spec("dgx-a100-80gb", kConfigFolder + "/clusters");
  ASSERT_TRUE(dgx);
  const std::uint64_t nics = std::uint64_t{dgx->tree.nodes_per_leaf} * dgx->nics.count;
  const auto faults = [](std::uint64_t uplinks) {
    return faults_after("\"fat_tree\": {",
                        R"("fat_tree": {"placement": {"value": "planned", "source": "test"},
                        "uplinks": {"unit": "links", "source": "test", "value": )" +
                            std::to_string(uplinks) + "},");
  };
  EXPECT_EQ(faults(nics), "");
  EXPECT_NE(faults(nics + 1).find("/fat_tree/uplinks: found " + std::to_string(nics + 1) +
                                  "; expected at most " + std::to_string(nics)),
            std::string::npos);
}

TEST(ClusterFiles, FaultsNameThePlaceAndWhatWasExpected) {
  EXPECT_NE(faults_after("\"unit\": \"GPUs\"", "\"unit\": \"NICs\"").find("expected \"GPUs\""),
            std::string::npos);
  EXPECT_NE(faults_after("\"nvswitch\"", "\"nvswitsch\"").find("nvswitch"), std::string::npos);
  EXPECT_NE(faults_after("[\"6.6us\", ", "[").find("for LL, LL128 and Simple"),
            std::string::npos);
  EXPECT_NE(faults_after("\"nics\"", "\"nic\"").find("a cluster of several nodes has NICs"),
            std::string::npos);
  EXPECT_NE(faults_after("\"oversubscription\"", "\"over\"").find("oversubscription"),
            std::string::npos);
}

}  // namespace
}  // namespace bubblesim::hardware
