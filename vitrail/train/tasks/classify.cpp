#include "vitrail/train/tasks/classify.h"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "vitrail/data/beside.h"
#include "vitrail/data/dataset_part.h"
#include "vitrail/io/file.h"
#include "vitrail/io/suggest.h"
#include "vitrail/io/tensor_files.h"
#include "vitrail/io/wording.h"
#include "vitrail/models/base/registry.h"
#include "vitrail/models/convnet/airbench.h"
#include "vitrail/models/features.h"
#include "vitrail/models/folder.h"
#include "vitrail/models/formats/weights.h"
#include "vitrail/models/quantize.h"
#include "vitrail/tensor/error.h"
#include "vitrail/train/run/held_out.h"
#include "vitrail/train/run/run_folder.h"
#include "vitrail/train/sources/data_kinds.h"
#include "vitrail/train/study/embedding_file.h"
#include "vitrail/train/study/evaluate.h"
#include "vitrail/train/tasks/probe.h"
#include "vitrail/train/tasks/teacher.h"

namespace vitrail::train {
namespace {

namespace fs = std::filesystem;

std::unique_ptr<data::Dataset> open_part(const ClassifyOptions& how, const std::string& source,
                                         const std::string& split, std::vector<std::string> classes) {
  data::DatasetOptions options;
  options.split = split;
  options.skip_broken = how.skip_broken;
  options.classes = std::move(classes);
  options.allow_single_class = !options.classes.empty();
  return data::open_dataset(source, options);
}

// The name of a class that the model has and the data have not, before its number.
constexpr std::string_view unused_class = "unused ";

// Loads --initial-checkpoint: every weight of the model, by name, from a model folder or a file of weights. Those of an
// encoder leave the classifier new.
void load_initial(const models::Model& model, const fs::path& path) {
  try {
    const io::StoredTensors file = fs::is_directory(path) ? models::open_weights(path) : io::open_tensors(path);
    models::load_weights(models::weights_of(*model.net, model.net->parameters), file, {},
                         {model.pretrained.height, model.pretrained.width},
                         {.classifier = std::ranges::none_of(
                              file.names(), [&](const std::string& name) { return model.net->is_head(name); })});
  } catch (const Error& error) {
    fail("--initial-checkpoint: {}", error.what());
  }
}

// The options of a model that classifies the classes of the data, unless another number is asked for.
models::CreateOptions classifier_options(const ClassifyOptions& options, std::int64_t data_classes) {
  models::CreateOptions create = create_options(options);
  nlohmann::json kwargs = nlohmann::json::parse(create.model_kwargs);
  if (!options.gp.empty()) {
    kwargs["global_pool"] = options.gp;
  }
  create.model_kwargs = kwargs.dump();
  create.drop_rate = options.drop;
  create.drop_path_rate = options.drop_path;
  if (!kwargs.contains("num_classes")) {
    create.num_classes = options.num_classes.value_or(data_classes);
  }
  return create;
}

// The model that --initial-checkpoint holds, without --model: with a new head behind an encoder, such as `vitrail
// encoder` writes, or behind the bottleneck of an autoencoder.
models::Model model_of_initial(const ClassifyOptions& options, const fs::path& folder,
                               const models::CreateOptions& create) {
  models::CreateOptions look;
  look.fill = nn::Fill::meta;
  const models::Model held = models::load_model(folder, look);
  models::check_takes_images(held);
  models::check_trainable(*held.net, options.initial_checkpoint);
  const std::int64_t classes = held.pretrained.bottleneck ? 0 : held.net->num_classes();
  check(classes == 0 || classes == create.num_classes.value_or(classes),
        "--initial-checkpoint: '{}' has a classifier of {}, and {} are asked for: --pretrained-path gives it a new one",
        options.initial_checkpoint, io::counted(classes, "classes"), create.num_classes.value_or(classes));
  models::Model model = models::load_model(folder, create);
  const models::PretrainedConfig& own = held.pretrained;
  const models::PretrainedConfig& now = model.pretrained;
  check(own.channels == now.channels && own.height == now.height && own.width == now.width,
        "--initial-checkpoint: '{}' is for images of {} x {} x {}, not of {} x {} x {}: --pretrained-path adapts it",
        options.initial_checkpoint, own.channels, own.height, own.width, now.channels, now.height, now.width);
  return model;
}

models::Model make_model(const ClassifyOptions& options, const fs::path& checkpoint, std::int64_t data_classes) {
  const models::CreateOptions create = classifier_options(options, data_classes);
  if (!checkpoint.empty()) {
    // The config of the checkpoint has all arguments except the rates of dropout and drop path that flags ask for, and
    // a fixed pos_embed.
    models::CreateOptions saved;
    saved.model_kwargs = create.model_kwargs;
    saved.drop_rate = create.drop_rate;
    saved.drop_path_rate = create.drop_path_rate;
    return models::load_model(checkpoint, saved);
  }
  const fs::path initial = options.initial_checkpoint.empty() ? fs::path() : model_of(options.initial_checkpoint);
  if (!initial.empty() && options.pretrained_path.empty() && options.model == ClassifyOptions().model &&
      fs::exists(initial / "config.json")) {
    return model_of_initial(options, initial, create);
  }
  const std::string name = model_of(options.pretrained_path.empty() ? options.model : options.pretrained_path).string();
  models::Model model =
      options.pretrained_path.empty() ? models::open_model(name, create) : models::load_model(name, create);
  check(options.pretrained_path.empty() || options.model == ClassifyOptions().model ||
            options.model == model.architecture,
        "--model {} is not what --pretrained-path {} holds: that is {}", options.model, name, model.architecture);
  models::check_takes_images(model);
  models::check_trainable(*model.net, options.pretrained_path.empty() ? options.model : options.pretrained_path);
  if (!initial.empty()) {
    load_initial(model, initial);
  }
  return model;
}

// Excludes all parameters but those of the head from training.
void train_head_alone(nn::Network& network) {
  for (const nn::Parameter& parameter : network.parameters.all()) {
    if (!parameter.buffer && !network.is_head(parameter.name)) {
      network.parameters.set_trainable(parameter.name, false);
    }
  }
}

// The layer that whitens the patches of an image, if the model has one.
const models::Airbench* whitened(const models::Model& model) { return models::body_of<models::Airbench>(*model.net); }

// Sets that layer from images that are spread over the data set.
void whiten(const models::Airbench& net, const data::Dataset& images, const data::Transform& transform,
            bool skip_broken) {
  constexpr std::int64_t most_whitened = 5000;  // the reference's
  const std::int64_t count = std::min(images.size(), most_whitened);
  const Shape shape = transform.shape();
  const Tensor x = Tensor::empty(shape.inserted(0, count));
  std::int64_t taken = 0;
  data::for_spread_images(images, count, skip_broken, [&](std::int64_t /*index*/, const io::Image& image) {
    transform.apply(image, 0, 0, 0, x.data<float>() + taken * shape.numel());
    ++taken;
  });
  check(taken > 0, "none of the {} training images could be read", images.size());
  net.whiten(x.narrow(0, 0, taken));
}

// Whether the features of an image are the same in every epoch, so that a probe can compute them once.
bool features_stay(const ClassifyOptions& o, const models::Model& model) {
  const bool same_images = o.augment.no_aug && !o.mix.enabled() && o.tta == 0 && o.kd_model_name.empty();
  const nlohmann::json rates = models::drop_rates_in(nlohmann::json::parse(model.arguments));
  return same_images && std::ranges::all_of(rates, [](const nlohmann::json& rate) { return rate == 0; });
}

class Classify final : public Task {
 public:
  Classify(const ClassifyOptions& options, const fs::path& checkpoint);

