#include "sim/run/parallel.hpp"

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

namespace bubblesim::run {

void for_each_parallel(std::size_t count, std::size_t threads,
                       const std::function<void(std::size_t)>& task) {
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t i = next++; i < count; i = next++) task(i);
  };
  const std::size_t helpers = std::min(std::max<std::size_t>(threads, 1), count);
  std::vector<std::thread> pool;
  for (std::size_t i = 1; i < helpers; ++i) pool.emplace_back(work);
  work();
  for (std::thread& thread : pool) thread.join();
}

}  // namespace bubblesim::run
