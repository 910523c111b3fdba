// Distillation against DeiT's and timm's losses (tools/golden/distill.py), and in whole runs.
#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/errors.h"
#include "tests/train/tiny.h"
#include "vitrail/autograd/tape.h"
#include "vitrail/io/file.h"
#include "vitrail/optim/optimizer.h"
#include "vitrail/train/tasks/classify.h"
#include "vitrail/train/tasks/loss.h"
#include "vitrail/train/tasks/teacher.h"

namespace vitrail::train {
namespace {

namespace fs = std::filesystem;
using test::error_of;
using test::expect_close;
using test::golden;
using test::golden_path;
using test::tiny_options;
using test::weights_of;
using ::testing::HasSubstr;

// Logits handed out as a model's.
struct Heads : models::ImageModel {
  explicit Heads(std::vector<Tensor> logits) : heads(std::move(logits)) {
    for (Tensor& head : heads) {
      head = head.clone();
      autograd::require_grad(head);
    }
  }
  Tensor forward_features(const Tensor&, nn::Pass&) const override { return heads.front(); }
  Tensor forward_head(const Tensor& features, nn::Pass&, bool) const override { return features; }
  Tensor forward(const Tensor&, nn::Pass&) const override { return heads.front(); }
  std::vector<Tensor> forward_heads(const Tensor&, nn::Pass&) const override { return heads; }
  std::int64_t frames() const override { return 0; }
  std::int64_t num_classes() const override { return heads.front().size(1); }
  std::int64_t num_features() const override { return 1; }
  std::int64_t depth() const override { return 0; }
  models::TokenLayout token_layout(std::int64_t, std::int64_t) const override { return {}; }
  std::int64_t flops(std::int64_t, std::int64_t) const override { return 0; }
  std::int64_t layer_of(const std::string&) const override { return 0; }
  bool no_weight_decay(const std::string&) const override { return false; }
  bool is_head(const std::string&) const override { return true; }
  bool takes_any_size() const override { return true; }
  bool has_attention() const override { return false; }
  Tensor adapt(const std::string&, const Tensor& value, const Shape&, const nn::Size2&) const override { return value; }

