#include "vitrail/train/pretrain/unlabeled_images.h"

#include <algorithm>
#include <string>

#include "vitrail/autograd/tape.h"
#include "vitrail/data/beside.h"
#include "vitrail/data/boxes/boxed_images.h"
#include "vitrail/tensor/error.h"
#include "vitrail/train/study/share_batches.h"

namespace vitrail::train {

namespace {

// Whether images are split by nothing but the files of their boxes, such as VOC's lists.
bool is_split_by_boxes(const std::string& source) {
  return !data::has_parts(source) && std::ranges::any_of(data::parts_of_boxes(source), [](const data::Part& part) {
    return data::is_part_name(part.name);
  });
}

data::Parts parts_without_labels(const std::string& source) {
  return is_split_by_boxes(source) ? data::parts_of_boxes(source) : data::parts_of_images(source);
}

}  // namespace

std::shared_ptr<const data::Dataset> open_without_labels(const ImageTaskOptions& how, const std::string& source,
                                                         const std::string& split) {
  if (is_split_by_boxes(source)) {
    return data::open_boxed_images(source, {.split = split, .skip_broken = how.skip_broken}).images;
  }
  data::DatasetOptions options;
  options.split = split;
  options.labeled = false;
  options.skip_broken = how.skip_broken;
  return data::open_dataset(source, options);
}

UnlabeledImages::UnlabeledImages(const ImageTaskOptions& options) {
  data::check_beside_images(options.output, options.data_dir);
  training = open_without_labels(options, options.data_dir, options.train_split);
  if (!options.val_dir.empty()) {
    validation =
        open_without_labels(options, options.val_dir, part_of_val_dir(options, parts_without_labels(options.val_dir)));
  } else if (!options.val_split.empty()) {
    validation = open_without_labels(options, options.data_dir, options.val_split);
  }
}

std::vector<Tensor> inputs_to_draw(const data::Dataset& dataset, const data::Transform& transform, std::int64_t count,
                                   bool skip_broken) {
  std::vector<Tensor> inputs;
  data::for_spread_images(dataset, count, skip_broken, [&](std::int64_t /*index*/, const io::Image& image) {
    inputs.push_back(transform(image).unsqueeze(0));
  });
  return inputs;
}

double mean_loss(const UnlabeledImages& images, const data::Transform& transform, const ImageTaskOptions& options,
                 const Work& work, const std::function<Tensor(const data::Batch& batch, nn::Pass& pass)>& loss) {
  work.begin("evaluating", images.validation->size());
  data::LoaderOptions loading;
  loading.batch_size = options.validation_batch_size.value_or(options.batch_size);
  loading.workers = static_cast<int>(options.workers);
  loading.skip_broken = options.skip_broken;
  data::Loader loader(*images.validation, transform, loading);
  const autograd::NoGrad no_grad;
  const BatchSharing sharing = {work.ranks, [&](std::int64_t done, std::int64_t) { work.advance(done); },
                                images.validation->size()};
  const LossMean found = share_losses<data::Batch>(loader, sharing, [&](const data::Batch& batch) {
    nn::Pass pass;
    pass.dtype = work.dtype;
    return std::pair(static_cast<double>(loss(batch, pass).item()), batch.x.size(0));
  });
  loader.check_any(found.items, "evaluate");
  work.say_left_out(found.broken);
  return found.mean();
}

}  // namespace vitrail::train
