// Environments of workers.
#include <gmock/gmock.h>

#include <utility>
#include <vector>

#include "capture/substrate/process_environment.hpp"

namespace bubblesim::capture {
namespace {

const Variables kShell{{"PATH", "/bin"},
                       {"CUDA_MPS_PIPE_DIRECTORY", "/somebody/elses"},
                       {"CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", "10"},
                       {"CUDA_LAUNCH_BLOCKING", "1"}};

TEST(WorkerEnvironment, NoDaemonOfTheShellReachesAWorkerWithoutMps) {
  for (const Substrate substrate :
       {Substrate::kAlone, Substrate::kTimeSliced, Substrate::kStreams}) {
    WorkerSettings settings;
    settings.substrate = substrate;
    const auto made = worker_environment(kShell, settings);
    ASSERT_TRUE(made);
    EXPECT_EQ(made->at("CUDA_MPS_PIPE_DIRECTORY"), kNoMps);
    EXPECT_FALSE(made->contains("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"));
    EXPECT_FALSE(made->contains("CUDA_LAUNCH_BLOCKING"));
    EXPECT_EQ(made->at("CUDA_DEVICE_MAX_CONNECTIONS"), "32");
    EXPECT_EQ(made->at("CUDA_MODULE_LOADING"), "EAGER");
    EXPECT_EQ(made->at("PATH"), "/bin");
    EXPECT_FALSE(made->contains("CUDA_VISIBLE_DEVICES"));
  }
}

TEST(WorkerEnvironment, AClientOfMpsGetsItsDaemonShareAndPriority) {
  WorkerSettings settings;
  settings.substrate = Substrate::kMps;
  settings.mps_directory = "/run/pipe";
  settings.sm_percentage = 40;
  settings.priority = MpsPriority::kBelowNormal;
  const auto made = worker_environment(kShell, settings);
  ASSERT_TRUE(made);
  EXPECT_EQ(made->at("CUDA_MPS_PIPE_DIRECTORY"), "/run/pipe");
  EXPECT_EQ(made->at("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"), "40");
  EXPECT_EQ(made->at("CUDA_MPS_CLIENT_PRIORITY"), "1");
}

TEST(WorkerEnvironment, ClientsOfMpsShareTheConnectionsOfTheirServer) {
  WorkerSettings settings;
  settings.substrate = Substrate::kMps;
  settings.mps_directory = "/run/pipe";
  // 120 for all: 14 clients of 32 would be 448, 14 of 4 are 56.
  for (const auto& [clients, each] : std::vector<std::pair<std::uint32_t, std::string>>{
           {1, "32"}, {2, "30"}, {3, "20"}, {7, "8"}, {14, "4"}, {48, "2"}}) {
    settings.clients = clients;
    EXPECT_EQ(worker_environment(kShell, settings)->at("CUDA_DEVICE_MAX_CONNECTIONS"), each);
  }
}

TEST(WorkerEnvironment, AGpuIsNamedByUuidOrByItsPlaceOnTheBus) {
  WorkerSettings settings;
  settings.device = "GPU-a";
  EXPECT_EQ(worker_environment(kShell, settings)->at("CUDA_VISIBLE_DEVICES"), "GPU-a");
  EXPECT_FALSE(worker_environment(kShell, settings)->contains("CUDA_DEVICE_ORDER"));
  settings.device = "2";
  EXPECT_EQ(worker_environment(kShell, settings)->at("CUDA_DEVICE_ORDER"), "PCI_BUS_ID");
}

TEST(WorkerEnvironment, AnIndexIsTheDaemonsNumberingToItsClients) {
  WorkerSettings settings;
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

TEST(WorkerEnvironment, WhatMpsCannotDoIsAFault) {
  WorkerSettings settings;
  settings.substrate = Substrate::kMps;
  EXPECT_FALSE(worker_environment(kShell, settings));
  settings.mps_directory = "/run/pipe";
  settings.sm_percentage = 0;
  EXPECT_EQ(worker_environment(kShell, settings).error().text(),
            "MPS active-thread percentage is 0; expected 1 to 100");
}

}  // namespace
}  // namespace bubblesim::capture
