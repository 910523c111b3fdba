#include "vitrail/train/setup.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "vitrail/models/folder.h"
#include "vitrail/models/quantize.h"
#include "vitrail/train/evaluate.h"
#include "vitrail/train/loss.h"
#include "vitrail/train/parameter_names.h"
#include "vitrail/train/pretrain.h"

namespace vitrail::train {
namespace {

namespace fs = std::filesystem;

std::unique_ptr<data::Dataset> open_part(const std::string& source, const std::string& split,
                                         std::vector<std::string> classes) {
  data::DatasetOptions options;
  options.split = split;
  options.classes = std::move(classes);
  options.allow_single_class = !options.classes.empty();
  return data::open_dataset(source, options);
}

void open_data(const TrainOptions& options, Setup& setup) {
  setup.training = open_part(options.data_dir, options.train_split, {});
  check(setup.training->size() >= options.batch_size,
        "--batch-size {} is more than the {} training pictures of '{}': choose at most {}", options.batch_size,
        setup.training->size(), options.data_dir, setup.training->size());
  if (!options.val_dir.empty()) {
    setup.validation = open_part(options.val_dir, "", setup.training->classes());
  } else if (!options.val_split.empty()) {
    try {
      setup.validation = open_part(options.data_dir, options.val_split, setup.training->classes());
    } catch (const Error& error) {
      fail("{}; name another folder with --val-dir, or train without evaluation by --val-split ''", error.what());
    }
  }
}

// The same with a classifier for the data's classes, where no other number is asked for.
models::CreateOptions classifier_options(const TrainOptions& options, std::int64_t data_classes) {
  models::CreateOptions create = create_options(options);
  if (!nlohmann::json::parse(create.model_kwargs).contains("num_classes")) {
    create.num_classes = options.num_classes.value_or(data_classes);
  }
  return create;
}

// --initial-checkpoint: every weight of the model, by name, from a model folder or a .safetensors file.
void load_initial(const models::Model& model, const fs::path& path) {
  try {
    const auto file = fs::is_directory(path) ? models::open_weights(path) : io::Safetensors::open(path);
    models::load_weights(*model.net, file, {}, {model.pretrained.height, model.pretrained.width});
  } catch (const Error& error) {
    fail("--initial-checkpoint: {}", error.what());
  }
}

models::Model make_model(const TrainOptions& options, const fs::path& checkpoint, std::int64_t data_classes) {
  const models::CreateOptions create = classifier_options(options, data_classes);
  if (!checkpoint.empty()) {
    // The checkpoint's own config has all arguments but the rates of dropping out and a fixed pos_embed.
    models::CreateOptions saved;
    saved.model_kwargs = create.model_kwargs;
    saved.drop_rate = create.drop_rate;
    saved.drop_path_rate = create.drop_path_rate;
    return models::load_model(checkpoint, saved);
  }
  const std::string& name = options.pretrained_path.empty() ? options.model : options.pretrained_path;
  models::Model model =
      options.pretrained_path.empty() ? models::open_model(name, create) : models::load_model(name, create);
  check(options.pretrained_path.empty() || options.model == TrainOptions().model || options.model == model.architecture,
        "--model {} is not what --pretrained-path {} holds: that is a {}", options.model, name, model.architecture);
  models::check_takes_pictures(model);
  if (!options.initial_checkpoint.empty()) {
    load_initial(model, options.initial_checkpoint);
  }
  return model;
}

void freeze(const TrainOptions& options, const models::ImageModel& net, nn::ParameterStore& parameters) {
  const std::set<std::string> chosen = parameters_named(net, options.freeze, "--freeze");
  bool any = false;
  for (const nn::Parameter& parameter : parameters.all()) {
    const bool frozen = (options.linear_probe && !net.is_classifier(parameter.name)) || chosen.contains(parameter.name);
    if (frozen && !parameter.buffer) {
      parameters.set_trainable(parameter.name, false);
    }
    any = any || (!frozen && !parameter.buffer);
  }
  check(any, "--freeze {} leaves nothing to train", fmt::join(options.freeze, " "));
}

// The teacher, and the pictures that only it says something about.
void open_teacher(const TrainOptions& options, Setup& setup) {
  const Distillation distillation = distillation_options(options);
  if (distillation.type == Distillation::Type::none) {
    return;
  }
  setup.teacher = std::make_unique<const Teacher>(options.kd_model_name, setup.model, setup.dtype);
  const models::Model& teacher = setup.teacher->model();
  setup.messages.push_back(fmt::format("the teacher is a {}, {:.2f} M parameters, {}x{} pixels: {} distillation",
                                       teacher.architecture,
                                       static_cast<double>(teacher.net->parameters.count()) * 1e-6,
                                       teacher.pretrained.width, teacher.pretrained.height, options.distillation_type));
  if (!options.unlabeled_dir.empty()) {
    auto more = data::open_unlabeled(options.unlabeled_dir);
    setup.messages.push_back(fmt::format("{} of the training pictures have no labels", more->size()));
    setup.training = data::with_unlabeled(std::move(setup.training), std::move(more));
  }
}

}  // namespace

models::CreateOptions create_options(const TrainOptions& options) {
  nlohmann::json kwargs = nlohmann::json::parse(options.model_kwargs);
  if (options.img_size) {
    kwargs["img_size"] = *options.img_size;
  }
  if (!options.input_size.empty()) {
    kwargs["in_chans"] = options.input_size[0];
    kwargs["img_size"] = {options.input_size[1], options.input_size[2]};
  }
  if (options.in_chans) {
    kwargs["in_chans"] = *options.in_chans;
  }
  if (!options.gp.empty()) {
    kwargs["global_pool"] = options.gp;
  }
  models::CreateOptions create;
  create.model_kwargs = kwargs.dump();
  create.drop_rate = options.drop;
  create.drop_path_rate = options.drop_path;
  create.seed = static_cast<std::uint64_t>(options.seed);
  return create;
}

void finish_setup(const TrainOptions& options, Setup& setup) {
  data::apply({options.crop_pct, options.crop_mode, options.interpolation, options.mean, options.std},
              setup.model.pretrained);
  freeze(options, *setup.model.net, setup.model.net->parameters);
  std::string message;
  const bool lower = options.amp && (options.amp_dtype == "bfloat16" || options.amp_dtype == "bf16");
  setup.dtype = usable_dtype(lower ? DType::bf16 : DType::f32, &message);
  if (!message.empty()) {
    setup.messages.push_back(message);
  }
}

Setup set_up(const TrainOptions& options, const fs::path& checkpoint) {
  if (!options.pretrain.empty()) {
    return set_up_pretraining(options, checkpoint);
  }
  Setup setup;
  open_data(options, setup);
  const auto data_classes = static_cast<std::int64_t>(setup.training->classes().size());
  setup.model = make_model(options, checkpoint, data_classes);
  // Labels keep the order that a fine-tuned model knows, where it is for the same classes.
  const std::vector<std::string> known = setup.model.pretrained.label_names;
  if (known != setup.training->classes() && std::ranges::is_permutation(known, setup.training->classes())) {
    setup.training = open_part(options.data_dir, options.train_split, known);
    if (setup.validation != nullptr) {
      setup.validation = open_part(options.val_dir.empty() ? options.data_dir : options.val_dir,
                                   options.val_dir.empty() ? options.val_split : "", known);
    }
  }
  check(!models::is_quantized(*setup.model.net),
        "the weights of '{}' are in int8 and cannot be trained: train the model that they were quantized from",
        options.pretrained_path.empty() ? options.model : options.pretrained_path);
  const std::int64_t num_classes = setup.model.net->num_classes();
  check(num_classes >= data_classes, "the pictures are of {} classes, but --num-classes is {}", data_classes,
        num_classes);
  setup.model.pretrained.label_names = setup.training->classes();
  for (std::int64_t i = data_classes; i < num_classes; ++i) {
    setup.model.pretrained.label_names.push_back(fmt::format("unused {}", i));
  }
  finish_setup(options, setup);
  open_teacher(options, setup);
  return setup;
}

data::AugmentOptions augment_options(const TrainOptions& o) {
  data::AugmentOptions augment;
  augment.no_aug = o.no_aug;
  augment.train_crop_mode = o.train_crop_mode;
  augment.crop_padding = o.crop_padding;
  augment.scale = o.scale.empty() ? augment.scale : std::pair(o.scale[0], o.scale[1]);
  augment.ratio = o.ratio.empty() ? augment.ratio : std::pair(o.ratio[0], o.ratio[1]);
  augment.hflip = o.hflip;
  augment.vflip = o.vflip;
  augment.aa = o.aa;
  augment.color_jitter = o.color_jitter;
  augment.color_jitter_prob = o.color_jitter_prob;
  augment.grayscale_prob = o.grayscale_prob;
  augment.train_interpolation = o.train_interpolation;
  augment.reprob = o.reprob;
  augment.remode = o.remode;
  augment.recount = o.recount;
  return augment;
}

data::Transform training_transform(const TrainOptions& o, const Setup& setup) {
  return data::train_transform(setup.model.pretrained, augment_options(o));
}

data::LoaderOptions training_loading(const TrainOptions& o, const Setup& setup) {
  data::LoaderOptions loading;
  loading.batch_size = o.batch_size;
  loading.shuffle = !o.no_shuffle;
  loading.drop_last = true;
  loading.seed = static_cast<std::uint64_t>(o.seed);
  loading.workers = static_cast<int>(o.workers);
  loading.skip_broken = o.skip_broken;
  loading.aug_repeats = o.aug_repeats;
  loading.resplit = o.resplit;
  loading.mix.mixup = o.mixup;
  loading.mix.cutmix = o.cutmix;
  if (!o.cutmix_minmax.empty()) {
    loading.mix.cutmix_minmax = std::pair(o.cutmix_minmax[0], o.cutmix_minmax[1]);
  }
  loading.mix.mixup_prob = o.mixup_prob;
  loading.mix.mixup_switch_prob = o.mixup_switch_prob;
  loading.mix.mode = data::mix_mode_named(o.mixup_mode);
  loading.mix.mixup_off_epoch = o.mixup_off_epoch;
  loading.num_classes = setup.model.net->num_classes();
  loading.label_smoothing = o.smoothing;
  return loading;
}

std::unique_ptr<data::Loader> training_loader(const TrainOptions& options, const Setup& setup) {
  auto loader = std::make_unique<data::Loader>(*setup.training, training_transform(options, setup),
                                               training_loading(options, setup));
  check(loader->batches_per_epoch() > 0,
        "--batch-size {} is more than an epoch has with --aug-repeats, a multiple of 256 of the {} pictures",
        options.batch_size, setup.training->size());
  return loader;
}

}  // namespace vitrail::train
