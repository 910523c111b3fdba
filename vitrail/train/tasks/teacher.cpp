#include "vitrail/train/tasks/teacher.h"

#include <algorithm>

#include <fmt/format.h>

#include "vitrail/autograd/tape.h"
#include "vitrail/io/suggest.h"
#include "vitrail/kernels/gemm.h"
#include "vitrail/ops/images/interpolate.h"
#include "vitrail/ops/math/arithmetic.h"
#include "vitrail/ops/shape/embedding.h"
#include "vitrail/train/run/run_folder.h"

namespace vitrail::train {
namespace {

models::Model open_teacher(const std::string& name_or_folder, const models::Model& student) {
  const std::string name = model_of(name_or_folder).string();
  models::Model model = models::open_model(name);
  models::check_takes_images(model);
  check(model.pretrained.problem_type == models::ProblemType::single_label_classification,
        "the teacher '{}' tells no classes apart: its {} is {}", name_or_folder, models::problem_type_field,
        name_of(model.pretrained.problem_type));
  if (model.pretrained.channels != student.pretrained.channels) {
    models::CreateOptions options;
    options.model_kwargs = fmt::format(R"({{"in_chans": {}}})", student.pretrained.channels);
    model = models::open_model(name, options);
  }
  return model;
}

// The value of one channel; a single value is that of all channels.
double channel(const std::vector<double>& values, std::int64_t index) {
  return values[values.size() == 1 ? 0 : static_cast<std::size_t>(index)];
}

// The teacher's index of each class of the student; undefined if the two have the same classes in the same order, or as
// many without names.
Tensor order_of_classes(const models::Model& teacher, const models::Model& student, const std::string& name) {
  const std::vector<std::string>& known = teacher.pretrained.label_names;
  const std::vector<std::string>& wanted = student.pretrained.label_names;
  if (known.empty() || wanted.empty()) {
    check(teacher.net->num_classes() == student.net->num_classes(),
          "the teacher '{}' tells {} classes apart, but the student {}, and {} has no names of them", name,
          teacher.net->num_classes(), student.net->num_classes(), known.empty() ? "the teacher" : "the student");
    return {};
  }
  if (known == wanted) {
    return {};
  }
  std::vector<std::int64_t> order;
  std::vector<std::string> unknown;
  for (const std::string& label : wanted) {
    const auto at = std::ranges::find(known, label);
    order.push_back(at - known.begin());
    if (at == known.end()) {
      unknown.push_back(label);
    }
  }
  check(unknown.empty(), "the teacher '{}' does not know the {} {}", name, unknown.size() == 1 ? "class" : "classes",
        io::quoted_list(unknown, "and"));
  return Tensor::from(order, {std::ssize(order)});
}

ops::Interpolation interpolation_of(const std::string& name) {
  return name == "nearest"    ? ops::Interpolation::nearest
         : name == "bilinear" ? ops::Interpolation::bilinear
                              : ops::Interpolation::bicubic;
}

}  // namespace

Teacher::Teacher(const std::string& name_or_folder, const models::Model& student, DType dtype)
    : model_(open_teacher(name_or_folder, student)), dtype_(dtype) {
  order_ = order_of_classes(model_, student, name_or_folder);
  const data::ImageConfig& from = student.pretrained;
  const data::ImageConfig& to = model_.pretrained;
  const std::int64_t channels = from.channels;
  bool same = true;
  scale_ = Tensor::empty({1, channels, 1, 1});
  shift_ = Tensor::empty({1, channels, 1, 1});
  for (std::int64_t c = 0; c < channels; ++c) {
    const double scale = channel(from.std, c) / channel(to.std, c);
    const double shift = (channel(from.mean, c) - channel(to.mean, c)) / channel(to.std, c);
    same = same && scale == 1 && shift == 0;
    scale_.data<float>()[c] = static_cast<float>(scale);
    shift_.data<float>()[c] = static_cast<float>(shift);
  }
  if (same) {
    scale_ = shift_ = Tensor();
  }
}

Tensor Teacher::prepared(const Tensor& x) const {
  const Tensor normalized = scale_.defined() ? x * scale_ + shift_ : x;
  const std::int64_t height = model_.pretrained.height;
  const std::int64_t width = model_.pretrained.width;
  if (x.size(2) == height && x.size(3) == width) {
    return normalized;
  }
  const ops::Interpolation mode = interpolation_of(model_.pretrained.interpolation);
  return ops::interpolate(normalized, height, width, mode, mode != ops::Interpolation::nearest);
}

Tensor Teacher::operator()(const Tensor& x) const {
  const autograd::NoGrad no_grad;
  const kernels::TransientPacking kept(false);  // packed weights are kept, as its weights do not change
  nn::Pass pass;
  pass.dtype = dtype_;
  const Tensor logits = model_.net->forward(prepared(x), pass);
  return order_.defined() ? ops::index_select(logits, 1, order_) : logits;
}

}  // namespace vitrail::train
