// Which runs are in flight, in a file beside the store, so that the next start knows what a process
// died of. Each process has a file of its own while it runs; one that ends in order removes it.
//
// Each thread has a line: the key of its run and a letter. One system call writes it in place when
// a run starts or ends, so it survives the process, though not a power cut. The file is locked
// (flock(2)) as long as its process lives: other processes see by the lock that it does.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_set>
#include <vector>

#include "sim/base/result.hpp"
#include "sim/store/run_record.hpp"

namespace bubblesim::sweep {

/// The place of a sweep's journals: STEM.running-XXXXXX.
struct JournalPlace {
  std::string stem;   ///< path of the store; any path for a store that is no file
  std::string sweep;  ///< journals of other sweeps are left alone
  std::string share = {};    ///< of the sweep, that this process does: one line
  std::string process = {};  ///< this one, as others name it: one line
};

/// While it lives, other processes that want one beside the same store wait, so no journal appears
/// between reading which ones exist and making one's own.
class JournalTurn {
 public:
  explicit JournalTurn(const JournalPlace& place);
  ~JournalTurn();
  JournalTurn(const JournalTurn&) = delete;
  JournalTurn& operator=(const JournalTurn&) = delete;

 private:
  int folder_;  ///< locked; -1: there is none, or its file system has no locks
};

class RunJournal {
 public:
  /// Fault: the file cannot be made.
  [[nodiscard]] static Result<std::unique_ptr<RunJournal>> create(const JournalPlace& place);
  /// Removes the file.
  ~RunJournal();
  RunJournal(const RunJournal&) = delete;
  RunJournal& operator=(const RunJournal&) = delete;

  /// The calling thread begins a run, and ends it. A thread has one run at a time.
  void started(const store::PlannedRun& run);
  void ended();

  /// Removes the file; for a process that ends without destructors.
  void remove() const noexcept;

  /// For handlers of signals that end the process: notes that the calling thread's run brought it
  /// down. Its key; null: the thread has no run. Async-signal-safe.
  [[nodiscard]] static const char* mark_crash() noexcept;

 private:
  RunJournal(std::string path, int file);

  std::string path_;
  int file_;
  std::mutex mutex_;
  std::vector<std::size_t> free_;  // lines that no thread uses
  std::size_t lines_ = 0;
};

/// What journals of processes that died say of a run.
struct Suspicion {
  std::size_t deaths = 0;  ///< processes that died while it was in flight
  bool crashed = false;    ///< it brought one down itself: its thread got the fatal signal
};

/// Journals that dead processes left; and the process that does the same now.
class DeadJournals {
 public:
  /// Fault: a folder or a file that is there cannot be read.
  [[nodiscard]] static Result<DeadJournals> read(const JournalPlace& place);

  /// The process that lives and does the same share of the sweep; empty: none.
  [[nodiscard]] const std::string& living() const { return living_; }
  [[nodiscard]] Suspicion suspicion(const std::string& key) const;
  [[nodiscard]] bool empty() const { return journals_.empty(); }
  /// Removes the files, but for those with a run of another shard.
  void forget_but(const std::unordered_set<std::string>& needed_keys);

 private:
  struct Journal {
    std::string path;
    std::vector<std::string> keys;
  };

  void take(const std::string& path, const JournalPlace& place);
  void note_living(const std::string& path, const JournalPlace& place);

  std::vector<Journal> journals_;
  std::map<std::string, Suspicion> suspicions_;
  std::string living_;
};

/// Whether a run is tried again: a run that brought a process down is not; one that was in flight
/// when a process was killed is, but from the second time on alone and after all others, and not
/// after the third.
enum class Trust : std::uint8_t { kWithOthers, kAlone, kNone };
inline constexpr std::size_t kDeathsBeforeAlone = 2;
inline constexpr std::size_t kDeathsBeforeFailed = 3;

[[nodiscard]] Trust trust_in(const Suspicion& suspicion);

/// Why a run is not tried again.
[[nodiscard]] std::string reason_of(const Suspicion& suspicion);

struct RunsByTrust {
  std::vector<store::PlannedRun> with_others;
  std::vector<store::PlannedRun> alone;
  std::vector<store::PlannedRun> none;
};

/// The runs by how far dead journals let one trust them, each list in the order given.
[[nodiscard]] RunsByTrust by_trust(const std::vector<store::PlannedRun>& runs,
                                   const DeadJournals& dead);

}  // namespace bubblesim::sweep
