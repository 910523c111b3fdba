#include "vitrail/train/pretrain/latent_space.h"

#include <cmath>

#include <fmt/format.h>

#include "vitrail/autograd/tape.h"
#include "vitrail/explain/overlay.h"
#include "vitrail/ops/math/arithmetic.h"
#include "vitrail/ops/shape/shape.h"
#include "vitrail/tensor/error.h"

namespace vitrail::train {
namespace {

// The sum of x_i w_i in double precision.
double inner_product_of(const float* x, const double* w, std::int64_t n) {
  double sum = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    sum += static_cast<double>(x[i]) * w[i];
  }
  return sum;
}

std::vector<double> mean_row(const Tensor& x) {
  std::vector<double> mean(static_cast<std::size_t>(x.size(1)));
  const float* value = x.data<float>();
  for (std::int64_t i = 0; i < x.size(0); ++i) {
    for (double& sum : mean) {
      sum += static_cast<double>(*value++) / static_cast<double>(x.size(0));
    }
  }
  return mean;
}

// Each of the vectors z [N, D], decoded.
std::vector<io::Image> decoded(const Autoencoder& model, const Tensor& z, DType dtype) {
  nn::Pass pass;
  pass.dtype = dtype;
  const Tensor x = model.decode(z, pass).contiguous();
  std::vector<io::Image> images;
  for (std::int64_t i = 0; i < x.size(0); ++i) {
    images.push_back(explain::image_of(x.select(0, i), model.encoder.pretrained.mean, model.encoder.pretrained.std));
  }
  return images;
}

io::Image image_shown(const Autoencoder& model, const Tensor& x) {
  return explain::image_of(x, model.encoder.pretrained.mean, model.encoder.pretrained.std);
}

}  // namespace

Tensor latent_vectors(const Autoencoder& model, const std::vector<Tensor>& inputs, DType dtype) {
  const autograd::NoGrad no_grad;
  std::vector<Tensor> rows;
  for (const Tensor& x : inputs) {
    nn::Pass pass;
    pass.dtype = dtype;
    rows.push_back(ops::cast(model.encode(x, pass), DType::f32));
  }
  return ops::concat(rows, 0).contiguous();
}

LatentDirection latent_direction(const Tensor& a, const Tensor& b) {
  check(a.rank() == 2 && b.rank() == 2 && a.size(1) == b.size(1) && a.numel() > 0 && b.numel() > 0,
        "a direction lies between vectors of one width, not {} and {}", a.shape(), b.shape());
  const Tensor rows_a = a.contiguous();
  const Tensor rows_b = b.contiguous();
  const std::vector<double> mean_a = mean_row(rows_a);
  const std::vector<double> mean_b = mean_row(rows_b);
  LatentDirection result;
  result.vector = Tensor::empty({a.size(1)});
  std::vector<double> along(mean_a.size());
  double squares = 0;
  double middle = 0;
  for (std::size_t i = 0; i < along.size(); ++i) {
    along[i] = mean_a[i] - mean_b[i];
    result.vector.data<float>()[i] = static_cast<float>(along[i]);
    squares += along[i] * along[i];
    middle += along[i] * (mean_a[i] + mean_b[i]) / 2;
  }
  check(std::isfinite(squares), "the latent vectors hold NaN or infinity");
  result.length = std::sqrt(squares);
  std::int64_t own_side = 0;
  for (std::int64_t i = 0; i < a.size(0); ++i) {
    own_side += inner_product_of(rows_a.data<float>() + i * a.size(1), along.data(), a.size(1)) > middle ? 1 : 0;
  }
  for (std::int64_t i = 0; i < b.size(0); ++i) {
    own_side += inner_product_of(rows_b.data<float>() + i * b.size(1), along.data(), b.size(1)) < middle ? 1 : 0;
  }
  result.told_apart = static_cast<double>(own_side) / static_cast<double>(a.size(0) + b.size(0));
  return result;
}

io::Image direction_sheet(const Autoencoder& model, const std::vector<Tensor>& inputs,
                          const std::vector<std::string>& names, const Tensor& direction,
                          const std::vector<double>& amounts, DType dtype) {
  const autograd::NoGrad no_grad;
  const Tensor z = latent_vectors(model, inputs, dtype);
  std::vector<std::vector<io::Image>> rows;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    std::vector<Tensor> points;
    points.reserve(amounts.size());
    for (const double amount : amounts) {
      points.push_back(z.select(0, static_cast<std::int64_t>(i)) + direction * static_cast<float>(amount));
    }
    std::vector<io::Image>& row = rows.emplace_back(std::vector{image_shown(model, inputs[i])});
    for (io::Image& image : decoded(model, ops::stack(points, 0), dtype)) {
      row.push_back(std::move(image));
    }
  }
  explain::SheetLabels labels{.rows = names, .columns = {"image"}};
  for (const double amount : amounts) {
    labels.columns.push_back(amount == 0 ? "decoded" : fmt::format("{:+.2g}", amount));
  }
  return explain::sheet(rows, labels);
}

io::Image between_sheet(const Autoencoder& model, const Tensor& from, const Tensor& to, std::int64_t steps,
                        DType dtype) {
  check(steps >= 2, "a way between two images has at least 2 steps, not {}", steps);
  const autograd::NoGrad no_grad;
  const Tensor z = latent_vectors(model, {from, to}, dtype);
  std::vector<Tensor> points;
  std::vector<io::Image> faded = {image_shown(model, from)};
  explain::SheetLabels labels{.rows = {"latent", "pixels"}, .columns = {"from"}};
  for (std::int64_t i = 0; i < steps; ++i) {
    const auto share = static_cast<float>(i) / static_cast<float>(steps - 1);
    points.push_back(z.select(0, 0) * (1 - share) + z.select(0, 1) * share);
    faded.push_back(image_shown(model, from * (1 - share) + to * share));
    labels.columns.push_back(fmt::format("{:.2g}", share));
  }
  std::vector<io::Image> way = {image_shown(model, from)};
  for (io::Image& image : decoded(model, ops::stack(points, 0), dtype)) {
    way.push_back(std::move(image));
  }
  way.push_back(image_shown(model, to));
  faded.push_back(image_shown(model, to));
  labels.columns.emplace_back("to");
  return explain::sheet({way, faded}, labels);
}

}  // namespace vitrail::train
