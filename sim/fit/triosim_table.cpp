#include <array>
#include <string>
#include <vector>

#include "sim/fit/table_readers.hpp"
#include "sim/fit/table_text.hpp"

namespace bubblesim::fit {
namespace {

using model::KernelKind;
using model::KernelWork;
using model::Precision;

struct Layer {
  double in_channels, out_channels, side;  // side: pixels
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

CheckedResult<void> read_triosim_vgg13(const TableFile& file, KernelMeasurements& out) {
  constexpr std::string_view kName = "OperatorName", kTime = "Operator_cudatime";
  BUBBLESIM_ASSIGN_OR_RETURN(const CsvTable table, read_packed_table(file.path));
  BUBBLESIM_RETURN_IF_ERROR(table.expect(std::array{kName, kTime}));
  std::vector<std::size_t> convolutions;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    if (table.text(row, kName) == "aten::conv2d") convolutions.push_back(row);
  }
  if (convolutions.size() != kVgg13.size()) {
    return fail(table.file(), "OperatorName",
                "found " + std::to_string(convolutions.size()) +
                    " rows of aten::conv2d; expected VGG13's " + std::to_string(kVgg13.size()));
  }
  constexpr double kBatch = 128;
  for (std::size_t layer = 0; layer < kVgg13.size(); ++layer) {
    const Layer& shape = kVgg13[layer];
    const double pixels = kBatch * shape.side * shape.side;
    KernelWork work = gemm_work("convolution", Precision::kTf32, pixels, shape.out_channels,
                                shape.in_channels * 9, 1);
    work.kind = KernelKind::kConvolution;
    work.bytes = 4 * (pixels * (shape.in_channels + shape.out_channels) +
                      shape.in_channels * shape.out_channels * 9);
    TableFile own = file;
    own.role = layer % 2 == 0 ? validate::RowRole::kFit : validate::RowRole::kJudge;
    out.add(own, work, table.figure(convolutions[layer], kTime), 1e3);
  }
  return {};
}

}  // namespace bubblesim::fit
