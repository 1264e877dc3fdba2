#include "sim/base/random.hpp"

#include <boost/random/exponential_distribution.hpp>
#include <boost/random/gamma_distribution.hpp>
#include <boost/random/normal_distribution.hpp>
#include <boost/random/uniform_01.hpp>

#include "sim/base/hash.hpp"

namespace bubblesim {
namespace {

// FNV-1a over the name, started from the seed: distinct names give distinct streams.
std::uint64_t mix(std::uint64_t seed, std::string_view name) {
  std::uint64_t hash = kFnvBasis ^ (seed * 0x9E3779B97F4A7C15ULL);
  for (const char letter : name) hash = fnv1a(hash, static_cast<unsigned char>(letter));
  return hash;
}

}  // namespace

RandomStream::RandomStream(std::uint64_t seed, std::string_view name)
    : generator_(mix(seed, name)) {}

double RandomStream::uniform() { return boost::random::uniform_01<double>()(generator_); }

double RandomStream::exponential(double mean) {
  return boost::random::exponential_distribution<double>(1.0 / mean)(generator_);
}

double RandomStream::gamma(double mean, double cv) {
  const double shape = 1.0 / (cv * cv);
  return boost::random::gamma_distribution<double>(shape, mean / shape)(generator_);
}

double RandomStream::normal(double mean, double deviation) {
  return boost::random::normal_distribution<double>(mean, deviation)(generator_);
}

}  // namespace bubblesim
