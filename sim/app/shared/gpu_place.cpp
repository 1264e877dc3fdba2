#include "sim/app/shared/gpu_place.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <utility>

#include "sim/base/units.hpp"
#include "sim/measure/fake_gpu.hpp"

namespace bubblesim::app {
namespace {

constexpr const char* kWorker = "bubblesim_replay";
constexpr Duration kLongestSpin = std::chrono::seconds(1);
constexpr auto kLook = std::chrono::milliseconds(50);

std::string now_utc() {
  const auto now = std::chrono::time_point_cast<std::chrono::seconds>(
      std::chrono::system_clock::now());
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}",
                     fmt::gmtime(std::chrono::system_clock::to_time_t(now)));
}

std::optional<double> clock_of(const capture::CardState& card) {
  if (!card.sm_clock_mhz) return std::nullopt;
  return static_cast<double>(*card.sm_clock_mhz);
}

/// The GPU that CUDA takes if none is named.
std::string first_shown_gpu() {
  const Variables environment = inherited_environment();
  const auto shown = environment.find("CUDA_VISIBLE_DEVICES");
  if (shown == environment.end() || shown->second.empty()) return "0";
  return shown->second.substr(0, shown->second.find(','));
}

}  // namespace

void add_place_options(CLI::App& command, PlaceArguments& arguments) {
  command.add_flag("--fake", arguments.fake,
                   "On the simulator's GPU behind real processes, which needs no GPU: for tests of "
                   "a set-up");
  command.add_option("--gpu", arguments.gpu,
                     "Index or UUID of the GPU (default: the first that CUDA_VISIBLE_DEVICES "
                     "shows)");
  command.add_option("--worker", arguments.worker,
                     "The program bubblesim_replay (default: beside this one)");
  command.add_option("--fits", arguments.fits,
                     "File that keeps how stand-in kernels were fitted to this GPU, for later "
                     "commands (default: kept while this one runs)");
  command.add_option("--spin", arguments.spin,
                     "How long threads that wait for another process look before they sleep, as "
                     "50us: those that sleep wake some 50 us late, in virtual machines later "
                     "still; each thread that looks keeps a CPU busy")
      ->capture_default_str();
}

Result<std::unique_ptr<GpuPlace>> GpuPlace::open(const PlaceArguments& arguments,
                                                 const hardware::GpuSpec& device,
                                                 run::ProgressText progress) {
  std::unique_ptr<GpuPlace> place(new GpuPlace());
  place->date_ = now_utc();
  const auto spin = parse_duration(arguments.spin);
  if (!spin || *spin > kLongestSpin) {
    return fail(fmt::format("--spin is \"{}\"; expected a time from 0us to {}, as 50us",
                            arguments.spin, format_duration(kLongestSpin)));
  }
  place->rig_.spin = *spin;
  place->rig_.worker = arguments.worker;
  if (arguments.worker.empty()) {
    BUBBLESIM_ASSIGN_OR_RETURN(place->rig_.worker, find_helper_program(kWorker));
  }
  BUBBLESIM_ASSIGN_OR_RETURN(place->folder_, ScratchFolder::make(temporary_folder(), "rig"));
  if (arguments.fake) {
    place->fake_ = measure::make_fake_gpu(device);
  } else {
    BUBBLESIM_RETURN_IF_ERROR(place->read_card(arguments.gpu));
    // A UUID means one card to NVML, to CUDA and to MPS; an index may mean three.
    place->rig_.gpu = place->before_->uuid;
  }
  place->rig_.folder = place->folder_->path();
  place->rig_.fits = arguments.fits.empty() ? place->rig_.folder + "/fits" : arguments.fits;
  place->rig_.fake = place->fake_.get();
  place->rig_.environment = inherited_environment();
  place->rig_.progress = std::move(progress);
  place->rig_.stop = &place->stop_;
  place->watch_.emplace(kLook, [&place = *place] {
    if (place.signals_.count() > 0) place.stop_ = true;
  });
  return place;
}

Result<void> GpuPlace::read_card(const std::string& gpu) {
  BUBBLESIM_ASSIGN_OR_RETURN(reader_, capture::CardReader::open());
  BUBBLESIM_ASSIGN_OR_RETURN(before_, reader_->read(gpu.empty() ? first_shown_gpu() : gpu));
  return {};
}

observe::Measurement GpuPlace::measurement() const {
  observe::Measurement measured;
  measured.place = fake_ ? "fake" : "gpu";
  measured.date = date_;
  if (!before_) return measured;
  measured.driver = before_->driver;
  measured.sm_clock_before_mhz = clock_of(*before_);
  if (const auto after = reader_->read(before_->uuid)) {
    measured.sm_clock_after_mhz = clock_of(*after);
  }
  return measured;
}

Result<void> GpuPlace::check_settings() const {
  if (!before_) return {};
  BUBBLESIM_ASSIGN_OR_RETURN(const capture::CardState after, reader_->read(before_->uuid));
  return capture::settings_unchanged(*before_, after);
}

}  // namespace bubblesim::app
