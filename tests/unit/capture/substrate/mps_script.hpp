// An nvidia-cuda-mps-control that is a shell script: a sleeping process stands for the daemon.
#pragma once

#include <sys/stat.h>

#include <fstream>
#include <string>

namespace bubblesim::capture {

/// Started with -d it does `at_start` and starts the process; called without, it does `when_told`,
/// which has the daemon's process id in the file "$pid".
inline std::string mps_script(const std::string& when_told, const std::string& at_start = ":") {
  return R"sh(#!/bin/sh
pid="$CUDA_MPS_PIPE_DIRECTORY/nvidia-cuda-mps-control.pid"
if [ "$1" = -d ]; then
  )sh" + at_start + R"sh(
  sleep 60 </dev/null >/dev/null 2>&1 &
  echo $! > "$pid"
  exit 0
fi
)sh" + when_told + "\nexit 0\n";
}

/// What a daemon does that ends when it is told to.
inline constexpr const char* kQuitsWhenTold =
    "read -r word\n[ \"$word\" = quit ] && kill \"$(cat \"$pid\")\"";

/// As the program of that name in `folder`.
inline void write_mps_program(const std::string& folder, const std::string& script) {
  const std::string path = folder + "/nvidia-cuda-mps-control";
  std::ofstream(path) << script;
  ::chmod(path.c_str(), 0755);
}

}  // namespace bubblesim::capture
