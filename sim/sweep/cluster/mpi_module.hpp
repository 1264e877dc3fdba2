// MPI as a shared object that the program loads when it was started by mpirun: linked into the
// program, Open MPI's libraries cost every start 13 ms (a start without them takes 3 ms).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "sim/base/result.hpp"
#include "sim/sweep/cluster/transport.hpp"

namespace bubblesim::sweep {

/// File name of the module, which lies beside the program or in ../lib/bubblesim.
inline constexpr const char* kMpiModule = "bubblesim_mpi.so";
/// The name of the module's function; another form of Transport has another name.
inline constexpr const char* kMpiFunction = "bubblesim_mpi_transport_1";

/// What the function is: joins the job that this process was started in. Once a process. Null: it
/// failed, and `why` says why; `why` takes a text of its own copy.
using MpiTransportFunction = Transport* (*)(void (*why)(const char* text, void* to), void* to);

/// Loads the module from the first of the folders that has it, and joins. Fault: no folder has it,
/// it does not load, or MPI does not start.
[[nodiscard]] Result<std::unique_ptr<Transport>> join_mpi(const std::vector<std::string>& folders);

}  // namespace bubblesim::sweep
