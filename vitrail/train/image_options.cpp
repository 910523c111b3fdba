#include "vitrail/train/image_options.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "vitrail/data/auto_augment.h"
#include "vitrail/data/boxes/boxed_images.h"
#include "vitrail/data/pairs/captioned_images.h"
#include "vitrail/data/pairs/questions.h"
#include "vitrail/data/resize.h"
#include "vitrail/data/scenes/source.h"
#include "vitrail/io/suggest.h"
#include "vitrail/io/wording.h"
#include "vitrail/models/base/kwargs.h"
#include "vitrail/models/features.h"
#include "vitrail/tensor/error.h"

namespace vitrail::train {

namespace {

// --model-kwargs with what flags of their own say, and what these replace: "in img_size=32 beside --img-size 64"; ""
// for nothing.
struct MergedKwargs {
  std::string kwargs;
  std::string replaced;
};
MergedKwargs merged_kwargs(const ImageTaskOptions& options) {
  MergedKwargs merged{options.model_kwargs, ""};
  const auto set = [&](const char* key, const char* flag, const std::string& value) {
    const std::string other = models::set_kwarg(merged.kwargs, key, value);
    merged.replaced = other.empty() ? merged.replaced : fmt::format("in {} beside {} {}", other, flag, value);
  };
  if (options.img_size) {
    set("img_size", "--img-size", std::to_string(*options.img_size));
  }
  if (const auto& size = options.input_size; !size.empty()) {
    set("in_chans", "--input-size", std::to_string(size[0]));
    set("img_size", "--input-size", fmt::format("[{},{}]", size[1], size[2]));
  }
  if (options.in_chans) {
    set("in_chans", "--in-chans", std::to_string(*options.in_chans));
  }
  return merged;
}

}  // namespace

void add_data_options(OptionList& list, ImageTaskOptions& o) {
  list.group("data");
  list.add("data_dir", o.data_dir, "DIR",
           "Images: a folder, a .tar, CIFAR or MNIST files, a .csv, or scenes:count=8000 (vitrail scenes)")
      .argument("DATA")
      .also("--data")
      .path()
      .check_that([&o](const Option& self) {
        check(!o.data_dir.empty(), "{} is missing: the folder (or .tar, CIFAR, MNIST or .csv file) of the images",
              self.flag());
      });
  list.add("train_split", o.train_split, "NAME", "Part of --data-dir to train on");
  // The best model is chosen by its evaluation, or else by the training loss.
  const auto stays_judged = [](const OptionValue& before, const OptionValue& after) {
    return std::get<std::string>(before).empty() == std::get<std::string>(after).empty();
  };
  list.add("val_split", o.val_split, "NAME",
           "Part to evaluate on, of --data-dir, or of a --val-dir that has parts; empty: none")
      .idle_if("beside a --val-dir without parts",
               [&o] { return !o.val_dir.empty() && !o.val_split.empty() && part_of_val_dir(o).empty(); })
      .settled_unless(stays_judged);
  list.add("val_dir", o.val_dir, "DIR", "Images to evaluate on, where they lie elsewhere")
      .path()
      .settled_unless([&o, stays_judged](const OptionValue& before, const OptionValue& after) {
        return !o.val_split.empty() || stays_judged(before, after);
      });
  add_order_options(list, o);
  list.add("skip_broken", o.skip_broken, "", "Leave broken images out and count them");
}

void add_val_share_option(OptionList& list, ImageTaskOptions& o) {
  list.add("val_share", o.val_share, "SHARE",
           fmt::format("Share of the training images, of each class where they have any, to hold out and evaluate on "
                       "(default: {}, if --data-dir has no other part than that for training)",
                       usual_held_share))
      .positive()
      .below_one()
      .settled()
      .idle_if("beside --val-dir", [&o] { return !o.val_dir.empty(); });
  list.find("val_split")->idle_if("beside --val-share", [&o] {
    return o.val_share && o.val_dir.empty() && !o.val_split.empty() && o.val_split != usual_val_split;
  });
}

void add_order_options(OptionList& list, ImageTaskOptions& o) {
  list.add("no_shuffle", o.no_shuffle, "", "Train on the sorted files in order").settled();
  list.add("shuffle_block", o.shuffle_block, "N",
           fmt::format(
               "Shuffle blocks of N neighbours, and the images of {} blocks together, so that a slow disk is read "
               "in runs (0: all images at once)",
               data::blocks_together))
      .at_least(0)
      .settled()
      .idle_if("with --no-shuffle", [&o] { return o.no_shuffle; });
}

void add_model_options(OptionList& list, ImageTaskOptions& o) {
  list.add("img_size", o.img_size, "N", "Image size in pixels (default: the model's)").at_least(1).settled();
  list.add("input_size", o.input_size, "C H W", "Input as three numbers instead of --in-chans and --img-size")
      .at_least(1)
      .settled()
      .check_that([&o](const Option& self) {
        check(o.input_size.empty() || o.input_size.size() == 3,
              "{} takes three numbers, channels, height and width, not {}", self.flag(), o.input_size.size());
      });
  list.add("in_chans", o.in_chans, "N", "Colour channels: 3, or 1 for grayscale (default: the model's)")
      .at_least(1)
      .settled();
  list.add_arguments("model_kwargs", o.model_kwargs, "KEY=VALUE",
                     "Arguments of the model, as timm names them: img_size=32 patch_size=4 …")
      .settled()
      .idle_if([&o] { return merged_kwargs(o).replaced; });
}

void add_preparation_options(OptionList& list, data::ImageOverrides& o) {
  list.group("images");
  list.add("crop_pct", o.crop_pct, "N", "In evaluation, share of the resized image that is kept (default: the model's)")
      .positive()
      .at_most(1);
  list.add("crop_mode", o.crop_mode, "NAME", "In evaluation, center, squash or border (default: the model's)")
      .one_of({"center", "squash", "border"}, true);
  list.add("mean", o.mean, "MEAN", "Mean of each colour, from 0 to 1 (default: the model's)").share();
  list.add("std", o.std, "STD", "Standard deviation of each colour, up to 1 (default: the model's)")
      .positive()
      .at_most(1);
  list.add("interpolation", o.interpolation, "NAME",
           fmt::format("Resizing by {} (default: the model's)", fmt::join(data::interpolation_names(), ", ")))
      .one_of(data::interpolation_names(), true);
}

void add_augment_options(OptionList& list, data::AugmentOptions& o) {
  std::vector<std::string> train_interpolations = data::interpolation_names();
  train_interpolations.emplace_back("random");
  const std::vector<std::string> resizes = {"rrc", "rkrc", "rkrr"};
  const auto replaces_jitter = [&o]() -> std::string { return o.jitters() ? "" : "with --aa " + o.aa; };
  const auto erases = [&o] { return o.reprob > 0; };
  list.group("augmentation");
  list.add("no_aug", o.no_aug, "", "Train on the images as they are");
  list.add("train_crop_mode", o.train_crop_mode, "MODE",
           "Random crop: rrc resized, rkrc or rkrr keeping the ratio, src simple, pad padded and cropped back")
      .one_of({"rrc", "rkrc", "rkrr", "src", "pad"}, true);
  list.add("crop_padding", o.crop_padding, "N",
           "Pixels added on each side by --train-crop-mode pad (black) and src (mirrored)")
      .at_least(0)
      .only_with("--train-crop-mode", o.train_crop_mode, {"pad", "src"});
  list.add("scale", o.scale, "PCT", "Area of the random crop (default: 0.08 1)")
      .ascending()
      .at_most(1)
      .only_with("--train-crop-mode", o.train_crop_mode, resizes);
  list.add("ratio", o.ratio, "RATIO", "Aspect ratio of the random crop (default: 0.75 1.33)")
      .ascending()
      .only_with("--train-crop-mode", o.train_crop_mode, resizes);
  list.add("hflip", o.hflip, "P", "Probability of a horizontal flip").share();
  list.add("alternating_flip", o.alternating_flip, "",
           "Flip each image in every other epoch; --hflip is the share of those that are flipped in the first");
  list.add("vflip", o.vflip, "P", "Probability of a vertical flip").share();
  list.add("aa", o.aa, "POLICY",
           "Automatic augmentation instead of the jitter: rand-m9-mstd0.5-inc1, original, v0, 3a (with jitter), "
           "augmix …")
      .check_that([&o](const Option&) {
        if (!o.aa.empty()) {
          data::auto_augment_named(o.aa);
        }
      });
  list.add("color_jitter", o.color_jitter, "PCT", "Strength for brightness, contrast, saturation (and hue); 0: none")
      .at_least(0)
      .check_that([&o](const Option& self) {
        const std::size_t count = o.color_jitter.size();
        check(count != 2 && count <= 4,
              "{} takes one number, three (brightness, contrast, saturation) or four (and hue), not {}", self.flag(),
              count);
      })
      .idle_if([&o, replaces_jitter] { return o.color_jitter == std::vector{0.0} ? "" : replaces_jitter(); });
  list.add("color_jitter_prob", o.color_jitter_prob, "P", "Probability of colour jitter")
      .share()
      .idle_if("with --color-jitter 0", [&o] { return o.color_jitter == std::vector{0.0}; })
      .idle_if(replaces_jitter);
  list.add("grayscale_prob", o.grayscale_prob, "P", "Probability of making an image gray").share();
  list.add("train_interpolation", o.train_interpolation, "NAME",
           "Interpolation of the random crop: random, bilinear, bicubic …")
      .one_of(train_interpolations);
  list.add("reprob", o.reprob, "P", "Probability of random erasing").share();
  list.add("remode", o.remode, "MODE", "Filling of what is erased: const, rand or pixel")
      .one_of({"const", "rand", "pixel"})
      .needs("--reprob", erases);
  list.add("recount", o.recount, "N", "Boxes erased in an image, at most").at_least(1).needs("--reprob", erases);
  for (Option& option : list.all()) {
    if (option.group == "augmentation" && option.name != "no_aug") {
      option.idle_if("with --no-aug", [&o] { return o.no_aug; });
    }
  }
}

void add_fitting_options(OptionList& list, ImageTaskOptions& o, const std::string& units) {
  add_preparation_options(list, o.images);
  add_batch_options(list, o, units);
  add_optimizer_options(list, o);
  add_schedule_options(list, o, units);
  add_augment_options(list, o.augment);
}

void add_batch_augment_options(OptionList& list, ImageTaskOptions& o) {
  list.add("resplit", o.resplit, "", "Erase nothing in the first half of each batch")
      .needs("--reprob", [&o] { return o.augment.reprob > 0; })
      .idle_if("with --no-aug", [&o] { return o.augment.no_aug; });
  list.add("aug_repeats", o.aug_repeats, "N",
           "Repeated augmentation: each image N times in a row, and fewer images an epoch; 0: off")
      .check_that([&o](const Option& self) {
        check(o.aug_repeats == 0 || (o.aug_repeats >= 1 && o.aug_repeats <= 1e6),
              "{} must be 0 (off) or at least 1, but is {}", self.flag(), o.aug_repeats);
      });
}

void idle_without_images(OptionList& list, const ImageTaskOptions& o) {
  idle_without_evaluation(list, "images to evaluate on (--val-split, --val-dir)",
                          [&o] { return !o.val_split.empty() || !o.val_dir.empty() || o.val_share; });
}

void ImageTaskOptions::validate() const {
  TaskOptions::validate();
  check(input_size.empty() || (!img_size && !in_chans),
        "--input-size says what --img-size and --in-chans say: give one or the others");
}

models::CreateOptions create_options(const ImageTaskOptions& options) {
  models::CreateOptions create;
  create.model_kwargs = merged_kwargs(options).kwargs;
  create.seed = static_cast<std::uint64_t>(options.seed);
  return create;
}

data::LoaderOptions training_loading(const ImageTaskOptions& o) {
  data::LoaderOptions loading;
  loading.batch_size = o.batch_size;
  loading.shuffle = !o.no_shuffle;
  loading.shuffle_block = o.shuffle_block;
  loading.drop_last = true;
  loading.seed = static_cast<std::uint64_t>(o.seed);
  loading.workers = static_cast<int>(o.workers);
  loading.skip_broken = o.skip_broken;
  loading.aug_repeats = o.aug_repeats;
  loading.resplit = o.resplit;
  return loading;
}

std::optional<Drawn> draw_images(data::Loader& loader, data::Batch& batch) {
  if (!loader.next(batch)) {
    return std::nullopt;
  }
  return Drawn{batch.number, batch.x.size(0)};
}

std::string model_summary(const models::Model& model) {
  const auto [rows, columns] = models::pixels_left_out(model);
  return fmt::format(
      "{}, {:.2f} M parameters, {}x{} pixels{}", model.architecture,
      static_cast<double>(model.net->parameters.count()) * 1e-6, model.pretrained.width, model.pretrained.height,
      rows == 0 && columns == 0 ? ""
                                : fmt::format(" (its patches leave out the last {} and {})", io::counted(rows, "rows"),
                                              io::counted(columns, "columns")));
}

void with_other_ways(const ImageTaskOptions& options, const std::function<void()>& open) {
  try {
    open();
  } catch (const Error& error) {
    fail("{}; name another folder with --val-dir{}", error.what(),
         options.resume.empty() ? ", hold images out by --val-share, or train without evaluation by --val-split ''"
                                : "");  // a run goes on as it began
  }
}

void check_same_classes(const std::vector<std::string>& run, const std::vector<std::string>& data) {
  check(std::ranges::is_permutation(run, data), "the run is of {} ({}), but the data are of {} ({}): begin a new one",
        io::counted(std::ssize(run), "classes"), io::some_of(run), io::counted(std::ssize(data), "classes"),
        io::some_of(data));
}

std::string part_of_val_dir(const ImageTaskOptions& o, const data::Parts& parts) {
  const bool split =
      parts.size() == 1
          ? data::is_of_part(parts[0].name, o.val_split)
          : std::ranges::any_of(parts, [](const data::Part& part) { return data::is_part_name(part.name); });
  return split || o.val_split != usual_val_split ? o.val_split : "";
}

std::string part_of_val_dir(const ImageTaskOptions& o) {
  for (const auto& parts_of :
       {data::parts_of_images, data::parts_of_captioned_images, data::parts_of_boxes, data::parts_of_questions}) {
    if (std::string part = part_of_val_dir(o, parts_of(o.val_dir)); !part.empty()) {
      return part;
    }
  }
  return "";
}

std::vector<std::string> notes_of_parts(const ImageTaskOptions& o) {
  const std::string part = (std::filesystem::path(o.data_dir) / o.train_split).string();
  std::string judging = o.val_split == o.train_split ? o.data_dir : "";
  if (!o.val_dir.empty()) {
    const std::string of_it = part_of_val_dir(o);
    judging = of_it.empty() ? o.val_dir : (std::filesystem::path(o.val_dir) / of_it).string();
  }
  std::vector<std::string> note;
  note_same_data(note, "images", {o.data_dir}, {judging});
  if (note.empty()) {
    note_same_data(note, "images", {part}, {judging});
  }
  return note;
}

std::vector<std::string> data_summary(const ImageTaskOptions& options, const data::Dataset& training,
                                      const data::Dataset* validation, double held_out) {
  std::vector<std::string> lines = {
      fmt::format("{} training and {}", training.size(),
                  io::counted(validation == nullptr ? 0 : validation->size(), "validation images"))};
  if (training.size() < options.batch_size) {
    lines.push_back(fmt::format("each epoch is one batch of {}, fewer than --batch-size {} asks for",
                                io::counted(training.size(), "training images"), options.batch_size));
  }
  if (options.aug_repeats == 0) {
    note_unfilled(lines, "images", training.size(), options.batch_size);
  }
  if (held_out > 0) {
    if (validation == nullptr) {
      lines.push_back(
          fmt::format("'{}' has too few images for any to be held out: nothing is evaluated", options.data_dir));
    } else if (!options.val_share) {
      lines.push_back(
          fmt::format("'{}' has no part to evaluate on: a share of {} of the images is held out, drawn by "
                      "chance (--val-share)",
                      options.data_dir, held_out));
    }
    note_shared_images(lines, training, validation);
    validation = nullptr;  // which is of the same source
  }
  if (validation != nullptr) {
    const std::vector<std::string> same = notes_of_parts(options);
    std::ranges::copy(same, std::back_inserter(lines));
    if (same.empty()) {
      note_shared_images(lines, training, validation);
    }
  }
  std::ranges::copy(data::notes_of({&training, validation}), std::back_inserter(lines));
  return lines;
}

std::vector<std::pair<std::string, std::string>> image_facts(const models::Model& model, const data::Dataset& training,
                                                             const data::Dataset* validation) {
  return {{"architecture", model.architecture},
          {"model_args", model.model_args},
          {"flops", fmt::format("{}", model.net->flops(model.pretrained.height, model.pretrained.width))},
          {"training_images", fmt::format("{}", training.size())},
          {training_digest, data::digest_of_names(training)},
          {"validation_images", fmt::format("{}", validation == nullptr ? 0 : validation->size())},
          {"classes", fmt::format("{}", training.classes().size())}};
}

}  // namespace vitrail::train
