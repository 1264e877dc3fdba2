// A private MPS daemon: a shell script in its place, on PATH.
#include <gmock/gmock.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>
#include <utility>
#include <vector>

#include "capture/substrate/card_state.hpp"
#include "capture/substrate/mps_daemon.hpp"
#include "capture/substrate/process_environment.hpp"
#include "tests/fault.hpp"
#include "tests/unit/capture/substrate/mps_script.hpp"

namespace bubblesim::capture {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

const std::string kGood =
    mps_script(kQuitsWhenTold, R"(echo started > "$CUDA_MPS_LOG_DIRECTORY/control.log")");
/// As kGood, deaf to `quit`.
const std::string kDeaf = mps_script(":");

class Mps : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = "/tmp/bubblesim-mps-XXXXXX";
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    settings_.folder = pattern;
    settings_.environment = {{"PATH", pattern + ":/usr/bin:/bin"}};
  }
  void TearDown() override { std::filesystem::remove_all(settings_.folder); }

  void program(const std::string& text) { write_mps_program(settings_.folder, text); }
  static pid_t pid_in(const std::string& folder) {
    pid_t pid = 0;
    std::ifstream(folder + "/nvidia-cuda-mps-control.pid") >> pid;
    return pid;
  }
  /// Gone, or ended and not yet reaped by whoever adopted it.
  static bool ended(pid_t pid) {
    std::ifstream stat("/proc/" + std::to_string(pid) + "/stat");
    std::string text(4096, '\0');
    stat.read(text.data(), 4096);  // not by an iterator, which throws if it ends meanwhile
    text.resize(static_cast<std::size_t>(stat.gcount()));
    return text.empty() || text.find(") Z") != std::string::npos;
  }

  MpsSettings settings_;
};

TEST_F(Mps, StartsInFoldersOfItsOwnAndLeavesNothing) {
  program(kGood);
  auto daemon = must(MpsDaemon::start(settings_));
  EXPECT_EQ(daemon->pipe_directory(), settings_.folder + "/mps-pipe");
  EXPECT_EQ(daemon->log(), "started\n");
  EXPECT_TRUE(daemon->notes().empty());
  const pid_t pid = pid_in(daemon->pipe_directory());
  EXPECT_FALSE(ended(pid));
  EXPECT_TRUE(daemon->quit());
  EXPECT_TRUE(ended(pid));
  EXPECT_FALSE(std::filesystem::exists(settings_.folder + "/mps-pipe"));
  EXPECT_FALSE(std::filesystem::exists(settings_.folder + "/mps-log"));
  EXPECT_TRUE(daemon->quit());
}

TEST_F(Mps, ADaemonThatDoesNotQuitIsKilledAndThatIsAFault) {
  program(kDeaf);
  settings_.patience = 2s;
  auto daemon = must(MpsDaemon::start(settings_));
  const pid_t pid = pid_in(daemon->pipe_directory());
  const auto quit = error_of(daemon->quit());
  EXPECT_THAT(quit.text(), HasSubstr("did not quit and was killed"));
  for (int i = 0; i < 1000 && !ended(pid); ++i) std::this_thread::sleep_for(5ms);
  EXPECT_TRUE(ended(pid));
}

TEST_F(Mps, WithoutTheProgramItIsAFault) {
  settings_.environment = {{"PATH", settings_.folder}};
  EXPECT_THAT(error_of(MpsDaemon::start(settings_)).text(),
              HasSubstr("no nvidia-cuda-mps-control in PATH"));
}

TEST_F(Mps, ADaemonThatCannotStartIsAFaultWithWhatItSaid) {
  program("#!/bin/sh\necho no device\nexit 3\n");
  EXPECT_THAT(error_of(MpsDaemon::start(settings_)).text(),
              HasSubstr("did not start (exit 3): no device"));
  EXPECT_FALSE(std::filesystem::exists(settings_.folder + "/mps-pipe"));
}

TEST_F(Mps, ADaemonThatDoesNotAnswerIsEndedAndAFault) {
  program("#!/bin/sh\n[ \"$1\" = -d ] && exit 0\necho cannot connect\nexit 1\n");
  EXPECT_THAT(error_of(MpsDaemon::start(settings_)).text(),
              HasSubstr("started, and does not answer (exit 1)"));
}

