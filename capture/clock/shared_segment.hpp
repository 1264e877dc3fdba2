// A piece of named shared memory of one user's processes.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "sim/base/result.hpp"

namespace bubblesim::capture {

/// Mapped while the object lives; the name goes with the object that made it. All zeros at first.
class SharedSegment {
 public:
  virtual ~SharedSegment() = default;
  [[nodiscard]] virtual void* address() const = 0;
  [[nodiscard]] virtual const std::string& name() const = 0;

  /// Makes a segment with the name "PREFIX.PID.N", which only this user may open. Segments of dead
  /// processes under "PREFIX." are removed first.
  [[nodiscard]] static Result<std::unique_ptr<SharedSegment>> make(const std::string& prefix,
                                                                   std::size_t bytes);
  /// Fault: there is none of this name, or it has fewer bytes. `what` it is, for the fault's text.
  [[nodiscard]] static Result<std::unique_ptr<SharedSegment>> open(const std::string& name,
                                                                   std::size_t bytes,
                                                                   const std::string& what);
  /// Takes a name away that a dead process left; nothing if there is none.
  static void remove(const std::string& name);
  /// Takes away this user's segments of such names, older than a minute, whose makers have died
  /// without doing so: makers hold a lock, which is seen from other pid namespaces too.
  static void sweep(const std::string& beginning, const std::string& folder = "/dev/shm");
};

}  // namespace bubblesim::capture
