#include "vitrail/data/pairs/question_batches.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "vitrail/data/image_cache.h"
#include "vitrail/tensor/random.h"

namespace vitrail::data {
namespace {

class QuestionSamples final : public Samples<QuestionBatch> {
 public:
  QuestionSamples(const Dataset& images, const QuestionTokens& tokens, Transform transform,
                  const QuestionLoading& options)
      : images_(images),
        tokens_(tokens),
        transform_(std::move(transform)),
        seed_(options.images.seed),
        per_image_(options.per_image),
        cache_(std::make_shared<ImageCache>(images, options.images.cache)) {}

  std::string name(std::int64_t index) const override { return images_.name(index); }
  QuestionBatch begin(const BatchPlan& plan) const override {
    QuestionBatch batch;
    batch.x = Tensor::empty(transform_.shape().inserted(0, std::ssize(plan.picks)));
    batch.sizes.resize(plan.picks.size());
    batch.epoch = plan.epoch;
    batch.number = plan.number;
    return batch;
  }
  void fill(QuestionBatch& batch, const BatchPlan& plan, std::int64_t i) const override {
    const std::int64_t index = plan.picks[static_cast<std::size_t>(i)].index;
    float* out = batch.x.data<float>() + i * transform_.shape().numel();
    cache_->with(index, [&](const io::Image& image) {
      transform_.apply(image, seed_, plan.epoch, index, out);
      batch.sizes[static_cast<std::size_t>(i)] = {image.width, image.height};
    });
  }
  void finish(QuestionBatch& batch, const BatchPlan& plan, std::span<const std::int64_t> whole) const override {
    const std::int64_t floats = transform_.shape().numel();
    std::vector<std::vector<std::int64_t>> questions;
    std::vector<std::int64_t> rows;
    for (std::size_t kept = 0; kept < whole.size(); ++kept) {
      const auto row = static_cast<std::int64_t>(kept);
      if (whole[kept] != row) {
        float* x = batch.x.data<float>();
        std::copy_n(x + whole[kept] * floats, floats, x + row * floats);
        batch.sizes[kept] = batch.sizes[static_cast<std::size_t>(whole[kept])];
      }
      const std::int64_t index = plan.picks[static_cast<std::size_t>(whole[kept])].index;
      batch.indices.push_back(index);
      for (const std::int64_t place : chosen(index, plan.epoch)) {
        questions.push_back(tokens_[static_cast<std::size_t>(index)][static_cast<std::size_t>(place)]);
        rows.push_back(row);
        batch.places.push_back(place);
      }
    }
    batch.x = batch.x.narrow(0, 0, std::ssize(whole));
    batch.sizes.resize(whole.size());
    batch.rows = Tensor::from(rows, {std::ssize(rows)});
    put_side_by_side(questions, batch);
  }

 private:
  // The questions of an image that are asked in an epoch.
  std::vector<std::int64_t> chosen(std::int64_t index, std::int64_t epoch) const {
    std::vector<std::int64_t> places(tokens_[static_cast<std::size_t>(index)].size());
    std::iota(places.begin(), places.end(), 0);
    if (per_image_ > 0 && std::ssize(places) > per_image_) {
      Draws draws(Philox(mix(mix(seed_, hash("questions")), static_cast<std::uint64_t>(epoch)),
                         static_cast<std::uint64_t>(index)));
      for (std::int64_t i = 0; i < per_image_; ++i) {  // the first steps of Fisher and Yates' shuffle
        std::swap(places[static_cast<std::size_t>(i)],
                  places[static_cast<std::size_t>(draws.integer(i, std::ssize(places)))]);
      }
      places.resize(static_cast<std::size_t>(per_image_));
      std::ranges::sort(places);
    }
    return places;
  }

  const Dataset& images_;
  const QuestionTokens& tokens_;
  const Transform transform_;
  const std::uint64_t seed_;
  const std::int64_t per_image_;
  std::shared_ptr<ImageCache> cache_;
};

}  // namespace

void put_side_by_side(const std::vector<std::vector<std::int64_t>>& questions, QuestionBatch& batch) {
  std::size_t longest = 1;
  std::vector<std::int64_t> lengths;
  lengths.reserve(questions.size());
  for (const std::vector<std::int64_t>& question : questions) {
    longest = std::max(longest, question.size());
    lengths.push_back(std::ssize(question));
  }
  batch.ids = Tensor::zeros({std::ssize(questions), static_cast<std::int64_t>(longest)}, DType::i64);
  std::int64_t* ids = batch.ids.data<std::int64_t>();
  for (const std::vector<std::int64_t>& question : questions) {
    std::ranges::copy(question, ids);
    ids += longest;
  }
  batch.lengths = Tensor::from(lengths, {std::ssize(lengths)});
}

std::unique_ptr<QuestionLoader> question_loader(const Dataset& images, const QuestionTokens& tokens,
                                                const Transform& transform, const QuestionLoading& options) {
  return std::make_unique<QuestionLoader>(std::make_shared<QuestionSamples>(images, tokens, transform, options),
                                          plan_batches(plan_options(images.size(), options.images)),
                                          prefetch_images(images, transform.shape().numel(), options.images));
}

}  // namespace vitrail::data
