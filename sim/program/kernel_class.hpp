// Guesses from a kernel's name which resource bounds it.
#pragma once

#include <string_view>

#include "sim/program/kinds.hpp"

namespace bubblesim::program {

/// Classifies by words in the name: matrix products, convolutions and attention are compute- bound;
/// element-wise, normalising, copying, reducing, embedding and sorting kernels are memory-bound;
/// others are unknown. A name is no measurement: Orion (EuroSys'24) classifies by arithmetic
/// intensity; its profiles agree with these words for the kernels of ResNet, MobileNet, BERT and
/// Transformer-XL whose names have one.
[[nodiscard]] KernelClass classify_kernel(std::string_view name);

}  // namespace bubblesim::program
