// A file that no reader sees half-written: written beside its name, and renamed when complete.
#pragma once

#include <memory>
#include <ostream>
#include <string>
#include <utility>

#include "sim/base/result.hpp"

namespace bubblesim {

/// The paths to which the bytes of an output go.
struct OutputTarget {
  std::string path;     ///< the target of a link of that name
  std::string partial;  ///< written first, then renamed to `path`; empty: `path` is no regular file
                        ///< (a device, a pipe), and is written in place
};

/// The rule by which all writers choose these paths. Fault: a folder, or a link to nowhere.
[[nodiscard]] Result<OutputTarget> output_target(const std::string& path);

/// Opens a new file for writing, as open() does. An existing file of that name (of a killed writer,
/// or another user's link) is removed, not written to. EEXIST: it cannot be removed.
[[nodiscard]] int open_new_file(const std::string& path, unsigned rights);

/// Writes to PATH.partial, which finish() renames to PATH; without a successful finish(),
/// PATH.partial is removed and PATH stays as it was. A device or a pipe is written in place.
/// Threads must not share an object.
class OutputFile {
 public:
  /// Fault: it cannot be opened for writing, with the system's reason.
  [[nodiscard]] static Result<OutputFile> create(const std::string& path);
  OutputFile(OutputFile&&) noexcept;
  OutputFile& operator=(OutputFile&&) noexcept;
  ~OutputFile();

  /// finish() reports failed writes.
  [[nodiscard]] std::ostream& stream() { return *stream_; }
  /// Must be the last call. Fault: a write failed (a full disk), or the file cannot be renamed.
  [[nodiscard]] Result<void> finish();

 private:
  class Buffer;
  OutputFile(std::string path, OutputTarget target);

  std::string path_;  ///< the path as given, for faults
  OutputTarget target_;
  std::unique_ptr<Buffer> buffer_;  ///< null: finished or moved from
  std::unique_ptr<std::ostream> stream_;
};

/// The whole file at once. Faults: as above.
[[nodiscard]] Result<void> write_whole_file(const std::string& path, const std::string& text);

// A folder for a command's temporary files.

class ScratchFolder {
 public:
  /// "bubblesim-PURPOSE-" and six letters, in `parent`, which exists. Fault: it cannot be made.
  [[nodiscard]] static Result<std::unique_ptr<ScratchFolder>> make(const std::string& parent,
                                                                   const std::string& purpose);
  /// Removes the folder with its contents.
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  explicit ScratchFolder(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

}  // namespace bubblesim
