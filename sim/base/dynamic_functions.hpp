// Functions of a library that is loaded at run time.
#pragma once

#include <dlfcn.h>

namespace bubblesim {

/// Looks functions up and keeps the name of the first needed one that is missing.
class FunctionFinder {
 public:
  explicit FunctionFinder(void* library) : library_(library) {}

  /// Null if the library lacks the function.
  template <class Function>
  void wanted(Function*& function, const char* name) {
    function = reinterpret_cast<Function*>(::dlsym(library_, name));
  }
  template <class Function>
  void needed(Function*& function, const char* name) {
    wanted(function, name);
    if (function == nullptr && missing_ == nullptr) missing_ = name;
  }
  [[nodiscard]] const char* missing() const { return missing_; }

 private:
  void* library_;
  const char* missing_ = nullptr;
};

}  // namespace bubblesim
