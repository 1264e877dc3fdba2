// NVTX as it is compiled into a library of a job: it loads NVTX_INJECTION64_PATH at its first use
// and calls the functions that the tool has put into its table.
#pragma once

#include <string>

namespace fake {

/// Without a tool, calls do nothing.
class Ranges {
 public:
  Ranges();
  void push(const std::string& name) const;
  void pop() const;

 private:
  int (*push_)(const char*) = nullptr;
  int (*pop_)() = nullptr;
};

}  // namespace fake
