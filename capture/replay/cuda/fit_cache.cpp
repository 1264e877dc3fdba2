#include "capture/replay/cuda/fit_cache.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <iomanip>
#include <limits>
#include <sstream>

namespace bubblesim::capture::cuda {
namespace {

/// One line a fit, numbers only, in the order of the structures; capture/first_contact reads them.
void write(std::ostream& out, const FitKey& key, const CachedFit& fit) {
  const auto& shape = key.form.shape;
  for (const auto n : shape.grid) out << n << ' ';
  for (const auto n : shape.block) out << n << ' ';
  out << shape.registers_per_thread << ' ' << shape.shared_memory_bytes << ' '
      << static_cast<int>(key.form.bound) << ' ' << key.form.tensor << ' ' << key.form.dram_share
      << ' ' << key.form.issue_share << ' ' << to_ns(key.solo) << ' ' << fit.line.floor_ns << ' '
      << fit.line.loop_ns << ' ' << fit.mix.sparse << ' ' << fit.mix.dense << ' ' << fit.mix.wide
      << ' ' << fit.mix.tensor << ' ' << fit.mix.memory_rate << ' ' << fit.error << ' '
      << fit.at_floor << '\n';
}

bool read_fit(const std::string& line, FitKey& key, CachedFit& fit) {
  std::istringstream words(line);
  auto& shape = key.form.shape;
  int bound = 0;
  std::int64_t solo = 0;
  for (auto& n : shape.grid) words >> n;
  for (auto& n : shape.block) words >> n;
  words >> shape.registers_per_thread >> shape.shared_memory_bytes >> bound >> key.form.tensor >>
      key.form.dram_share >> key.form.issue_share >> solo >> fit.line.floor_ns >>
      fit.line.loop_ns >> fit.mix.sparse >> fit.mix.dense >> fit.mix.wide >> fit.mix.tensor >>
      fit.mix.memory_rate >> fit.error >> fit.at_floor;
  key.form.bound = static_cast<program::KernelClass>(bound);
  key.solo = Duration{solo};
  return !words.fail() && fit.line.loop_ns > 0;
}

}  // namespace

FitCache::FitCache(std::string path, const DeviceFacts& facts)
    : path_(std::move(path)),
      head_(fmt::format("bubblesim stand-in fits 6, {}, driver {}", facts.uuid,
                        facts.driver_version)) {
  if (!path_.empty()) read();
}

void FitCache::read() {
  std::ifstream file(path_);
  std::string line;
  if (!std::getline(file, line) || line != head_) return;
  while (std::getline(file, line)) {
    FitKey key;
    CachedFit fit;
    if (!read_fit(line, key, fit)) {
      fits_.clear();
      return;
    }
    fits_.emplace(key, fit);
  }
}

const CachedFit* FitCache::find(const FitKey& key) const {
  const auto found = fits_.find(key);
  return found == fits_.end() ? nullptr : &found->second;
}

bool FitCache::save() const {
  if (path_.empty()) return true;
  const std::string beside = path_ + "." + std::to_string(::getpid());
  {
    std::ofstream out(beside, std::ios::trunc);
    out << std::setprecision(std::numeric_limits<double>::max_digits10) << head_ << '\n';
    for (const auto& [key, fit] : fits_) write(out, key, fit);
    if (!out.flush()) {
      (void)std::remove(beside.c_str());
      return false;
    }
  }
  return std::rename(beside.c_str(), path_.c_str()) == 0;
}

}  // namespace bubblesim::capture::cuda
