// A simulated filler on one GPU: its service, and counts of its requests. A server over several
// GPUs has an instance on each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "sim/base/counters.hpp"
#include "sim/base/result.hpp"
#include "sim/base/time.hpp"
#include "sim/engine/engine.hpp"
#include "sim/network/rendezvous.hpp"
#include "sim/network/topology.hpp"
#include "sim/observe/batch_means.hpp"
#include "sim/observe/latency.hpp"
#include "sim/observe/run_result.hpp"
#include "sim/observe/timeline.hpp"
#include "sim/run/run_config.hpp"
#include "sim/serving/scheduler_spec.hpp"
#include "sim/synth/server_plan.hpp"
#include "sim/synth/server_program.hpp"
#include "sim/workload/arrivals/arrival_file.hpp"
#include "sim/workload/arrivals/arrival_process.hpp"
#include "sim/workload/arrivals/request_lengths.hpp"
#include "sim/workload/engine_service.hpp"
#include "sim/workload/request_service.hpp"
#include "sim/workload/step_program.hpp"

namespace bubblesim::run {

class FillerInstance;
struct ServerGpus;

/// Hears of the finished work of a worker of fill jobs.
class FillWorkListener {
 public:
  virtual ~FillWorkListener() = default;
  virtual void on_work_done(FillerInstance& worker, std::uint64_t requests, SimTime now) = 0;
};

/// A language-model server's counts in the measured window.
struct ServerTally {
  observe::LatencyDistribution ttft;  ///< online: of requests that arrived in the window
  observe::LatencyDistribution tpot;
  observe::LatencyHistogram tbt;      ///< times between tokens, by the later token's time
  std::uint64_t output_tokens = 0;    ///< of requests that ended in the window
  std::uint64_t within_limits = 0;    ///< of the completed, requests that also arrived in the
                                      ///< window
  std::uint64_t blocks_held = 0;      ///< by all members' sequences, since the last scheduling
  double block_seconds = 0;           ///< time integral of held blocks, up to counted_until
  SimTime counted_until{};

  /// Adds to block_seconds up to `now`.
  void count_blocks(SimTime now);
};

/// Counts a service's events from the end of the warm-up on.
class FillerInstance final : public workload::ServiceListener {
 public:
  FillerInstance(SimTime warmup, observe::TimelineRecorder* timeline)
      : warmup_(warmup), timeline_(timeline) {
    server.counted_until = warmup;
  }

  void on_served(const workload::ServedRequest& request) override;
  void on_batch(std::uint64_t requests, SimTime now) override;
  void on_token_gaps(std::span<const Duration> gaps, SimTime now) override;
  void on_scheduled(SimTime now) override;
  /// Adds the number of waiting requests to the timeline, if there is one.
  void note_queue(SimTime now);

  GpuId gpu{};
  ClientId client{};          ///< in the policy's numbering
  bool admitted = true;
  std::string reason;
  std::uint32_t filler = 0;   ///< into RunConfig::fillers
  observe::FillerMode mode = observe::FillerMode::kOffline;
  std::unique_ptr<workload::StepProgram> steps;  ///< null: not an engine's server
  ServerGpus* group = nullptr;  ///< null: it is no server, or a server by itself
  std::uint32_t member = 0;     ///< of `group`, to which it belongs
  /// Null if not admitted, and on the further GPUs of a server.
  std::unique_ptr<workload::RequestService> service;
  /// The service whose requests this program serves. Precondition: it was admitted.
  [[nodiscard]] workload::RequestService& served_by() const;
  std::optional<observe::ServiceLimits> limits;  ///< of an engine's requests

  FillWorkListener* work = nullptr;                       ///< kJobs

  std::uint64_t passes = 0;     ///< ended in the measured window
  std::uint64_t before = 0;     ///< online: requests that waited or ran when the window began
  std::uint64_t completed = 0;  ///< in the window
  std::uint64_t arrived = 0;    ///< in the window
  std::uint64_t refused = 0;    ///< of the arrived ones
  observe::LatencyDistribution latency;
  ServerTally server;           ///< of an engine's server
  bool keeps_course = false;              ///< whether `course` is recorded
  std::vector<observe::Progress> course;  ///< batches that began and ended in the window

 private:
  void count_tokens(const workload::ServedRequest& request);

  SimTime warmup_;
  std::optional<SimTime> last_batch_;
  observe::TimelineRecorder* timeline_;
  std::optional<observe::TrackId> queue_track_;
  std::optional<observe::TrackId> cache_track_;
};

/// A server over several GPUs: its instances, by member; the first one has the service.
struct ServerGpus {
  std::vector<FillerInstance*> instances;
  network::Rendezvous& rendezvous;
  /// The exchanges of each member with several GPUs, and of all members if they share experts.
  std::vector<std::unique_ptr<synth::ServerExchanges>> tensor;
  std::unique_ptr<synth::ServerExchanges> experts;