  nn::Network& network() override { return *model_.net; }
  data::Batches& batches() override { return *loader_; }
  std::optional<Drawn> next() override;
  Tensor loss(nn::Pass& pass) override;
  std::string units() const override { return "images"; }
  std::vector<FigureKind> figures() const override {
    return validation_ == nullptr ? std::vector<FigureKind>() : accuracy_figures();
  }
  Figures evaluate(const Work& work) override;
  std::string loss_axis() const override { return "cross-entropy"; }
  void prepare(const Work& work) override;
  void save(const fs::path& folder) const override { models::save_model(model_, folder); }
  std::string name() const override { return fmt::format("{}-{}", model_.architecture, model_.pretrained.height); }
  std::vector<std::string> summary() const override;
  std::vector<std::pair<std::string, std::string>> facts() const override {
    auto facts = image_facts(model_, *training_, validation_.get());
    std::ranges::move(held_out_facts(options_, held_out_, validation_ != nullptr), std::back_inserter(facts));
    if (probe_ != nullptr) {
      facts.emplace_back("features_precomputed", "true");
    }
    return facts;
  }

 private:
  void open_data();
  void open_parts(const std::vector<std::string>& classes);
  void name_classes(std::int64_t data_classes, bool fresh);
  void open_teacher();
  void whiten_patches(bool fresh);
  data::LoaderOptions loading() const;
  data::Transform training_transform() const { return data::train_transform(model_.pretrained, options_.augment); }
  EvaluateOptions evaluate_options(const Work& work) const;
  std::string difference_from_initial() const;

