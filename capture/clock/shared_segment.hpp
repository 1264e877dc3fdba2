// A named piece of memory that processes of one user share.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "sim/base/result.hpp"

namespace bubblesim::capture {

/// Mapped while the object lives; all zeros at first. The object that made it removes its name.
class SharedSegment {
 public:
  virtual ~SharedSegment() = default;
  [[nodiscard]] virtual void* address() const = 0;
  [[nodiscard]] virtual const std::string& name() const = 0;

  /// Makes a segment with the name "PREFIX.PID.N", which only this user may open. Segments of dead
  /// processes under "PREFIX." are removed first.
  [[nodiscard]] static Result<std::unique_ptr<SharedSegment>> make(const std::string& prefix,
                                                                   std::size_t bytes);
  /// Fault: no segment has this name, or it is smaller. `what` names the segment in the fault.
  [[nodiscard]] static Result<std::unique_ptr<SharedSegment>> open(const std::string& name,
                                                                   std::size_t bytes,
                                                                   const std::string& what);
  /// Removes this user's segments whose names begin so, that are older than a minute and whose
  /// makers have died. A maker holds a lock, which other pid namespaces see too.
  static void sweep(const std::string& beginning, const std::string& folder = "/dev/shm");
};

}  // namespace bubblesim::capture
