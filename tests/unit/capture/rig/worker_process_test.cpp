#include "capture/rig/worker_process.hpp"

#include <gmock/gmock.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

namespace bubblesim::capture {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class WorkerProcessTest : public testing::Test {
 protected:
  WorkerProcessTest() {
    std::string name = (fs::temp_directory_path() / "bubblesim-worker-XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
  }
  ~WorkerProcessTest() override { fs::remove_all(folder_); }

  [[nodiscard]] std::string said() const { return folder_ + "/said.txt"; }
  [[nodiscard]] Result<WorkerProcess> shell(const std::string& script) const {
    return WorkerProcess::start({"/bin/sh", "-c", script}, {{"COLOUR", "blue"}}, said());
  }
  static void await_end(WorkerProcess& worker) {
    for (int i = 0; i < 10'000 && !worker.ended(); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    ASSERT_TRUE(worker.ended());
  }

 private:
  std::string folder_;
};

TEST_F(WorkerProcessTest, HasTheEnvironmentThatItIsGivenAndNoOther) {
  auto worker = shell("echo \"$COLOUR ${HOME:-homeless}\" >&2; exit 3");
  ASSERT_TRUE(worker) << worker.error().text();
  await_end(*worker);
  EXPECT_EQ(worker->end_text(), "exited with 3: blue homeless");
}

TEST_F(WorkerProcessTest, ASignalIsNamed) {
  auto worker = shell("kill -9 $$");
  ASSERT_TRUE(worker);
  await_end(*worker);
  EXPECT_EQ(worker->end_text(), "killed by signal 9");
}

TEST_F(WorkerProcessTest, OfManyWordsTheLastAreKept) {
  auto worker = shell("for i in $(seq 1000); do echo word$i; done; exit 1");
  ASSERT_TRUE(worker);
  await_end(*worker);
  EXPECT_THAT(worker->end_text(), HasSubstr("exited with 1: ..."));
  EXPECT_THAT(worker->end_text(), HasSubstr("word1000"));
  EXPECT_LT(worker->end_text().size(), 600u);
}

TEST_F(WorkerProcessTest, DiesWithTheObject) {
  pid_t pid = 0;
  {
    auto worker = shell("exec sleep 1000");
    ASSERT_TRUE(worker);
    EXPECT_FALSE(worker->ended());
    EXPECT_EQ(worker->end_text(), "still runs");
    pid = worker->pid();
  }
  EXPECT_NE(::kill(pid, 0), 0);
}

TEST_F(WorkerProcessTest, SignalsOfTheTerminalDoNotReachIt) {
  auto worker = shell("exec sleep 1000");
  ASSERT_TRUE(worker);
  EXPECT_EQ(::getpgid(worker->pid()), worker->pid());
}

TEST_F(WorkerProcessTest, AProgramThatIsNotThereIsAFault) {
  const auto worker = WorkerProcess::start({"/nowhere/program"}, {}, said());
  ASSERT_FALSE(worker);
  EXPECT_EQ(worker.error().text(), "/nowhere/program: found no such command");
}

}  // namespace
}  // namespace bubblesim::capture