TEST_F(Mps, ADaemonThatWasThereBeforeIsNamedAndLeftAlone) {
  program(kGood);
  const std::string other = settings_.folder + "/other";
  std::filesystem::create_directory(other);
  std::ofstream(other + "/nvidia-cuda-mps-control.pid") << ::getpid();
  settings_.environment["CUDA_MPS_PIPE_DIRECTORY"] = other;
  auto daemon = must(MpsDaemon::start(settings_));
  ASSERT_EQ(daemon->notes().size(), 1U);
  EXPECT_THAT(daemon->notes()[0], HasSubstr(std::to_string(::getpid()) + ") was there before"));
  EXPECT_TRUE(daemon->quit());
  EXPECT_TRUE(std::filesystem::exists(other + "/nvidia-cuda-mps-control.pid"));
}

TEST_F(Mps, AFolderTooLongForSocketsIsAFault) {
  program(kGood);
  settings_.folder += "/" + std::string(100, 'x');
  EXPECT_THAT(MpsDaemon::start(settings_).error().text(), HasSubstr("too long"));
}

// Environments of workers.
const Variables kShell{{"PATH", "/bin"},
                       {"CUDA_MPS_PIPE_DIRECTORY", "/somebody/elses"},
                       {"CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", "10"},
                       {"CUDA_LAUNCH_BLOCKING", "1"}};

struct WorkerEnvironment : testing::Test { WorkerSettings settings; };

TEST_F(WorkerEnvironment, NoDaemonOfTheShellReachesAWorkerWithoutMps) {
  for (const Substrate substrate :
       {Substrate::kAlone, Substrate::kTimeSliced, Substrate::kStreams}) {
    settings.substrate = substrate;
    const auto made = must(worker_environment(kShell, settings));
    EXPECT_EQ(made.at("CUDA_MPS_PIPE_DIRECTORY"), kNoMps);
    EXPECT_FALSE(made.contains("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"));
    EXPECT_FALSE(made.contains("CUDA_LAUNCH_BLOCKING"));
    EXPECT_EQ(made.at("CUDA_DEVICE_MAX_CONNECTIONS"), "32");
    EXPECT_EQ(made.at("CUDA_MODULE_LOADING"), "EAGER");
    EXPECT_EQ(made.at("PATH"), "/bin");
    EXPECT_FALSE(made.contains("CUDA_VISIBLE_DEVICES"));
  }
}

TEST_F(WorkerEnvironment, AClientOfMpsGetsItsDaemonShareAndPriority) {
  settings.substrate = Substrate::kMps;
  settings.mps_directory = "/run/pipe";
  settings.sm_percentage = 40;
  settings.priority = MpsPriority::kBelowNormal;
  const auto made = must(worker_environment(kShell, settings));
  EXPECT_EQ(made.at("CUDA_MPS_PIPE_DIRECTORY"), "/run/pipe");
  EXPECT_EQ(made.at("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"), "40");
  EXPECT_EQ(made.at("CUDA_MPS_CLIENT_PRIORITY"), "1");
}

TEST_F(WorkerEnvironment, ClientsOfMpsShareTheConnectionsOfTheirServer) {
  settings.substrate = Substrate::kMps;
  settings.mps_directory = "/run/pipe";
  // 120 for all: 14 clients of 32 would be 448, 14 of 4 are 56.
  for (const auto& [clients, each] : std::vector<std::pair<std::uint32_t, std::string>>{
           {1, "32"}, {2, "30"}, {3, "20"}, {7, "8"}, {14, "4"}, {48, "2"}}) {
    settings.clients = clients;
    EXPECT_EQ(worker_environment(kShell, settings)->at("CUDA_DEVICE_MAX_CONNECTIONS"), each);
  }
}

TEST_F(WorkerEnvironment, AGpuIsNamedByUuidOrByItsPlaceOnTheBus) {
  settings.device = "GPU-a";
  EXPECT_EQ(worker_environment(kShell, settings)->at("CUDA_VISIBLE_DEVICES"), "GPU-a");
  EXPECT_FALSE(worker_environment(kShell, settings)->contains("CUDA_DEVICE_ORDER"));
  settings.device = "2";
  EXPECT_EQ(worker_environment(kShell, settings)->at("CUDA_DEVICE_ORDER"), "PCI_BUS_ID");
}

