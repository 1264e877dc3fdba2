// A process's part in the gate: takes the client's place, asks before each launch, reports ends.
//
// The first process of a job that launches anything is the client. Other processes that launch
// while it lives go ungated, and note it. A client that ends leaves its place to the next process;
// one that becomes another program by exec keeps it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "capture/clock/host_clock.hpp"
#include "capture/gate/gate_client.hpp"
#include "capture/live/interpose/gate_seam.hpp"
#include "capture/live/interpose/own_place.hpp"
#include "capture/live/live_folder.hpp"

namespace bubblesim::capture::interpose {

class Completions;

/// The job's settings for the gate library; the same in all of its processes.
struct GateSettings {
  std::string gate;     ///< its name
  std::string client;   ///< its number
  std::string folder;   ///< of the counts; may be empty
  bool completions = false;  ///< whether ends of launches are reported
};

/// Never destroyed: programs launch until their last moment. All calls but the constructor and
/// leave() may come from any thread. The link joins the gate at the first launch; if it cannot, the
/// process stays ungated. A process has a link for each gate, and calls the link of the GPU in use.
class Link {
 public:
  explicit Link(const GateSettings& settings);
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  /// Whether a launch of the calling thread is on the gate's GPU.
  [[nodiscard]] OwnGpu::Where where() const {
    return gpu_ == nullptr ? OwnGpu::Where::kNotKnownYet : gpu_->where();
  }
  /// Notes that the process launches on a GPU without a gate.
  void note_elsewhere();
  /// In a thread that is exiting, launches go on and are counted as undecided: its row at the gate
  /// has been given back already.
  void before_launch(SeenLaunch& launch);
  void after_launch(const SeenLaunch& launch, CuResult result);
  void iteration();
  /// `context` is about to end; null: it is not known which one.
  void context_ends(Handle context);
  /// The driver is about to shut down: it is not asked for ends of launches any more.
  void stop_looking();
  /// Gives up the place. Launches go on without the gate from here on.
  void leave();

 private:
  /// A call that uses the client; not active: there is no client (any more).
  class Use {
   public:
    explicit Use(Link& link) : link_(link) {
      ++link.users_;
      active_ = !link.left_ && link.is_open_;
    }
    ~Use() { --link_.users_; }
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;
    explicit operator bool() const { return active_; }

   private:
    Link& link_;
    bool active_;
  };

  void open_gate();
  /// Makes the calling thread take part in the clock from here on. False: the thread is exiting.
  bool join();
  void count_launch(const policy::LaunchInfo& info, const Passage& passage, Duration spent);
  /// Returns how long the launch waited.
  Duration wait_for_room(const policy::LaunchInfo& info);
  void count_time(bool held, Duration spent);
  /// Of the end of one launch; `guessed`: the driver gave no event. False: no room now.
  bool tell(const policy::LaunchInfo& info, bool guessed);
  Completions& completions();

  const GateSettings settings_;
  LiveCounts& counts_;
  std::unique_ptr<HostClock> clock_;
  std::unique_ptr<OwnGpu> gpu_;         ///< null: no gate
  std::once_flag opens_;
  std::unique_ptr<GateClient> client_;  ///< null: ungated
  std::atomic<bool> is_open_{false};    ///< there is a client
  std::atomic<bool> was_elsewhere_{false};
  ClientId id_;
  Turn turn_ = Turn::kFiller;
  std::once_flag follows_;
  std::atomic<Completions*> completions_{nullptr};
  std::atomic<std::int64_t> iteration_began_{0};
  std::atomic<std::uint32_t> users_{0};
  std::atomic<bool> left_{false};
};

}  // namespace bubblesim::capture::interpose
