#include "vitrail/train/run/gradient_sum.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "vitrail/kernels/parallel.h"

namespace vitrail::train {
namespace {

constexpr std::int64_t first_bucket_bytes = 1 << 20;  // DistributedDataParallel's
constexpr std::int64_t numbers_a_line = 16;           // of f32 in a cache line

std::int64_t whole_lines(std::int64_t count) { return (count + numbers_a_line - 1) / numbers_a_line * numbers_a_line; }

void copy(const float* from, float* to, std::int64_t n) {
  kernels::parallel_for(n, 1 << 16, kernels::lines, [&](std::int64_t begin, std::int64_t end, int) {
    std::memcpy(to + begin, from + begin, static_cast<std::size_t>(end - begin) * sizeof(float));
  });
}

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
    copy(one.span<float>().data(), all.data<float>() + offset, one.numel());
  });
  return all;
}

void spread(const Tensor& all, const std::vector<Tensor>& tensors) {
  for_each_part(tensors, [&](const Tensor& one, std::int64_t offset) {
    copy(all.data<float>() + offset, one.span<float>().data(), one.numel());
    one.touch();
  });
}

std::vector<Tensor> buffers_named(const nn::ParameterStore& parameters, std::initializer_list<std::string_view> names) {
  std::vector<Tensor> result;
  for (const nn::Parameter& one : parameters.all()) {
    const std::string_view last = std::string_view(one.name).substr(one.name.rfind('.') + 1);
    if (one.buffer && std::ranges::find(names, last) != names.end()) {
      result.push_back(one.value);
    }
  }
  return result;
}

}  // namespace

GradientSum::GradientSum(const nn::ParameterStore& parameters, dist::Communicator& ranks, DType wire,
                         std::int64_t bucket_bytes, int first_tag)
    : ranks_(ranks) {
  std::vector<std::int64_t> sizes;
  const std::vector<nn::Parameter>& all = parameters.all();
  for (auto one = all.rbegin(); one != all.rend(); ++one) {
    if (!one->trainable || one->buffer) {
      continue;
    }
    const std::int64_t most = sizes.size() <= 1 ? std::min(first_bucket_bytes, bucket_bytes) : bucket_bytes;
    if (sizes.empty() || sizes.back() * static_cast<std::int64_t>(sizeof(float)) >= most) {
      sizes.push_back(0);
    }
    by_leaf_[one->value.slot().get()] = places_.size();
    places_.push_back({&*one, sizes.size() - 1, sizes.back()});
    sizes.back() += whole_lines(one->value.numel());
  }
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const int tag = first_tag + 2 * static_cast<int>(i);
    buckets_.push_back(
        {dist::TreeSum(ranks, sizes[i], wire, tag, fmt::format("bucket {} of the gradients", i + 1)), sizes[i]});
  }
  for (const Place& place : places_) {
    ++buckets_[place.bucket].places;
  }
}

int GradientSum::tags() const { return 2 * static_cast<int>(buckets_.size()); }

void GradientSum::begin(std::int64_t leaves) {
  touched_.assign(places_.size(), 0);
  for (Bucket& bucket : buckets_) {
    bucket.sum.begin(leaves);
  }
  begin_leaf();
}

void GradientSum::begin_leaf() {
  taken_.assign(places_.size(), 0);
  for (Bucket& bucket : buckets_) {
    bucket.missing = bucket.places;
  }
}

void GradientSum::take(std::size_t at, const Tensor& gradient) {
  const Place& place = places_[at];
  Bucket& bucket = buckets_[place.bucket];
  if (!bucket.leaf.defined()) {
    bucket.leaf = Tensor::empty({bucket.size});
  }
  float* to = bucket.leaf.data<float>() + place.offset;
  const std::int64_t n = place.parameter->value.numel();
  if (gradient.defined()) {
    copy(gradient.span<float>().data(), to, n);
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
  for (std::size_t at = 0; at < places_.size(); ++at) {
    if (taken_[at] == 0) {
      autograd::Slot& leaf = *places_[at].parameter->value.slot();
      take(at, leaf.grad);
      leaf.grad = Tensor();
    }
  }
  begin_leaf();
}

void GradientSum::finish(const std::vector<std::uint8_t>& touched, const std::string& when) {
  std::vector<Tensor> sums;
  sums.reserve(buckets_.size());
  for (Bucket& bucket : buckets_) {
    sums.push_back(bucket.sum.finish(when));
  }
  for (std::size_t at = 0; at < places_.size(); ++at) {
    const Place& place = places_[at];
    const Tensor& value = place.parameter->value;
    value.slot()->grad =
        touched[at] == 0 ? Tensor() : sums[place.bucket].narrow(0, place.offset, value.numel()).reshape(value.shape());
  }
}

StatisticsMean::StatisticsMean(const nn::ParameterStore& parameters, dist::Communicator& ranks, int first_tag)
    : averaged_(buffers_named(parameters, {"running_mean", "running_var"})),
      counts_(buffers_named(parameters, {"num_batches_tracked"})),
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
