// The name of a recording: rank<N>.recording.btr while it grows, rank<N>.btr once it is whole.
//
// An existing file is never written to or replaced: processes that share a rank (a launcher and its
// worker, a job run twice) get ".pid<P>" into their names instead.
#pragma once

#include <cstdint>
#include <string>

#include "capture/protocol/capture_request.hpp"
#include "sim/base/result.hpp"

namespace bubblesim::capture {

class RecordingFile {
 public:
  /// `output`: a path that ends with ".btr", or a folder, which is made if missing. Creates an
  /// empty file, for its owner alone or for all to read. Faults: the folder or the file cannot be
  /// made.
  [[nodiscard]] static Result<RecordingFile> claim(const std::string& output, std::uint32_t rank,
                                                std::int64_t pid, Readers readers);

  /// The present path of the recording.
  [[nodiscard]] const std::string& path() const { return path_; }
  /// Gives the file its final name. Fails if the folder has gone or is read-only; the recording
  /// then keeps its present name.
  [[nodiscard]] Result<void> complete();
  /// Removes the file: nothing was recorded.
  void discard() noexcept;

 private:
  RecordingFile(std::string stem, std::int64_t pid) : stem_(std::move(stem)), pid_(pid) {}
  [[nodiscard]] std::string name(int attempt, const char* ending) const;

  std::string stem_;  ///< path without ".btr"
  std::int64_t pid_ = 0;
  std::string path_;
};

}  // namespace bubblesim::capture