  std::vector<Tensor> heads;
};

struct LossCase {
  std::string name;
  Distillation distillation;
  std::int64_t labeled = 5;
  bool mixed = false;
  bool one_head = false;
};

TEST(DistillationLoss, GivesDeitsAndTimmsValuesAndGradients) {
  using Type = Distillation::Type;
  const io::Safetensors file = golden("distill.safetensors");
  const std::vector<LossCase> cases = {
      {"deit_hard", {Type::hard, 1, 0.7, 0.3}},
      {"deit_soft", {Type::soft, 2.5, 0.7, 0.3 / 7}},  // by the number of classes, as DeiT's code
      {"deit_mixed", {Type::hard, 1, 0.5, 0.5}, 5, true},
      {"timm_soft", {Type::soft, 2.5, 0.8, 0.2}},
      {"timm_hard", {Type::hard, 2.5, 0.8, 0.2}},
      {"timm_logit", {Type::soft, 2.5, 0.6, 2.0}, 5, false, true},
      {"unlabeled", {Type::hard, 1, 0.7, 0.3}, 3},
  };
  for (const LossCase& c : cases) {
    SCOPED_TRACE(c.name);
    const Tensor head = file.get("loss.head");
    const Heads net(c.one_head ? std::vector{head} : std::vector{head, file.get("loss.head_dist")});
    data::Batch batch;
    batch.x = Tensor::zeros({5, 3, 1, 1});
    batch.labels = file.get("loss.labels").narrow(0, 0, c.labeled);
    batch.targets = c.mixed ? file.get("loss.targets") : Tensor();
    nn::Pass pass{.training = true};
    autograd::Tape tape;
    const Tensor loss = batch_loss(net, batch, pass, {0.1, false, c.distillation}, file.get("loss.teacher"));
    expect_close(loss, file.get(c.name + ".value"), 1e-5);
    tape.backward(loss);
    expect_close(autograd::grad(net.heads.front()), file.get(c.name + ".dhead"), 1e-5);
    if (!c.one_head) {
      expect_close(autograd::grad(net.heads.back()), file.get(c.name + ".dhead_dist"), 1e-5);
    }
  }
}

TEST(DistillationLoss, OfImagesWithoutLabelsIsTheTeachersAlone) {
  const io::Safetensors file = golden("distill.safetensors");
  const Heads net({file.get("loss.head"), file.get("loss.head_dist")});
  data::Batch batch;
  batch.x = Tensor::zeros({5, 3, 1, 1});
  batch.labels = Tensor::empty({0}, DType::i64);
  nn::Pass pass{.training = true};
  const Distillation hard{Distillation::Type::hard, 1, 0.7, 0.3};
  const float alone = distillation_loss(net.heads[1], file.get("loss.teacher"), hard).item();
  for (const bool bce : {false, true}) {
    EXPECT_FLOAT_EQ(batch_loss(net, batch, pass, {0.1, bce, hard}, file.get("loss.teacher")).item(), 0.3F * alone);
  }
  EXPECT_THAT(error_of([&] {
                distillation_loss(net.heads[1], Tensor::zeros({5, 6}), hard);
              }),
              HasSubstr("the teacher's are [5, 6]"));
}

TEST(Teacher, SeesTheImagesAsItIsUsedTo) {
  const io::Safetensors file = golden("distill.safetensors");
  const models::Model student = models::load_model(golden_path("models/distilled"));
  const Teacher teacher(golden_path("models/plain").string(), student, DType::f32);
  autograd::Tape tape;
  for (const std::string name : {"teacher32", "teacher40"}) {
    const Tensor logits = teacher(file.get(name + ".x"));
    expect_close(logits, file.get(name + ".logits"), 1e-4, name);
    EXPECT_FALSE(autograd::requires_grad(logits)) << "nothing is recorded";
  }
  const Teacher low(golden_path("models/plain").string(), student, DType::bf16);
  expect_close(low(file.get("teacher40.x")), file.get("teacher40.logits"), 3e-2);
}

TEST(Teacher, KnowsItsClassesInItsOwnOrder) {
  const test::TemporaryFolder folder;
  models::Model model = models::load_model(golden_path("models/plain"));
  model.pretrained.label_names = {"c", "a", "b", "d", "e", "f", "g"};
  models::save_model(model, folder / "teacher");
  models::Model student = models::load_model(golden_path("models/plain"));
  const io::Safetensors file = golden("distill.safetensors");
  const Tensor x = file.get("teacher32.x");
  const std::string path = (folder / "teacher").string();
  const Tensor plain = Teacher(path, student, DType::f32)(x);
  student.pretrained.label_names = {"a", "b", "c", "d", "e", "f", "g"};
  const Tensor ordered = Teacher(path, student, DType::f32)(x);
  for (const auto& [from, to] : {std::pair{0, 2}, {1, 0}, {2, 1}, {6, 6}}) {
    EXPECT_EQ(plain.select(1, from).values(), ordered.select(1, to).values()) << from;
  }
  model.pretrained.problem_type = models::ProblemType::multi_label_classification;
  models::save_model(model, folder / "labels");
  EXPECT_THAT(error_of([&] { Teacher((folder / "labels").string(), student, DType::f32); }),
              HasSubstr("tells no classes apart: its problem_type is multi_label_classification"));
  models::CreateOptions options;
  options.num_classes = 2;
  models::Model few = models::load_model(golden_path("models/plain"), options);
  few.pretrained.label_names = {student.pretrained.label_names[5], student.pretrained.label_names[1]};
  const Tensor chosen = Teacher(path, few, DType::f32)(x);
  EXPECT_EQ(chosen.shape(), (Shape{x.size(0), 2}));
  EXPECT_EQ(chosen.select(1, 0).values(), ordered.select(1, 5).values());
  EXPECT_EQ(chosen.select(1, 1).values(), ordered.select(1, 1).values());
  student.pretrained.label_names[3] = "dog";
  EXPECT_THAT(error_of([&] { Teacher(path, student, DType::f32); }), HasSubstr("does not know the class 'dog'"));
}

TEST(Teacher, TakesTheStudentsChannelsAndNoOtherClasses) {
  models::CreateOptions options;
  options.model_kwargs = R"({"in_chans": 1})";
  const models::Model gray = models::load_model(golden_path("models/plain"), options);
  const Teacher teacher(golden_path("models/plain").string(), gray, DType::f32);
  EXPECT_EQ(teacher(test::random_tensor({2, 1, 32, 32})).shape(), (Shape{2, 7}));
  options = {};
  options.num_classes = 3;
  const models::Model few = models::load_model(golden_path("models/plain"), options);
  EXPECT_THAT(error_of([&] { Teacher(golden_path("models/plain").string(), few, DType::f32); }),
              HasSubstr("tells 7 classes apart, but the student 3"));
}

TEST(Teacher, OfVideosIsRefused) {
  const models::Model student = models::load_model(golden_path("models/plain"));
  EXPECT_THAT(error_of([&] { Teacher(golden_path("models/mvit_video_v1").string(), student, DType::f32); }),
              HasSubstr("'mvit_v1_b' takes clips of 4 frames, not images"));
}

// The losses of PyTorch with timm's models, a step at a time.
TEST(Distillation, FiveStepsGivePytorchsLosses) {
  const io::Safetensors file = golden("distill.safetensors");
  for (const std::string name : {"distilled", "deit3"}) {
    for (const std::string kind : {"hard", "soft"}) {
      const models::Model student = models::load_model(golden_path("models") / name);
      models::ImageModel& net = *student.net;
      const Teacher teacher(golden_path("models/plain").string(), student, DType::f32);
      const auto no_decay = [&](const std::string& parameter) { return net.no_weight_decay(parameter); };
      optim::Optimizer optimizer(net.parameters, {.opt = "adamw"},
                                 optim::groups_by_weight_decay(net.parameters, 0.05, no_decay));
      const LossOptions options{0.1, false, {distillation_named(kind), 2, 0.5, 0.5}};
      data::Batch batch;
      batch.x = file.get("training.x");
      batch.labels = file.get("training.labels");
      const std::vector<float> expected = file.get("training." + name + "." + kind).values();
      for (std::size_t step = 0; step < expected.size(); ++step) {
        net.parameters.zero_grad();
        nn::Pass pass{.training = true};
        autograd::Tape tape;
        const Tensor loss = batch_loss(net, batch, pass, options, teacher(batch.x));
        EXPECT_NEAR(loss.item(), expected[step], 1e-3 * expected[step]) << name << ", " << kind << ", step " << step;
        tape.backward(loss);
        optimizer.step(1e-3);
      }
    }
  }
}

// A run whose teacher is the result of another, for images of another size.
ClassifyOptions distilled_options(const fs::path& folder) {
  ClassifyOptions options = tiny_options(folder);
  options.img_size = 12;
  options.experiment = "teacher";
  options.epochs = 6;
  options.lr = 3e-3;
  options.drop_path = options.drop = 0;
  fit(options);
  options = tiny_options(folder);
  options.model = "deit_tiny_distilled_patch16_224";
  options.kd_model_name = (folder / "runs/teacher/best").string();
  return options;
}

TEST(Distillation, LearnsFromATeacherAndGoesOnToTheSameBits) {
  const test::TemporaryFolder folder;
  ClassifyOptions options = distilled_options(folder.path());
  options.mix.cutmix = 1;
  test::write_images(folder / "more", 3, 2, 5);
  options.unlabeled_dir = (folder / "more").string();
  for (const std::string type : {"hard", "soft"}) {
    options.distillation_type = type;
    options.experiment = type;
    const FitResult whole = fit(options);
    EXPECT_EQ(whole.steps, 3 * 7) << "of 24 images with labels and 6 without, in batches of 4";
    EXPECT_NEAR(test::options_in<ClassifyOptions>(whole.folder / "config.toml").distillation_alpha, 0.5, 0);
    options.experiment = type + "-stopped";
    FitHooks hooks;
    std::int64_t seen = 0;
    hooks.on_step = [&](std::int64_t step, double) { seen = step; };
    hooks.should_stop = [&] { return seen >= 9; };
    const fs::path run = fit(options, hooks).folder;
    EXPECT_EQ(fit(test::resumed<ClassifyOptions>(run)).steps, 21);
    EXPECT_EQ(weights_of(whole.folder / "last"), weights_of(run / "last"));
  }
  EXPECT_NE(weights_of(folder / "runs/hard/last"), weights_of(folder / "runs/soft/last"));
  options.distillation_type = "none";
  EXPECT_THAT(error_of([&] { fit(options); }), HasSubstr("--unlabeled-dir needs a teacher"));
  options.unlabeled_dir = "";
  options.experiment = "none";
  fit(options);
  options.kd_model_name = "";
  options.experiment = "without";
  fit(options);
  EXPECT_EQ(weights_of(folder / "runs/none/last"), weights_of(folder / "runs/without/last"));
}

// The images of tiny_options(), of which those to train on have wrong labels.
std::string mislabelled(const fs::path& folder) {
  fs::create_directories(folder / "wrong/train");
  for (int c = 0; c < 3; ++c) {
    fs::copy(folder / fmt::format("data/train/class{}", c), folder / fmt::format("wrong/train/class{}", (c + 1) % 3));
  }
  fs::copy(folder / "data/validation", folder / "wrong/validation", fs::copy_options::recursive);
  return (folder / "wrong").string();
}

// What the labels do not say the teacher does: with a share of 1 for it, wrong labels do no harm.
TEST(Distillation, CanDoWithoutTheLabels) {
  const test::TemporaryFolder folder;
  ClassifyOptions options = distilled_options(folder.path());
  const models::Model teacher = models::load_model(folder / "runs/teacher/best");
  const auto validation = data::open_dataset(folder / "data/validation");
  ASSERT_EQ(evaluate(teacher, *validation).top1, 100);
  options.data_dir = mislabelled(folder.path());
  options.model = "vit_tiny_patch16_224";  // a student with one head
  options.drop_path = options.drop = 0;
  options.augment.no_aug = true;
  options.epochs = 20;
  options.lr = 3e-3;
  options.distillation_alpha = 1;
  EXPECT_EQ(fit(options).figure("top1"), 100);
  options.distillation_alpha = 0;
  options.experiment = "labels";
  EXPECT_LT(fit(options).figure("top1"), 50);
}

// Of a teacher only the logits matter, so both may be of any family: students learn from a ResNet what the labels do
// not say, with a distillation token and without.
TEST(Distillation, CrossesFamilies) {
  const test::TemporaryFolder folder;
  ClassifyOptions options = tiny_options(folder.path());
  options.drop = 0;
  options.drop_path.reset();
  options.augment.no_aug = true;
  options.epochs = 12;
  options.lr = 3e-3;
  options.model = "resnet18";
  options.model_kwargs = R"({"img_size": 32, "layers": [1, 1, 1, 1], "channels": [8, 16, 24, 32]})";
  options.experiment = "teacher";
  ASSERT_EQ(fit(options).figure("top1"), 100);
  options.kd_model_name = (folder / "runs/teacher/best").string();
  options.distillation_alpha = 1;
  options.data_dir = mislabelled(folder.path());
  const std::vector<std::pair<std::string, std::string>> students = {
      {"deit_tiny_distilled_patch16_224", tiny_options(folder.path()).model_kwargs},
      {"swin_tiny_patch4_window7_224",
       R"({"img_size": 16, "patch_size": 2, "window_size": 4, "embed_dim": 12, "depths": [1, 1], "num_heads": [2, 2]})"},
      {"mixer_s32_224", R"({"img_size": 16, "patch_size": 4, "embed_dim": 24, "num_blocks": 2})"},
  };
  for (const auto& [model, kwargs] : students) {
    for (const std::string type : {"hard", "soft"}) {
      options.model = model;
      options.model_kwargs = kwargs;
      options.distillation_type = type;
      options.experiment = model + "-" + type;
      EXPECT_GT(fit(options).figure("top1"), 90) << options.experiment;
    }
  }
}

TEST(Distillation, WeightsAreTimmsWhereTheyAreGiven) {
  ClassifyOptions options;
  EXPECT_EQ(distillation_options(options).type, Distillation::Type::none) << "without a teacher";
  options.kd_model_name = "teacher";
  options.distillation_alpha = 0.25;
  const auto weights = [&] {
    const Distillation d = distillation_options(options);
    return std::pair(d.task_weight, d.distill_weight);
  };
  EXPECT_EQ(weights(), std::pair(0.75, 0.25));
  options.task_loss_weight = 0.5;
  EXPECT_EQ(weights(), std::pair(0.5, 0.5));
  options.distill_loss_weight = 2;
  EXPECT_EQ(weights(), std::pair(0.5, 2.0));
  options.task_loss_weight.reset();
  EXPECT_EQ(weights(), std::pair(1.0, 2.0));
  options.data_dir = "images";
  const auto error_with = [&](auto&& change) {
    ClassifyOptions changed = options;
    change(changed);
    return error_of([&] { validate(changed); });
  };
  EXPECT_THAT(error_with([](auto& o) { o.distillation_alpha = 1.5; }), HasSubstr("--distillation-alpha"));
  EXPECT_THAT(error_with([](auto& o) { o.distillation_type = "warm"; }), HasSubstr("--distillation-type"));
  EXPECT_THAT(error_with([](auto& o) { o.kd_temperature = 0; }), HasSubstr("--kd-temperature"));
  EXPECT_THAT(error_with([](auto& o) { o.distill_loss_weight = -1; }), HasSubstr("--distill-loss-weight"));
}

}  // namespace
}  // namespace vitrail::train
