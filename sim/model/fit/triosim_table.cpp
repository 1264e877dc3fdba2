#include <array>
#include <cmath>

#include "sim/model/fit/table_readers.hpp"
#include "sim/model/fit/table_text.hpp"

namespace bubblesim::model {
namespace {

struct Layer {
  double in, out, side;  // channels, channels, pixels
};

// VGG13 (Simonyan and Zisserman 2015, configuration B): 3x3 kernels on squares.
constexpr std::array<Layer, 10> kVgg13 = {{{3, 64, 224},
                                           {64, 64, 224},
                                           {64, 128, 112},
                                           {128, 128, 112},
                                           {128, 256, 56},
                                           {256, 256, 56},
                                           {256, 512, 28},
                                           {512, 512, 28},
                                           {512, 512, 14},
                                           {512, 512, 14}}};

}  // namespace

Result<void> read_triosim_vgg13(const TableFile& file, MeasuredKernels& out) {
  BUBBLESIM_ASSIGN_OR_RETURN(const CsvTable table, read_csv(file.path));
  const auto name = table.column("OperatorName");
  const auto time = table.column("Operator_cudatime");
  if (!name || !time) {
    return fail(file.path, {}, "expected the columns OperatorName and Operator_cudatime");
  }
  constexpr double kBatch = 128;
  std::size_t layer = 0;
  for (const auto& row : table.rows) {
    const auto us = number_of(row[*time]);
    if (row[*name] != "aten::conv2d" || layer >= kVgg13.size() || !us || *us <= 0) continue;
    const Layer& shape = kVgg13[layer];
    const double pixels = kBatch * shape.side * shape.side;
    KernelWork work =
        gemm_work("convolution", Precision::kTf32, pixels, shape.out, shape.in * 9, 1);
    work.kind = KernelKind::kConvolution;
    work.bytes = 4 * (pixels * (shape.in + shape.out) + shape.in * shape.out * 9);
    const auto role = layer % 2 == 0 ? MeasurementRole::kFit : MeasurementRole::kJudge;
    out.rows.push_back({work, Duration{std::llround(*us * 1e3)}, file.device, file.source, role});
    ++layer;
  }
  return {};
}

}  // namespace bubblesim::model