  const ClassifyOptions options_;
  std::unique_ptr<data::Dataset> training_;    // followed by the images of --unlabeled-dir
  std::unique_ptr<data::Dataset> validation_;  // null: none
  double held_out_ = 0;                        // the share of the training images that validation_ is
  models::Model model_;
  std::int64_t unlabeled_ = 0;              // how many of the training images have no labels
  std::unique_ptr<const Teacher> teacher_;  // null: none
  std::unique_ptr<Probe> probe_;            // null: the model is run as a whole
  Forward forward_;
  std::unique_ptr<data::Loader> loader_;
  data::Batch batch_;
};

Classify::Classify(const ClassifyOptions& options, const fs::path& checkpoint) : options_(options) {
  open_data();
  const auto data_classes = static_cast<std::int64_t>(training_->classes().size());
  model_ = make_model(options_, checkpoint, data_classes);
  name_classes(data_classes, checkpoint.empty());
  data::apply(options_.images, model_.pretrained);
  whiten_patches(checkpoint.empty() && options_.pretrained_path.empty() && options_.initial_checkpoint.empty() &&
                 !models::names_folder(model_of(options_.model).string()));
  if (options_.linear_probe) {
    train_head_alone(*model_.net);
  }
  open_teacher();
  if (options_.linear_probe && features_stay(options_, model_)) {
    probe_ = Probe::make(model_);
  }
  if (probe_ != nullptr) {
    forward_ = probe_->forward();
    loader_ = probe_->training_loader(*training_, loading());
  } else {
    forward_ = [this](const Tensor& x, nn::Pass& pass) { return model_.net->forward_heads(x, pass); };
    loader_ = std::make_unique<data::Loader>(*training_, training_transform(), loading());
  }
}

void Classify::open_data() {
  data::check_beside_images(options_.output, options_.data_dir);
  try {
    open_parts({});
  } catch (const Error& error) {
    const std::vector<std::string> tasks = tasks_beside_classes(options_.data_dir);
    fail("{}{}", error.what(),
         tasks.empty() ? "" : fmt::format("; what is there is for --task {}", fmt::join(tasks, ", ")));
  }
}

// Opens the images to learn from, with these classes (none given: their own), and those to evaluate on.
void Classify::open_parts(const std::vector<std::string>& classes) {
  const std::string& source = options_.data_dir;
  training_ = open_part(options_, source, options_.train_split, classes);
  const std::vector<std::string>& own = training_->classes();
  held_out_ = open_evaluation(
      options_, {.open_dir =
                     [&] {
                       validation_ = open_part(options_, options_.val_dir,
                                               part_of_val_dir(options_, data::parts_of_images(options_.val_dir)), own);
                     },
                 .open_part = [&] { validation_ = open_part(options_, source, options_.val_split, own); },
                 .is_all_for_training = [&] {  // what looks like class folders may be those of another layout
                   return data::is_all_for_training(data::parts_of_images(source)) &&
                          tasks_beside_classes(source).empty();
                 }});
  if (held_out_ > 0) {
    const std::shared_ptr<const data::Dataset> all = std::move(training_);
    std::vector<std::int64_t> labels(static_cast<std::size_t>(all->size()));
    for (std::int64_t i = 0; i < all->size(); ++i) {
      labels[static_cast<std::size_t>(i)] = all->label(i);
    }
    data::HeldOut drawn = draw_held_out(options_, held_out_, *all, labels);
    training_ = std::make_unique<data::DatasetPart>(all, std::move(drawn.learned));
    validation_ = drawn.held.empty() ? nullptr : std::make_unique<data::DatasetPart>(all, std::move(drawn.held));
  }
}

// Sets the label names of the model. A fine-tuned model keeps its own order if it is for the same classes, and as many
// others get a new classifier.
void Classify::name_classes(std::int64_t data_classes, bool fresh) {
  std::vector<std::string> known = model_.pretrained.label_names;
  while (std::ssize(known) > data_classes && known.back().starts_with(unused_class)) {
    known.pop_back();
  }
  const bool same = std::ranges::is_permutation(known, training_->classes());
  if (!fresh) {
    check_same_classes(known, training_->classes());
  }
  if (fresh && !known.empty() && !same) {
    models::renew_classifier(model_);
  }
  if (known != training_->classes() && same) {
    open_parts(known);
  }
  const std::int64_t num_classes = model_.net->num_classes();
  check(num_classes >= data_classes, "the images are of {}, but --num-classes is {}",
        io::counted(data_classes, "classes"), num_classes);
  constexpr std::int64_t guesses = 5;
  check(options_.eval_metric != "top5" || num_classes > guesses || !options_.resume.empty(),
        "--eval-metric top5 is 100 % of any model for {}: take top1 or loss", io::counted(num_classes, "classes"));
  model_.pretrained.forget_classes();
  model_.pretrained.label_names = training_->classes();
  for (std::int64_t i = data_classes; i < num_classes; ++i) {
    model_.pretrained.label_names.push_back(fmt::format("{}{}", unused_class, i));
  }
}

// Whitens the first layer of a fresh model that has such a layer.
void Classify::whiten_patches(bool fresh) {
  const models::Airbench* net = whitened(model_);
  check(net != nullptr || !options_.whiten_bias_epochs,
        "--whiten-bias-epochs is for models whose first layer whitens patches, such as airbench94, not for {}",
        model_.architecture);
  if (net != nullptr && fresh) {
    whiten(*net, *training_, data::eval_transform(model_.pretrained), options_.skip_broken);
  }
}

// Opens the teacher, and the images without labels, which only the teacher judges.
void Classify::open_teacher() {
  if (distillation_options(options_).type == Distillation::Type::none) {
    return;
  }
  teacher_ = std::make_unique<const Teacher>(options_.kd_model_name, model_, compute_dtype(options_));
  if (!options_.unlabeled_dir.empty()) {
    auto more = data::open_unlabeled(options_.unlabeled_dir, options_.skip_broken);
    unlabeled_ = more->size();
    training_ = data::with_unlabeled(std::move(training_), std::move(more));
  }
}

data::LoaderOptions Classify::loading() const {
  data::LoaderOptions loading = training_loading(options_);
  loading.mix = options_.mix;
  loading.mix.mode = data::mix_mode_named(options_.mixup_mode);
  loading.num_classes = model_.net->num_classes();
  loading.label_smoothing = options_.smoothing;
  return loading;
}

std::optional<Drawn> Classify::next() {
  if (!loader_->next(batch_)) {
    return std::nullopt;
  }
  if (const models::Airbench* net = whitened(model_);
      net != nullptr && batch_.epoch >= options_.whiten_bias_epochs.value_or(3)) {
    model_.net->parameters.set_trainable(net->whitening_bias(), false);
  }
  return Drawn{batch_.number, batch_.x.size(0)};
}

Tensor Classify::loss(nn::Pass& pass) {
  const Tensor taught = teacher_ == nullptr ? Tensor() : (*teacher_)(batch_.x);
  return heads_loss(forward_(batch_.x, pass), batch_,
                    {options_.smoothing, options_.bce_loss, distillation_options(options_)}, taught);
}

EvaluateOptions Classify::evaluate_options(const Work& work) const {
  EvaluateOptions options = evaluation_options(options_, work);
  options.tta = options_.tta;
  return options;
}

Figures Classify::evaluate(const Work& work) {
  work.begin("evaluating", validation_->size());
  const EvaluateOptions options = evaluate_options(work);
  const Evaluation result =
      probe_ != nullptr ? probe_->evaluate(*validation_, options) : train::evaluate(model_, *validation_, options);
  work.say_left_out(result.broken);
  return {{"top1", result.top1}, {"top5", result.top5}, {"loss", result.loss}};
}

void Classify::prepare(const Work& work) {
  if (probe_ == nullptr) {
    return;
  }
  work.begin("features", training_->size() + (validation_ == nullptr ? 0 : validation_->size()));
  probe_->compute(*training_, training_transform(), validation_.get(), evaluate_options(work), work.advance);
  work.say("only the head is trained, on features that were computed once");
}

// In what the preparation of the images of --initial-checkpoint, if it is a model folder, is not that of this run.
std::string Classify::difference_from_initial() const {
  const fs::path initial = options_.initial_checkpoint.empty() ? fs::path() : model_of(options_.initial_checkpoint);
  if (!options_.resume.empty() || !fs::exists(initial / "config.json")) {
    return "";
  }
  models::CreateOptions look;
  look.fill = nn::Fill::meta;
  try {
    return difference_of_preparation(models::load_model(initial, look).pretrained, model_.pretrained);
  } catch (const Error&) {
    return "";  // weights of which the folder makes no classifier
  }
}

std::vector<std::string> Classify::summary() const {
  std::vector<std::string> lines;
  if (teacher_ != nullptr) {
    const std::int64_t own = model_.net->num_classes();
    const std::int64_t known = teacher_->model().net->num_classes();
    lines.push_back(fmt::format("the teacher is {}{}: {} distillation{}", model_summary(teacher_->model()),
                                models::names_folder(options_.kd_model_name) ? "" : " with random weights",
                                options_.distillation_type,
                                known == own ? "" : fmt::format(" of {} of its {} classes", own, known)));
    if (options_.distillation_alpha == 0) {
      lines.emplace_back("note: with --distillation-alpha 0 the teacher has no share in the loss");
    }
  }
  lines.push_back(fmt::format("{}, {}", model_summary(model_), io::counted(model_.net->num_classes(), "classes")));
  if (const auto refused = models::arguments_refused_by_timm(model_); !refused.empty() && options_.resume.empty()) {
    lines.push_back(fmt::format("note: timm has no '{}' with another {}: vitrail alone reads the run's folders",
                                model_.architecture, io::quoted_list(refused, "or")));
  }
  if (const std::int64_t known = std::ssize(training_->classes()), images = training_->size();
      options_.resume.empty() && most_labels_come_once(known, images)) {
    lines.push_back(fmt::format("note: {} for {}: most labels come once, as numbers do that are not to be classes",
                                io::counted(known, "classes"), io::counted(images, "images")));
  }
  const std::vector<std::string> tasks =
      fs::is_directory(options_.data_dir) ? tasks_beside_classes(options_.data_dir) : std::vector<std::string>();
  if (!tasks.empty()) {
    lines.push_back(
        fmt::format("note: beside the class folders there is what is for --task {}", fmt::join(tasks, ", ")));
  }
  if (options_.resume.empty() && !options_.initial_checkpoint.empty() && model_.architecture != options_.model &&
      options_.model == ClassifyOptions().model) {
    lines.push_back(fmt::format("the network is that of '{}': {}", options_.initial_checkpoint, model_.architecture));
  }
  if (const std::string difference = difference_from_initial(); !difference.empty()) {
    lines.push_back(fmt::format("note: the images of '{}' were prepared otherwise: {} (--model, --mean, --crop-pct …)",
                                options_.initial_checkpoint, difference));
  }
  const std::vector<std::string> data = data_summary(options_, *training_, validation_.get(), held_out_);
  lines.insert(lines.end(), data.begin(), data.end());
  if (unlabeled_ > 0) {
    lines.push_back(fmt::format("{} of the training images have no labels", unlabeled_));
  }
  return lines;
}

}  // namespace

std::unique_ptr<Task> ClassifyOptions::make(const fs::path& checkpoint) const {
  return std::make_unique<Classify>(*this, checkpoint);
}

}  // namespace vitrail::train
