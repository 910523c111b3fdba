#include "vitrail/train/pretrain/view_task.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "vitrail/autograd/tape.h"
#include "vitrail/data/dataset_part.h"
#include "vitrail/io/file.h"
#include "vitrail/io/wording.h"
#include "vitrail/models/features.h"
#include "vitrail/models/quantize.h"
#include "vitrail/ops/math/arithmetic.h"
#include "vitrail/ops/shape/shape.h"
#include "vitrail/optim/schedule.h"
#include "vitrail/optim/state.h"
#include "vitrail/tensor/error.h"
#include "vitrail/train/pretrain/unlabeled_images.h"
#include "vitrail/train/run/run_folder.h"
#include "vitrail/train/run/updates.h"
#include "vitrail/train/study/knn.h"
#include "vitrail/train/study/spread.h"

namespace vitrail::train {
namespace {

namespace fs = std::filesystem;

constexpr const char* trained_file = "pretraining.safetensors";
constexpr std::int64_t most_sampled = 256;  // images that the figures of collapse are taken from

FigureKind knn_figure() {
  return {.name = "knn",
          .label = "k-NN",
          .unit = "%",
          .decimals = 2,
          .higher_is_better = true,
          .chart = "Accuracy of the nearest neighbours",
          .axis = "% of the images",
          .axis_max = 100};
}

bool has_batch_norm(const models::ImageModel& net) {
  return std::ranges::any_of(net.parameters.all(),
                             [](const nn::Parameter& one) { return one.name.ends_with("running_mean"); });
}

// The model's arguments that make it take images of any size, and resize its positions as DINO's code does.
std::string arguments_of_any_size(const ViewTaskOptions& options, const std::string& source,
                                  models::CreateOptions create) {
  check(models::let_take_any_size(source, create),
        "'{}' takes images of its own size alone, not small crops too: --local-crops-number 0 leaves them out",
        options.model);
  nlohmann::json arguments = nlohmann::json::parse(create.model_kwargs);
  create.fill = nn::Fill::meta;
  if (models::open_model(source, create).family->beyond_timm.find("pos_embed_resize") != std::string_view::npos) {
    arguments.emplace("pos_embed_resize", "dino");  // unless --model-kwargs has it
  }
  return arguments.dump();
}

// Whether a model has stochastic depth.
bool has_drop_path(const std::string& source, models::CreateOptions create) {
  create.fill = nn::Fill::meta;
  models::open_model(source, create);  // what else does not fit is said as always
  create.drop_path_rate = 0;
  try {
    models::open_model(source, create);
  } catch (const Error&) {
    return false;
  }
  return true;
}

// How many epochs a file of ready-made views is for.
std::int64_t epochs_of_views(const std::string& file) {
  const Shape shape = io::Safetensors::open(file).shape("view0");
  return shape.rank() == 5 ? shape[0] : 1;
}

std::unique_ptr<data::Dataset> open_labelled(const std::string& source, const std::string& split, bool skip_broken,
                                             const std::vector<std::string>& classes = {}) {
  data::DatasetOptions part;
  part.skip_broken = skip_broken;
  part.split = split;
  part.classes = classes;
  return data::open_dataset(source, part);
}

}  // namespace

ViewTaskOptions::ViewTaskOptions() {
  val_split = "";
  lr_base_scale = "linear";
  schedule.warmup_lr = 0;
  schedule.sched = "warmup_cosine";
}

void ViewTaskOptions::validate() const {
  ImageTaskOptions::validate();
  check(data_dir.empty() != views.empty(), "{}",
        data_dir.empty() ? "DATA is missing: the images to learn from, or --views with a "
                           "file of ready-made views"
                         : "--views are made already: DATA has no place beside them");
  check(batch_size >= 2, "--batch-size {} is too small: images are compared with the others of their batch",
        batch_size);
}

void add_view_options(OptionList& list, ViewTaskOptions& o) {
  list.group("data");
  list.add("data_dir", o.data_dir, "DIR", "Images: a folder, a .tar, CIFAR or MNIST files, or a .csv")
      .argument("DATA")
      .also("--data")
      .path();
  list.add("train_split", o.train_split, "NAME", "Part of --data-dir to learn from");
  add_order_options(list, o);
  list.find("shuffle_block")->idle_if("with --views", [&o] { return !o.views.empty(); });
  list.add("skip_broken", o.skip_broken, "", "Leave broken images out and count them");
  list.add("views", o.views, "FILE",
           "Ready-made views in order, instead of DATA: view0, view1 … [N, C, H, W] in a .safetensors")
      .path();
  list.group("model");
  list.add("model", o.model, "MODEL", "Name of the encoder (see: vitrail models), or a model folder").path().settled();
  add_model_options(list, o);
  list.add("drop_path", o.drop_path, "P", "Stochastic depth of the last block (default: the method's)").below_one();
  add_parameter_options(list, o);
  add_preparation_options(list, o.images);
  add_batch_options(list, o, "images");
  add_optimizer_options(list, o);
  add_schedule_options(list, o, "images");
}

void add_view_run_options(OptionList& list, ViewTaskOptions& o, std::vector<std::string> figures) {
  list.group("nearest neighbours");
  list.add("knn_data", o.knn_data, "DIR",
           "Labelled images: after each epoch, the classes of a part of them are told by the nearest of the others")
      .path()
      .settled_unless([](const OptionValue& before, const OptionValue& after) {  // by it the best model is chosen
        return std::get<std::string>(before).empty() == std::get<std::string>(after).empty();
      });
  const auto has_data = [&o] { return !o.knn_data.empty(); };
  list.add("knn_split", o.knn_split, "NAME", "Part of --knn-data whose classes are told; the part train has the others")
      .needs("--knn-data", has_data)
      .settled();
  list.add("knn_k", o.knn_k, "K", "Neighbours").at_least(1).needs("--knn-data", has_data).settled();
  figures.insert(figures.begin(), "knn");
  add_run_options(list, o, figures);
}

data::Transform view_transform(const data::ImageConfig& images, const ViewRecipe& recipe) {
  data::ImageConfig config = images;
  if (recipe.size > 0) {
    config.height = config.width = recipe.size;
  }
  data::AugmentOptions augment;
  augment.scale = recipe.scale;
  augment.color_jitter = recipe.color_jitter;
  augment.color_jitter_prob = 0.8;
  augment.grayscale_prob = 0.2;
  augment.train_interpolation = recipe.interpolation;
  augment.blur_prob = std::min(images.height, images.width) > 32 ? recipe.blur_prob : 0;
  augment.solarize_prob = recipe.solarize_prob;
  return data::train_transform(config, augment);
}

models::Model open_encoder(const ViewTaskOptions& options, const fs::path& checkpoint, std::optional<double> drop_path,
                           bool any_size) {
  models::CreateOptions create = create_options(options);
  create.num_classes = 0;
  const std::string source = checkpoint.empty() ? model_of(options.model).string() : checkpoint.string();
  const bool own = options.drop_path.has_value() && *options.drop_path > 0;  // and not the method's
  if (drop_path && (own || has_drop_path(source, create))) {
    create.drop_path_rate = drop_path;
  }
  if (any_size) {
    create.model_kwargs = arguments_of_any_size(options, source, create);
  }
  models::Model model = models::open_model(source, create);
  models::check_takes_images(model);
  models::check_trainable(*model.net, options.model);
  data::apply(options.images, model.pretrained);
  return model;
}

std::pair<Tensor, Tensor> encode_two(const EncoderNetwork& network, const data::ViewBatch& batch, nn::Pass& pass) {
  if (has_batch_norm(*network.encoder.net)) {
    const Tensor first = network.encode(batch.view(0), pass);
    return {first, network.encode(batch.view(1), pass)};
  }
  const Tensor both = network.encode(batch.all_views(0), pass);
  const std::int64_t images = batch.images();
  return {ops::narrow(both, 0, 0, images), ops::narrow(both, 0, images, images)};
}

io::NamedTensors momentum_state(const nn::Network& network) {
  io::NamedTensors state;
  for (const nn::Parameter& parameter : network.parameters.all()) {
    state.emplace_back("momentum." + parameter.name, parameter.value.detach());
  }
  return state;
}

void copy_parameters(const nn::Network& from, const nn::Network& to) {
  for (const nn::Parameter& parameter : to.parameters.all()) {
    if (const nn::Parameter* source = from.parameters.find(parameter.name)) {
      parameter.value.copy_from(source->value.detach());
      parameter.value.touch();
    }
  }
}

ViewTask::ViewTask(const ViewTaskOptions& options)
    : owned_(options.clone()), options_(dynamic_cast<const ViewTaskOptions&>(*owned_)) {
  if (options_.views.empty()) {
    training_ = open_without_labels(options_, options_.data_dir, options_.train_split);
    check(training_->size() >= options_.batch_size, "a batch of {} is more than the {}: choose a smaller --batch-size",
          options_.batch_size, io::counted(training_->size(), "training images"));
  }
  if (!options_.knn_data.empty()) {
    knn_training_ = open_labelled(options_.knn_data, "train", options_.skip_broken);
    knn_data_ = open_labelled(options_.knn_data, options_.knn_split, options_.skip_broken, knn_training_->classes());
    check(options_.knn_k <= knn_training_->size(), "--knn-k {} neighbours are asked for among {}", options_.knn_k,
          io::counted(knn_training_->size(), "training images"));
  }
}

void ViewTask::open_views(std::vector<data::Transform> transforms) {
  data::LoaderOptions loading = training_loading(options_);
  data::LoaderOptions looking = loading;
  looking.shuffle = looking.drop_last = false;
  looking.seed = mix(looking.seed, hash("sample"));
  looking.workers = 0;
  if (training_ == nullptr) {
    std::vector<Shape> shapes;
    shapes.reserve(transforms.size());
    for (const data::Transform& transform : transforms) {
      shapes.push_back(transform.shape());
    }
    loader_ = data::ready_views(options_.views, shapes, loading);
    sample_loader_ = data::ready_views(options_.views, shapes, looking);
    sampled_ = std::min(most_sampled, sample_loader_->batches_per_epoch() * options_.batch_size);
    return;
  }
  std::vector<data::Transform> looked_at(transforms.begin(),
                                         transforms.begin() + std::min<std::ptrdiff_t>(2, std::ssize(transforms)));
  looked_at.push_back(data::eval_transform(kept().pretrained));
  loader_ = data::view_loader(*training_, std::move(transforms), loading);
  sample_ = std::make_unique<data::DatasetPart>(*training_, data::spread_images(*training_, most_sampled));
  sample_loader_ = data::view_loader(*sample_, std::move(looked_at), looking);
  sampled_ = sample_->size();
}

std::int64_t ViewTask::updates_per_epoch() const {
  return updates_of_epoch(loader_->batches_per_epoch(), options_.grad_accum_steps);
}

std::int64_t ViewTask::total_updates() const {
  const std::int64_t updates = updates_per_epoch();
  return optim::Schedule(schedule_of(options_, updates)).epochs() * updates;
}

std::optional<Drawn> ViewTask::next() {
  if (!loader_->next(batch_)) {
    return std::nullopt;
  }
  return Drawn{batch_.number, batch_.images()};
}

std::vector<FigureKind> ViewTask::figures() const {
  std::vector<FigureKind> kinds;
  if (knn_data_ != nullptr) {
    kinds.push_back(knn_figure());
  }
  std::ranges::move(spread_kinds(), std::back_inserter(kinds));
  for (FigureKind& kind : further_figures()) {
    kinds.push_back(std::move(kind));
  }
  return kinds;
}

Figures ViewTask::evaluate(const Work& work) {
  const autograd::NoGrad no_grad;
  nn::Pass pass;
  pass.dtype = work.dtype;
  work.begin("looking at the embedding", sampled_);
  begin_looking();
  std::vector<Tensor> embeddings;
  std::int64_t seen = 0;
  sample_loader_->start_epoch(0);
  for (data::ViewBatch batch; seen < sampled_ && sample_loader_->next(batch);) {
    const Tensor x = batch.view(training_ == nullptr ? 0 : batch.views() - 1);
    embeddings.push_back(ops::cast(kept().net->forward(x, pass), DType::f32).contiguous());
    look(batch.view(0), batch.view(1), pass);
    seen += batch.images();
    work.advance(seen);
  }
  check(seen >= 2, "none of the images can be read");
  Figures figures = spread_figures(embedding_spread(ops::concat(embeddings, 0)));
  end_looking(figures);
  if (knn_data_ != nullptr) {
    const EvaluateOptions options = evaluation_options(options_, work);
    work.begin("features of neighbours", knn_training_->size());
    const Features training = embed(kept(), *knn_training_, options);
    work.begin("features to classify", knn_data_->size());
    const Features test = embed(kept(), *knn_data_, options);
    std::vector<std::string> broken = training.broken;
    broken.insert(broken.end(), test.broken.begin(), test.broken.end());
    work.say_left_out(broken);
    const KnnOptions neighbours{.k = {std::min(options_.knn_k, training.x.size(0))}};
    figures.insert(figures.begin(), {"knn", knn(training, test, neighbours).front().top1});
  }
  if (const std::string words = collapse(figures); !words.empty()) {
    work.say(words);
  }
  return figures;
}

std::string ViewTask::collapse(const Figures& figures) const {
  return collapse_of_spread({figure(figures, "deviation"), figure(figures, "effective_rank")},
                            kept().net->num_features(), " or a higher temperature");
}

void ViewTask::load_state(const io::NamedTensors& state) {
  const io::NamedTensors own = this->state();
  optim::copy_state(options_.kind().c_str(), state, own);
  for (const auto& [name, tensor] : own) {
    tensor.touch();
  }
}

void ViewTask::save(const fs::path& folder) const {
  const bool whole = &kept() != &trained().encoder;
  io::NamedTensors others;  // what the encoder's own file does not have
  for (const nn::Parameter& parameter : trained().parameters.all()) {
    if (whole || trained().is_head(parameter.name)) {
      others.emplace_back(parameter.name, parameter.value.detach());
    }
  }
  io::replace_folder(folder, [&](const fs::path& temporary) {
    models::save_model(kept(), temporary);
    io::save_safetensors(temporary / trained_file, others);
  });
}

void ViewTask::load_trained(const fs::path& checkpoint) const {
  const io::Safetensors file = io::Safetensors::open(checkpoint / trained_file);
  io::NamedTensors values;
  io::NamedTensors places;
  for (const std::string& name : file.names()) {
    values.emplace_back(name, file.get(name));
    places.emplace_back(name, trained().parameters.at(name).value.detach());
  }
  optim::copy_state(file.source().c_str(), values, places);
  for (const auto& [name, tensor] : places) {
    tensor.touch();
  }
}

std::string ViewTask::name() const {
  return fmt::format("{}-{}-{}", options_.kind(), kept().architecture, kept().pretrained.height);
}

std::vector<std::string> ViewTask::summary() const {
  std::vector<std::string> lines = {fmt::format("{}, {:.2f} M parameters with their heads", model_summary(kept()),
                                                static_cast<double>(trained().parameters.count()) * 1e-6)};
  if (training_ != nullptr) {
    const std::vector<std::string> data = data_summary(options_, *training_, nullptr);
    lines.insert(lines.end(), data.begin(), data.end());
  } else if (const std::int64_t ready = epochs_of_views(options_.views); ready > 1 && ready < options_.epochs) {
    lines.push_back(fmt::format("'{}' has views for {}, which come again after them", options_.views,
                                io::counted(ready, "epochs")));
  }
  if (knn_data_ != nullptr) {
    lines.push_back(fmt::format("after each epoch, the classes of {} are told by the {} nearest of {}",
                                io::counted(knn_data_->size(), "images"), options_.knn_k, knn_training_->size()));
    note_same_data(lines, "images", {"train"}, {options_.knn_split});
  }
  return lines;
}

std::vector<std::pair<std::string, std::string>> ViewTask::facts() const {
  const models::Model& model = kept();
  return {{"architecture", model.architecture},
          {"model_args", model.model_args},
          {"flops", fmt::format("{}", model.net->flops(model.pretrained.height, model.pretrained.width))},
          {"training_images", fmt::format("{}", training_ == nullptr ? 0 : training_->size())},
          {training_digest, training_ == nullptr ? "" : data::digest_of_names(*training_)}};
}

}  // namespace vitrail::train
