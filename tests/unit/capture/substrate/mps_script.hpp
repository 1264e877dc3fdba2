// A shell script in place of nvidia-cuda-mps-control: a sleeping process stands for the daemon.
#pragma once

#include <fstream>
#include <string>
#include <sys/stat.h>

namespace bubblesim::capture {

/// With -d it runs `at_start` and starts the daemon's process. Without -d it runs `when_told`, and
/// the file "$pid" has the daemon's process id.
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

/// The `when_told` of a daemon that obeys "quit".
inline constexpr const char* kQuitsWhenTold =
    "read -r word\n[ \"$word\" = quit ] && kill \"$(cat \"$pid\")\"";

/// Writes the script to `folder` as nvidia-cuda-mps-control.
inline void write_mps_program(const std::string& folder, const std::string& script) {
  const std::string path = folder + "/nvidia-cuda-mps-control";
  std::ofstream(path) << script;
  ::chmod(path.c_str(), 0755);
}

}  // namespace bubblesim::capture
