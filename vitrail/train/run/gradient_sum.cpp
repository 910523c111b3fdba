#include "vitrail/train/run/gradient_sum.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include <fmt/format.h>

#include "vitrail/dist/square_sum.h"

namespace vitrail::train {
namespace {

std::int64_t total_size(const std::vector<Tensor>& tensors) {
  std::int64_t size = 0;
  for (const Tensor& one : tensors) {
    size += one.numel();
  }
  return size;
}

// Calls visit(tensor, where it begins in the flat vector of all).
template <class Visit>
void for_each_part(const std::vector<Tensor>& tensors, Visit&& visit) {
  std::int64_t offset = 0;
  for (const Tensor& one : tensors) {
    visit(one, offset);
    offset += one.numel();
  }
}

Tensor flat(const std::vector<Tensor>& tensors, std::int64_t size) {
  const Tensor all = Tensor::empty({size});
  for_each_part(tensors, [&](const Tensor& one, std::int64_t offset) {
    copy_numbers(one.span<float>().data(), all.data<float>() + offset, one.numel());
  });
  return all;
}

void spread(const Tensor& all, const std::vector<Tensor>& tensors) {
  for_each_part(tensors, [&](const Tensor& one, std::int64_t offset) {
    copy_numbers(all.data<float>() + offset, one.span<float>().data(), one.numel());
    one.touch();
  });
}

std::vector<Tensor> of_dtype(const std::vector<Tensor>& tensors, DType dtype) {
  std::vector<Tensor> result;
  std::ranges::copy_if(tensors, std::back_inserter(result), [&](const Tensor& x) { return x.dtype() == dtype; });
  return result;
}

}  // namespace

GradientSum::GradientSum(const nn::ParameterStore& parameters, dist::Communicator& ranks, DType wire,
                         std::int64_t bucket_bytes, dist::Share share, int first_tag)
    : ranks_(ranks), share_(share), layout_(make_buckets(parameters, bucket_bytes)) {
  for (std::size_t i = 0; i < layout_.sizes.size(); ++i) {
    const int tag = first_tag + 2 * static_cast<int>(i);
    buckets_.push_back(
        {dist::TreeSum(ranks, layout_.sizes[i], wire, tag, fmt::format("bucket {} of the gradients", i + 1), share)});
  }
  for (std::size_t at = 0; at < layout_.places.size(); ++at) {
    const Buckets::Place& place = layout_.places[at];
    by_leaf_[place.parameter->value.slot().get()] = at;
    ++buckets_[place.bucket].places;
  }
}

int GradientSum::tags() const { return 2 * static_cast<int>(buckets_.size()); }

void GradientSum::begin(std::int64_t leaves) {
  touched_.assign(layout_.places.size(), 0);
  for (Bucket& bucket : buckets_) {
    bucket.sum.begin(leaves);
  }
  begin_leaf();
}

void GradientSum::begin_leaf() {
  taken_.assign(layout_.places.size(), 0);
  for (Bucket& bucket : buckets_) {
    bucket.missing = bucket.places;
  }
}

void GradientSum::take(std::size_t at, const Tensor& gradient) {
  const Buckets::Place& place = layout_.places[at];
  Bucket& bucket = buckets_[place.bucket];
  if (!bucket.leaf.defined()) {
    bucket.leaf = Tensor::empty({layout_.sizes[place.bucket]});
  }
  float* to = bucket.leaf.data<float>() + place.offset;
  const std::int64_t n = place.parameter->value.numel();
  if (gradient.defined()) {
    copy_numbers(gradient.span<float>().data(), to, n);
    touched_[at] = 1;
  } else {
    std::fill(to, to + n, 0.0F);
  }
  std::fill(to + n, to + whole_lines(n), 0.0F);
  taken_[at] = 1;
  if (--bucket.missing == 0) {
    bucket.sum.add(std::move(bucket.leaf));
    bucket.leaf = Tensor();
  }
}

autograd::Tape::Complete GradientSum::collector() {
  return [this](autograd::Slot& leaf) {
    const auto found = by_leaf_.find(&leaf);
    if (found != by_leaf_.end() && taken_[found->second] == 0 && leaf.grad.defined()) {
      take(found->second, leaf.grad);
      leaf.grad = Tensor();
    }
    if (ranks_.size() > 1) {
      for (Bucket& bucket : buckets_) {
        bucket.sum.progress();
      }
    }
  };
}

void GradientSum::end_leaf() {
  for (std::size_t at = 0; at < layout_.places.size(); ++at) {
    if (taken_[at] == 0) {
      autograd::Slot& leaf = *layout_.places[at].parameter->value.slot();
      take(at, leaf.grad);
      leaf.grad = Tensor();
    }
  }
  begin_leaf();
}

std::optional<double> GradientSum::finish(const std::vector<std::uint8_t>& touched, bool asked_norm,
                                          const std::string& when) {
  std::vector<dist::Held> sums;
  sums.reserve(buckets_.size());
  for (std::size_t i = 0; i < buckets_.size(); ++i) {
    sums.push_back({buckets_[i].sum.finish(when), layout_.sizes[i]});
  }
  for (std::size_t at = 0; at < layout_.places.size(); ++at) {
    const Buckets::Place& place = layout_.places[at];
    const Tensor& value = place.parameter->value;
    const Tensor& sum = sums[place.bucket].numbers;
    Tensor& gradient = value.slot()->grad;
    gradient = Tensor();
    if (touched[at] != 0 && share_ == dist::Share::whole) {
      gradient = sum.narrow(0, place.offset, value.numel()).reshape(value.shape());
    } else if (touched[at] != 0) {
      const Owned own = owned_of(layout_, place, ranks_.rank(), ranks_.size());
      gradient = sum.narrow(0, own.at, own.end - own.begin);
    }
  }
  return asked_norm ? std::optional(std::sqrt(dist::sum_of_squares(ranks_, sums, "the norm of the gradients " + when)))
                    : std::nullopt;
}

std::vector<Tensor> running_statistics(const nn::ParameterStore& parameters) {
  std::vector<Tensor> result;
  for (const nn::Parameter& one : parameters.all()) {
    const std::string_view last = std::string_view(one.name).substr(one.name.rfind('.') + 1);
    if (one.buffer && (last == "running_mean" || last == "running_var" || last == "num_batches_tracked")) {
      result.push_back(one.value);
    }
  }
  return result;
}

StatisticsMean::StatisticsMean(const std::vector<Tensor>& statistics, dist::Communicator& ranks, int first_tag)
    : averaged_(of_dtype(statistics, DType::f32)),
      counts_(of_dtype(statistics, DType::i64)),
      size_(total_size(averaged_)),
      sum_(ranks, size_, DType::f32, first_tag, "the running statistics"),
      counts_before_(counts_.size()) {}

void StatisticsMean::begin(std::int64_t leaves) {
  leaves_ = leaves;
  if (any()) {
    before_ = flat(averaged_, size_);
    std::ranges::transform(counts_, counts_before_.begin(),
                           [](const Tensor& count) { return count.span<std::int64_t>()[0]; });
    sum_.begin(leaves);
  }
}

void StatisticsMean::begin_leaf() {
  if (any()) {
    spread(before_, averaged_);
  }
}

void StatisticsMean::end_leaf() {
  if (any()) {
    sum_.add(flat(averaged_, size_));
  }
}

void StatisticsMean::finish(const std::string& when) {
  if (!any()) {
    return;
  }
  const Tensor mean = sum_.finish(when);
  float* values = mean.data<float>();
  for (std::int64_t i = 0; i < size_; ++i) {
    values[i] /= static_cast<float>(leaves_);
  }
  spread(mean, averaged_);
  for (std::size_t i = 0; i < counts_.size(); ++i) {
    counts_[i].span<std::int64_t>()[0] = counts_before_[i] + 1;
    counts_[i].touch();
  }
}

}  // namespace vitrail::train