  [[nodiscard]] synth::ServerMeetings meetings_of(std::uint32_t member) const {
    return {tensor.empty() ? nullptr : tensor[member].get(), experts.get()};
  }
};

/// Whether the instance is on a further GPU of a server, without a service of its own.
[[nodiscard]] inline bool joins_server(const FillerInstance* instance) {
  return instance->group != nullptr && instance->group->instances.front() != instance;
}

/// Distributes a filler's requests among its instances, round robin. All requests of one instant
/// are queued before any instance begins to serve them.
class ArrivalRouter final : public engine::EventHandler {
 public:
  ArrivalRouter(engine::Engine& engine, std::unique_ptr<workload::ArrivalProcess> process,
                std::vector<FillerInstance*> instances, SimTime warmup);
  /// Schedules the first arrival.
  void start();
  void on_event(SimTime now) override;
  [[nodiscard]] const CounterSet& counters() const { return process_->counters(); }

 private:
  [[nodiscard]] FillerInstance& instance_of(std::uint64_t request) const {
    return *instances_[request % instances_.size()];
  }
  void deal(SimTime now);
  /// Starts the instances that got the requests from `first` on.
  void serve_from(std::uint64_t first, SimTime now);

  engine::Engine& engine_;
  std::unique_ptr<workload::ArrivalProcess> process_;
  std::vector<FillerInstance*> instances_;
  SimTime warmup_;
  engine::EntityId entity_;
  std::uint64_t number_ = 0;
};

// The requests of a language-model server in a run: lengths from the config, from a file of
// requests, or from the file of arrivals.

/// A server's requests.
struct RequestsRead {
  workload::RequestLengths lengths;
  /// The arrivals, if one file has both arrivals and lengths: it is read once, so that the n-th
  /// length belongs to the n-th arrival whatever lines are damaged. The lengths were moved to
  /// `lengths`. Nothing: arrivals and lengths have different sources.
  std::optional<workload::RecordedArrivals> arrivals{};
  CounterSet counters{};  ///< of reading a file of lengths alone; `arrivals` has its own
};

/// Reads the filler's files. Faults: a file that cannot be read, and the first of the requests that
/// the settings could never serve. Precondition: its program is an engine's.
[[nodiscard]] Result<RequestsRead> server_requests(const FillerConfig& filler,
                                                   const serving::SchedulerSpec& spec);

// Prefill and decode on different GPUs: the keys and values of a prompt go from the GPU that
// computed it, over that GPU's link, to a GPU that decodes.
//
// A GPU sends one prompt after another, in the order in which they were computed. A prompt's
// receiver is chosen when its transfer is requested: the GPU with the fewest requests that wait,
// run or are on their way to it, the first of equals. A waiting prompt takes no room in the prefill
// server's cache. The link is the filler's own, or a transfer is a send over the cluster's links,
// which it shares with training's collectives (sim/network); it takes no SMs there (RDMA).

/// The engine that an admitted instance runs. Precondition: it has an engine's service.
[[nodiscard]] workload::EngineService& engine_of(FillerInstance& instance);

/// The decoding instances of a filler.
class DecodePool {
 public:
  /// At least one, each admitted; they outlive this.
  explicit DecodePool(const std::vector<FillerInstance*>& instances);

  /// Chooses an instance for a request that is to arrive() there later.
  [[nodiscard]] std::size_t choose();
  void arrive(std::size_t instance, const serving::Request& request, SimTime now);
  [[nodiscard]] GpuId gpu(std::size_t instance) const { return decoders_[instance].instance->gpu; }

 private:
  struct Decoder {
    FillerInstance* instance = nullptr;
    workload::EngineService* service = nullptr;
    std::size_t coming = 0;
  };
  [[nodiscard]] static std::size_t load(const Decoder& decoder);

  std::vector<Decoder> decoders_;
};

/// Links that a GPU's transfers share with other transfers.
struct SharedLinks {
  const network::Topology& topology;
  network::Rendezvous& rendezvous;           ///< carries transfers over the topology's links
  const std::vector<std::uint32_t>& places;  ///< on the cluster, by GPU
};

/// Transfers the prompts of an instance that computes them.
class KvLink final : public engine::EventHandler,
                     public workload::HandoverSink,
                     private network::Participant {
 public:
  /// All outlive this; `plan` has PrefillSplit. `links`: null if the filler has a link of its own.
  KvLink(engine::Engine& engine, const synth::ServerPlan& plan, GpuId from, DecodePool& pool,
         const SharedLinks* links);

  void hand_over(serving::Request request, SimTime now) override;
  [[nodiscard]] std::vector<serving::UnfinishedRequest> underway() const override;
  void on_event(SimTime now) override;

 private:
  struct Transfer {
    serving::Request request;
    std::size_t target = 0;
  };

  void begin(SimTime now);
  void finish(SimTime now);
  void on_all_arrived(std::uint64_t cookie, SimTime now) override;

  engine::Engine& engine_;
  const synth::ServerPlan& plan_;
  GpuId source_;
  DecodePool& pool_;
  const SharedLinks* links_;
  engine::EntityId entity_;
  network::Transfer send_;          ///< under way over shared links
  std::uint32_t meeting_ = 0;       ///< of `send_`, with no other rank
  std::deque<Transfer> transfers_;  ///< the first is under way
};

}  // namespace bubblesim::run
