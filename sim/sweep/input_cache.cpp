#include "sim/sweep/input_cache.hpp"

#include <utility>

#include "sim/base/json.hpp"
#include "sim/sweep/baseline_keys.hpp"
#include "sim/sweep/config_edit.hpp"

namespace bubblesim::sweep {
namespace {

std::size_t bytes_of_inputs(const run::TrainingInputs& inputs) {
  std::size_t bytes = sizeof inputs;
  for (const program::Program& rank : inputs.program.ranks) bytes += bytes_of(rank);
  bytes += inputs.program.collectives.size() * sizeof(workload::JoinedCollective);
  return bytes;
}

std::size_t bytes_of_inputs(const run::FillerInputs& inputs) { return bytes_of(inputs.program); }

}  // namespace

std::size_t bytes_of(const program::Program& program) {
  std::size_t bytes = sizeof program + program.ops.size() * sizeof(program::Op) +
                      program.edges.size() * sizeof(program::OpEdge) +
                      program.details.size() * sizeof(program::StepDetail) +
                      program.profiles.size() * sizeof(program::KernelProfile) +
                      program.memory.size() * sizeof(program::MemoryMark);
  for (const auto& thread : program.threads) bytes += thread.steps.size() * sizeof(program::Step);
  return bytes;
}

/// What was used last, held so that it is not loaded again.
struct InputCache::Use {
  explicit Use(std::size_t most) : most_bytes(most) {}

  struct Held {
    std::shared_ptr<const void> inputs;
    std::size_t bytes = 0;
  };

  void touch(std::shared_ptr<const void> inputs, std::size_t size) {
    const std::scoped_lock lock(mutex);
    for (auto entry = held.begin(); entry != held.end(); ++entry) {
      if (entry->inputs != inputs) continue;
      held.splice(held.begin(), held, entry);
      return;
    }
    held.push_front({std::move(inputs), size});
    bytes += size;
    while (bytes > most_bytes && held.size() > 1) {
      bytes -= held.back().bytes;
      held.pop_back();
    }
  }

  std::mutex mutex;
  std::size_t most_bytes;
  std::list<Held> held;  // the last used first
  std::size_t bytes = 0;
};

/// Inputs by key. Threads that ask for one that is being loaded wait for it; others load theirs.
template <class Inputs>
class InputCache::Shelf {
 public:
  using Pointer = std::shared_ptr<const Inputs>;

  CheckedResult<Pointer> get(const std::string& key, Use& use,
                             const std::function<CheckedResult<Inputs>()>& load) {
    const std::shared_ptr<Entry> entry = entry_of(key);
    const std::scoped_lock lock(entry->mutex);
    if (!entry->faults.empty()) return tl::unexpected<Errors>(entry->faults);
    if (Pointer known = entry->inputs.lock()) {
      use.touch(known, entry->bytes);
      return known;
    }
    auto loaded = load();
    {
      const std::scoped_lock count(mutex_);
      ++loads_;
    }
    if (!loaded) {
      entry->faults = loaded.error();
      return tl::unexpected<Errors>(loaded.error());
    }
    auto inputs = std::make_shared<const Inputs>(*std::move(loaded));
    entry->inputs = inputs;
    entry->bytes = bytes_of_inputs(*inputs);
    use.touch(inputs, entry->bytes);
    return inputs;
  }

  [[nodiscard]] std::size_t loads() {
    const std::scoped_lock lock(mutex_);
    return loads_;
  }

 private:
  struct Entry {
    std::mutex mutex;
    std::weak_ptr<const Inputs> inputs;
    std::size_t bytes = 0;
    Errors faults;  // a load that failed fails the same way again
  };

  std::shared_ptr<Entry> entry_of(const std::string& key) {
    const std::scoped_lock lock(mutex_);
    auto& entry = entries_[key];
    if (!entry) entry = std::make_shared<Entry>();
    return entry;
  }

  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<Entry>> entries_;
  std::size_t loads_ = 0;
};

InputCache::InputCache(std::string device_folder, std::size_t bytes_kept)
    : device_folder_(std::move(device_folder)), bytes_kept_(bytes_kept),
      use_(std::make_unique<Use>(bytes_kept)),
      trainings_(std::make_unique<Shelf<run::TrainingInputs>>()),
      fillers_(std::make_unique<Shelf<run::FillerInputs>>()) {}

InputCache::~InputCache() = default;

CheckedResult<run::LoadedRun> InputCache::load(const run::RunConfig& config,
                                               const Json& json) {
  BUBBLESIM_ASSIGN_OR_RETURN(auto training, trainings_->get(job_text(json), *use_, [&] {
    return run::load_training(config, device_folder_, {});
  }));
  const hardware::GpuSpec& device = training->device;
  // Devices of one name may come from different files.
  const std::string machine = device.name + '\n' + text_at(json, "/device") + '\n' +
                         text_at(json, "/training/synth/cluster") + '\n';
  BUBBLESIM_ASSIGN_OR_RETURN(run::LoadedRun run, run::assemble_run(config, training));
  for (std::size_t i = 0; i < config.fillers.size(); ++i) {
    const run::FillerConfig& filler = config.fillers[i];
    const std::string program = "/fillers/" + std::to_string(i) + "/program";
    const std::string key = machine + filler.name + '\n' + text_at(json, program);
    BUBBLESIM_ASSIGN_OR_RETURN(
        auto inputs, fillers_->get(key, *use_, [&] {
          return run::load_filler(filler, device, device_folder_, {});
        }));
    run::add_filler(run, std::move(inputs));
  }
  return run;
}

std::size_t InputCache::loads() const { return trainings_->loads() + fillers_->loads(); }

}  // namespace bubblesim::sweep
