#include "capture/clock/shared_segment.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "tests/fault.hpp"
#include "tests/unit/capture/clock/child_process.hpp"

namespace bubblesim::capture {
namespace {

using bubblesim::testing::ChildProcess;

TEST(SharedSegment, IsOneMemoryForAllWhoOpenIt) {
  auto made = SharedSegment::make("bubblesim.test", 4096);
  ASSERT_TRUE(made) << made.error().text();
  auto opened = SharedSegment::open((*made)->name(), 4096, "test");
  ASSERT_TRUE(opened) << opened.error().text();
  static_cast<char*>((*made)->address())[17] = 'x';
  EXPECT_EQ(static_cast<char*>((*opened)->address())[17], 'x');
}

TEST(SharedSegment, CanBeOpenedByItsOwnerOnly) {
  auto made = *SharedSegment::make("bubblesim.test", 4096);
  struct stat found {};
  ASSERT_EQ(stat(("/dev/shm/" + made->name()).c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 0777U, 0600U);
}

TEST(SharedSegment, ItsNameGoesWithItsMakerAndNotWithAChildOfHis) {
  std::string name;
  {
    auto made = *SharedSegment::make("bubblesim.test", 4096);
    name = made->name();
    ChildProcess child([&] { made.reset(); });
    EXPECT_EQ(child.wait(), 0);
    EXPECT_TRUE(SharedSegment::open(name, 4096, "test"));
  }
  const auto gone = error_of(SharedSegment::open(name, 4096, "test"));
  EXPECT_NE(gone.message.find("there is no test \"" + name + "\""), std::string::npos);
}

TEST(SharedSegment, OfADeadMakerIsSweptAndNoOther) {
  namespace fs = std::filesystem;
  std::string folder = (fs::temp_directory_path() / "bubblesim-sweep-XXXXXX").string();
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  const auto file = [&](const std::string& name, std::chrono::minutes age) {
    std::ofstream(folder + "/" + name) << "x";
    fs::last_write_time(folder + "/" + name, fs::file_time_type::clock::now() - age);
    return folder + "/" + name;
  };
  const std::string old = file("gate.7.0", std::chrono::minutes(2));
  const std::string young = file("gate.7.1", std::chrono::minutes(0));
  const std::string held = file("gate.8.0", std::chrono::minutes(2));
  const std::string other = file("rig.7.0", std::chrono::minutes(2));
  const int maker = ::open(held.c_str(), O_RDWR);
  ASSERT_EQ(::flock(maker, LOCK_EX), 0);
  SharedSegment::sweep("gate.", folder);
  EXPECT_FALSE(fs::exists(old));
  EXPECT_TRUE(fs::exists(young));
  EXPECT_TRUE(fs::exists(held));
  EXPECT_TRUE(fs::exists(other));
  ::close(maker);
  SharedSegment::sweep("gate.", folder);
  EXPECT_FALSE(fs::exists(held));
  fs::remove_all(folder);
}

/// Files of this process may have 4 KiB: as where /dev/shm is full.
TEST(SharedSegment, ThatDoesNotFitIsAFaultAndLeavesNothing) {
  ChildProcess child([] {
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit small{4096, 4096};
    if (::setrlimit(RLIMIT_FSIZE, &small) != 0) ::_exit(3);
    const auto made = SharedSegment::make("bubblesim.huge", 1 << 20);
    ::_exit(!made && made.error().message == "cannot make shared memory of 1048576 bytes: "
                                             "File too large" ? 0 : 4);
  });
  EXPECT_EQ(child.wait(), 0);
  for (const auto& entry : std::filesystem::directory_iterator("/dev/shm")) {
    EXPECT_FALSE(entry.path().filename().string().starts_with("bubblesim.huge"));
  }
}

TEST(SharedSegment, HasAllOfItsRoomBeforeAnybodyWrites) {
  const auto made = *SharedSegment::make("bubblesim.test", 1 << 20);
  struct stat found {};
  ASSERT_EQ(stat(("/dev/shm/" + made->name()).c_str(), &found), 0);
  EXPECT_GE(found.st_blocks * 512, 1 << 20);
}

TEST(SharedSegment, IsLockedWhileItsMakerLives) {
  const auto made = *SharedSegment::make("bubblesim.test", 4096);
  const int file = ::open(("/dev/shm/" + made->name()).c_str(), O_RDWR);
  EXPECT_NE(::flock(file, LOCK_EX | LOCK_NB), 0);
  ::close(file);
}

TEST(SharedSegment, ThatIsTooSmallIsRefused) {
  auto made = *SharedSegment::make("bubblesim.test", 4096);
  EXPECT_EQ(error_of(SharedSegment::open(made->name(), 8192, "test")).message,
            "\"" + made->name() +
                "\" is no test of this version: it has 4096 bytes, "
                "expected 8192");
}

}  // namespace
}  // namespace bubblesim::capture
