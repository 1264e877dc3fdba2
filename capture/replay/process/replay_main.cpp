// bubblesim_replay: one process of a rig. People start `bubblesim measure` or `bubblesim
// calibrate`, and these start it.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>

#include "capture/replay/process/open_device.hpp"
#include "capture/replay/worker.hpp"

namespace {

namespace capture = bubblesim::capture;

constexpr const char* kAbout =
    "Launches the plans of one or several jobs on a GPU, or a fake one, as one process of a rig;\n"
    "bubblesim measure and bubblesim calibrate start it. Ends with 0; with 2 if a plan, the gate\n"
    "or the control memory is at fault; with 3 if the device is.";

constexpr const char* kExample =
    "Example, of a rig on this machine's first GPU:\n"
    "  bubblesim_replay --clock wall --control bubblesim.rig.4711.0 \\\n"
    "    --job training.plan --record training.record --device cuda:0 "
    "--gate bubblesim.gate.4711.0";

struct Arguments {
  capture::WorkerSetup setup;
  std::vector<std::string> plans, records, devices, gates;
  std::string fits;
  bool part_of_gpu = false;
};

void declare(CLI::App& parser, Arguments& arguments) {
  parser.footer(kExample);
  parser.add_option("--clock", arguments.setup.clock, "The clock of the rig: wall, or turns:NAME")
      ->required();
  parser.add_option("--control", arguments.setup.control, "Name of the rig's control memory")
      ->required();
  parser.add_option("--job", arguments.plans, "Plan of a job (JSON); again for another job")
      ->required();
  parser.add_option("--record", arguments.records, "Where its record goes; one for each job")
      ->required();
  parser.add_option("--device", arguments.devices, "cuda:INDEX or fake:NAME; one for each job")
      ->required();
  parser.add_option("--gate", arguments.gates,
                    "Name of the gate that its launches go through; one for each job, or none");
  parser.add_option("--fits", arguments.fits,
                    "File that keeps how stand-in kernels were fitted, for the processes after "
                    "this one; those with a part of the GPU must find theirs in it");
  parser.add_flag("--part-of-gpu", arguments.part_of_gpu,
                  "This process has a part of the GPU (an MPS percentage): it measures nothing, "
                  "and a kernel that is not in --fits is a fault");
}

void add_jobs(Arguments& arguments) {
  const std::size_t jobs = arguments.plans.size();
  const auto check = [jobs](const char* option, std::size_t count) {
    if (count == jobs) return;
    throw CLI::ValidationError(option, std::to_string(count) + " given; expected one for each of " +
                                           std::to_string(jobs) + " --job");
  };
  check("--record", arguments.records.size());
  check("--device", arguments.devices.size());
  if (!arguments.gates.empty()) check("--gate", arguments.gates.size());
  for (std::size_t i = 0; i < jobs; ++i) {
    arguments.setup.jobs.push_back({arguments.plans[i], arguments.records[i], arguments.devices[i],
                                    arguments.gates.empty() ? "" : arguments.gates[i]});
  }
}

}  // namespace

int main(int argc, char** argv) try {
  CLI::App parser{kAbout, "bubblesim_replay"};
  Arguments arguments;
  declare(parser, arguments);
  try {
    parser.parse(argc, argv);
    add_jobs(arguments);
  } catch (const CLI::ParseError& fault) {
    const bool asked = fault.get_exit_code() == 0;
    parser.exit(fault);
    return asked ? 0 : static_cast<int>(capture::WorkerExit::kInput);
  }
  const capture::WorkerEnd end = capture::run_worker(
      arguments.setup, [&arguments](const std::string& address, capture::HostClock& clock,
                                    bubblesim::ClientId client) {
        return capture::open_device(address, clock, client, arguments.fits,
                                    !arguments.part_of_gpu);
      });
  if (!end.text.empty()) std::fprintf(stderr, "bubblesim_replay: %s\n", end.text.c_str());
  return static_cast<int>(end.exit);
} catch (const std::exception& fault) {
  std::fprintf(stderr, "bubblesim_replay: %s\n", fault.what());
  return static_cast<int>(capture::WorkerExit::kDevice);
}
