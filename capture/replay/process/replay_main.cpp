// bubblesim_replay: one process of a rig, started by `bubblesim measure` and `bubblesim calibrate`.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <string_view>

#include "capture/replay/cuda/cuda_device.hpp"
#include "capture/replay/fake/fake_device.hpp"
#include "capture/replay/worker.hpp"
#include "sim/base/number_text.hpp"

namespace bubblesim::capture {
namespace {

constexpr std::string_view kCuda = "cuda:";
constexpr std::string_view kFake = "fake:";

Result<std::unique_ptr<Device>> open_cuda(const std::string& address, HostClock& clock,
                                          const std::string& fits, bool whole_gpu) {
  const auto index = parse_number<std::uint32_t>(address.substr(kCuda.size()));
  if (!index) {
    return fail("\"" + address + "\" is no device; expected \"cuda:\" and its index");
  }
  CudaOptions options;
  options.fit_cache = fits;
  options.whole_gpu = whole_gpu;
  return open_cuda_device(*index, clock, options);
}

/// "cuda:INDEX", or "fake:NAME" (FakeGpu::begin). Fault: no such device, no driver, no stand-in
/// kernels in this build. `clock` outlives the device. `fits`: the file in which a real GPU's fits
/// of stand-ins are kept from process to process; empty: each makes its own. `whole_gpu` false:
/// this process has a part of the GPU, and can only use fits that are in the file.
Result<std::unique_ptr<Device>> open_device(const std::string& address, HostClock& clock,
                                            ClientId client, const std::string& fits,
                                            bool whole_gpu) {
  if (address.starts_with(kFake)) {
    return open_fake_device(address.substr(kFake.size()), clock, client);
  }
  if (address.starts_with(kCuda)) return open_cuda(address, clock, fits, whole_gpu);
  return fail("\"" + address + "\" is no device; expected \"cuda:INDEX\" or \"fake:NAME\"");
}

}  // namespace
}  // namespace bubblesim::capture

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