TEST_F(WorkerEnvironment, AnIndexIsTheDaemonsNumberingToItsClients) {
  settings.substrate = Substrate::kMps;
  settings.mps_directory = "/run/pipe";
  settings.device = "2";
  EXPECT_EQ(worker_environment(kShell, settings)->at("CUDA_VISIBLE_DEVICES"), "0");
  settings.device = "GPU-a";
  EXPECT_EQ(worker_environment(kShell, settings)->at("CUDA_VISIBLE_DEVICES"), "GPU-a");
  settings.device.clear();
  Variables shell = kShell;
  shell["CUDA_VISIBLE_DEVICES"] = "3,1";
  EXPECT_EQ(worker_environment(shell, settings)->at("CUDA_VISIBLE_DEVICES"), "0,1");
}

TEST_F(WorkerEnvironment, WhatMpsCannotDoIsAFault) {
  settings.substrate = Substrate::kMps;
  EXPECT_FALSE(worker_environment(kShell, settings));
  settings.mps_directory = "/run/pipe";
  settings.sm_percentage = 0;
  EXPECT_EQ(worker_environment(kShell, settings).error().text(),
            "MPS active-thread percentage is 0; expected 1 to 100");
}

// The card as NVML shows it, and what changed of it.
TEST(CardState, IsReadByIndexAndByUuid) {
  const auto reader = must(CardReader::open(FAKE_NVML));
  for (const char* device : {"0", "GPU-a"}) {
    const auto card = must(reader->read(device));
    EXPECT_EQ(card.name, "H100");
    EXPECT_EQ(card.uuid, "GPU-a");
    EXPECT_EQ(card.driver, "580.65.06");
    EXPECT_EQ(card.sm_count, 132U);  // 16,896 cores, 128 an SM
    EXPECT_EQ(card.memory_bytes, 85'520'809'984U);
    EXPECT_EQ(card.sm_clock_mhz, 1980U);
    EXPECT_EQ(card.compute_mode, "Default");
    EXPECT_EQ(card.mig, "Disabled");
  }
}

TEST(CardState, WhatACardOrAnNvmlDoesNotSayStaysUnknown) {
  const auto reader = CardReader::open(FAKE_NVML);
  const auto card = must((*reader)->read("1"));
  EXPECT_FALSE(card.compute_mode);       // the card refuses
  EXPECT_FALSE(card.sm_count);           // cores of an SM are not known
  EXPECT_FALSE(card.memory_bytes);
  EXPECT_FALSE(card.persistence);        // the library has no such function
  EXPECT_FALSE(card.sm_clock_mhz);
}

TEST(CardState, ACardThatIsNotThereIsAFaultThatListsThem) {
  const auto reader = CardReader::open(FAKE_NVML);
  EXPECT_EQ(error_of((*reader)->read("7")).text(), "no GPU '7'; there are: 0 (GPU-a), 1 (GPU-b)");
}

TEST(CardState, ALibraryThatIsNotThereOrNoNvmlIsAFault) {
  EXPECT_THAT(CardReader::open("/nonexistent/libnvidia-ml.so.1").error().text(),
              HasSubstr("NVML comes with NVIDIA's driver"));
  EXPECT_THAT(CardReader::open("libm.so.6").error().text(), HasSubstr("has no nvmlInit_v2"));
}

TEST(CardState, ADriverThatIsNotLoadedIsAFaultWithItsText) {
  ::setenv("FAKE_NVML_INIT", "9", 1);
  const auto reader = CardReader::open(FAKE_NVML);
  ::unsetenv("FAKE_NVML_INIT");
  ASSERT_FALSE(reader);
  EXPECT_THAT(reader.error().text(), HasSubstr("nvmlInit_v2 gave 9: Driver Not Loaded"));
}

TEST(CardState, ASettingThatChangedIsAFaultByName) {
  const auto reader = CardReader::open(FAKE_NVML);
  const auto before = (*reader)->read("0");
  ::setenv("FAKE_NVML_MODE", "3", 1);
  const auto after = (*reader)->read("0");
  ::unsetenv("FAKE_NVML_MODE");
  EXPECT_TRUE(settings_unchanged(*before, *before));
  const auto changed = error_of(settings_unchanged(*before, *after));
  EXPECT_EQ(changed.text(), "H100 (GPU-a): settings changed during the run: compute mode "
                                    "was Default, is now ExclusiveProcess");
}

TEST(CardState, ClocksAndWhatIsUnknownAreNoSettings) {
  CardState before;
  CardState after;
  before.sm_clock_mhz = 1980;
  after.sm_clock_mhz = 1200;
  after.mig = "Enabled";
  EXPECT_TRUE(setting_changes(before, after).empty());
}

}  // namespace
}  // namespace bubblesim::capture
