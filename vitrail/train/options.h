// What a training run is told: the fields are the flags of timm's train.py, wherever it has one, by their names.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace vitrail::train {

struct TrainOptions {
  // Data
  std::string data_dir;
  std::string train_split = "train";
  std::string val_split = "validation";
  std::string val_dir;
  bool no_shuffle = false;
  bool skip_broken = false;

  // Model
  std::string model = "vit_tiny_patch16_224";
  std::string pretrained_path;
  std::string initial_checkpoint;
  std::optional<std::int64_t> num_classes;
  std::optional<std::int64_t> img_size;
  std::vector<std::int64_t> input_size;
  std::optional<std::int64_t> in_chans;
  std::string gp;
  std::string model_kwargs = "{}";  // timm's --model-kwargs as a JSON object
  double drop = 0;
  std::optional<double> drop_path;
  std::vector<std::string> freeze;
  bool linear_probe = false;
  bool grad_checkpointing = false;

  // Pictures
  std::optional<double> crop_pct;
  std::string crop_mode;
  std::vector<double> mean;
  std::vector<double> std;
  std::string interpolation;

  // Batches
  std::int64_t batch_size = 64;
  std::optional<std::int64_t> validation_batch_size;
  std::int64_t grad_accum_steps = 1;
  bool amp = false;
  std::string amp_dtype = "bfloat16";

  // Optimizer
  std::string opt = "adamw";
  std::optional<double> opt_eps;
  std::vector<double> opt_betas;
  double momentum = 0.9;
  double weight_decay = 0.05;
  std::optional<double> clip_grad;
  std::string clip_mode = "norm";
  std::optional<double> layer_decay;
  double layer_decay_min_scale = 0;

  // Learning rate
  std::string sched = "cosine";
  bool sched_on_updates = true;
  std::optional<double> lr;
  std::optional<double> lr_base;
  std::int64_t lr_base_size = 256;
  std::string lr_base_scale;
  double lr_k_decay = 1;
  double lr_cycle_mul = 1;
  double lr_cycle_decay = 0.5;
  std::int64_t lr_cycle_limit = 1;
  double warmup_lr = 1e-5;
  double min_lr = 0;
  std::int64_t epochs = 100;
  std::optional<double> warmup_epochs;
  bool warmup_prefix = false;
  std::int64_t cooldown_epochs = 0;
  double decay_epochs = 30;
  double decay_rate = 0.1;
  std::vector<std::int64_t> decay_milestones = {30, 60, 90};

  // Augmentation and regularization
  bool no_aug = false;
  std::string train_crop_mode = "rrc";
  std::int64_t crop_padding = 4;
  std::vector<double> scale;
  std::vector<double> ratio;
  double hflip = 0.5;
  double vflip = 0;
  std::string aa;
  std::vector<double> color_jitter = {0.4};
  double color_jitter_prob = 1;
  double grayscale_prob = 0;
  std::string train_interpolation = "random";
  double reprob = 0;
  std::string remode = "pixel";
  std::int64_t recount = 1;
  bool resplit = false;
  double aug_repeats = 0;
  double mixup = 0;
  double cutmix = 0;
  std::vector<double> cutmix_minmax;
  double mixup_prob = 1;
  double mixup_switch_prob = 0.5;
  std::string mixup_mode = "batch";
  std::int64_t mixup_off_epoch = 0;
  double smoothing = 0.1;
  bool bce_loss = false;

  // Distillation
  std::string kd_model_name;
  std::string distillation_type = "hard";
  double distillation_alpha = 0.5;
  std::optional<double> task_loss_weight;
  std::optional<double> distill_loss_weight;
  double kd_temperature = 1;
  std::string unlabeled_dir;

  // Pretraining without labels; empty: classes are learned
  std::string pretrain;
  double mask_ratio = 0.75;
  bool norm_pix_loss = true;
  std::int64_t decoder_dim = 512;
  std::int64_t decoder_depth = 8;
  std::int64_t decoder_heads = 16;

  // Moving average
  bool model_ema = false;
  double model_ema_decay = 0.9998;
  bool model_ema_warmup = false;

  // The run
  std::int64_t seed = 42;
  std::int64_t workers = 1;
  std::int64_t threads = 0;
  std::int64_t log_interval = 50;
  std::int64_t val_interval = 1;
  std::int64_t recovery_interval = 0;
  std::string output = "output/train";
  std::string experiment;
  std::string eval_metric = "top1";
  std::int64_t tta = 0;
  std::string resume;
};

// Calls visit(group, name, field, metavar, help) for each option in order: the command line makes its flags from this
// list ("batch_size" is --batch-size) and config.toml its lines. Fields are std::string, bool, std::int64_t, double,
// std::optional of the last two, or std::vector of string, std::int64_t or double.
template <class Options, class Visitor>
void visit_options(Options& o, Visitor&& visit) {
  const char* group = "data";
  visit(group, "data_dir", o.data_dir, "DIR", "pictures: a folder, a .tar, CIFAR or MNIST files, or a .csv");
  visit(group, "train_split", o.train_split, "NAME", "the part of --data-dir to train on");
  visit(group, "val_split", o.val_split, "NAME", "the part of --data-dir to evaluate on; empty: none");
  visit(group, "val_dir", o.val_dir, "DIR", "pictures to evaluate on, where they lie elsewhere");
  visit(group, "no_shuffle", o.no_shuffle, "", "train on the sorted files in order");
  visit(group, "skip_broken", o.skip_broken, "", "leave broken pictures out and count them");

  group = "model";
  visit(group, "model", o.model, "MODEL", "timm's name of an architecture, or a model folder to start from");
  visit(group, "pretrained_path", o.pretrained_path, "PATH",
        "model folder to start from: a new head for other classes, positions resized for another picture size");
  visit(group, "initial_checkpoint", o.initial_checkpoint, "PATH", "model folder whose weights must all fit");
  visit(group, "num_classes", o.num_classes, "N", "classes (default: those of the data)");
  visit(group, "img_size", o.img_size, "N", "picture size in pixels (default: the model's)");
  visit(group, "input_size", o.input_size, "C H W", "the same as three numbers: channels, height, width");
  visit(group, "in_chans", o.in_chans, "N", "colour channels: 3, or 1 for grayscale (default: the model's)");
  visit(group, "gp", o.gp, "POOL", "global pooling: token, avg, max, map, sum (default: the model's)");
  visit(group, "model_kwargs", o.model_kwargs, "KEY=VALUE",
        "other arguments of the model, by timm's names: img_size=32 patch_size=4");
  visit(group, "drop", o.drop, "P", "dropout rate before the head");
  visit(group, "drop_path", o.drop_path, "P",
        "stochastic depth rate of the last block, from 0 in the first (default: the model's, 0.1 for Swin)");
  visit(group, "freeze", o.freeze, "NAME",
        "do not train these parameters: patch_embed blocks.0-5 '*.norm1' layer:0-6 (see docs/training.md)");
  visit(group, "linear_probe", o.linear_probe, "", "train the head alone");
  visit(group, "grad_checkpointing", o.grad_checkpointing, "",
        "keep only the input of each block and run it again in backward: less memory, a third more work");

  group = "pictures";
  visit(group, "crop_pct", o.crop_pct, "N",
        "evaluation: share of the resized picture that is kept (default: the model's)");
  visit(group, "crop_mode", o.crop_mode, "NAME", "evaluation: center, squash or border (default: the model's)");
  visit(group, "mean", o.mean, "MEAN", "mean of each colour, from 0 to 1 (default: the model's)");
  visit(group, "std", o.std, "STD", "standard deviation of each colour (default: the model's)");
  visit(group, "interpolation", o.interpolation, "NAME", "nearest, bilinear, bicubic, lanczos (default: the model's)");

  group = "batches";
  visit(group, "batch_size", o.batch_size, "N", "pictures a batch");
  visit(group, "validation_batch_size", o.validation_batch_size, "N", "pictures a batch in evaluation");
  visit(group, "grad_accum_steps", o.grad_accum_steps, "N", "batches whose gradients are averaged for one update");
  visit(group, "amp", o.amp, "", "mixed precision: bfloat16 products and activations, float32 weights");
  visit(group, "amp_dtype", o.amp_dtype, "DTYPE", "the lower precision of --amp: bfloat16 (or float32: none)");

  group = "optimizer";
  visit(group, "opt", o.opt, "OPTIMIZER",
        "adamw, adam, nadamw, lion, lamb, lambc, sgd (Nesterov momentum) or momentum");
  visit(group, "opt_eps", o.opt_eps, "EPSILON", "epsilon of AdamW, Adam, NAdamW (default 1e-8) and LAMB (1e-6)");
  visit(group, "opt_betas", o.opt_betas, "BETA", "betas of all but SGD (default 0.9 0.999, of Lion 0.9 0.99)");
  visit(group, "momentum", o.momentum, "M", "SGD's momentum");
  visit(group, "weight_decay", o.weight_decay, "W", "decay of weights other than norms, biases and position tokens");
  visit(group, "clip_grad", o.clip_grad, "NORM", "clip gradients to this norm (or value)");
  visit(group, "clip_mode", o.clip_mode, "MODE", "norm, value or agc");
  visit(group, "layer_decay", o.layer_decay, "RATE", "learning rate times this for each layer below the head");
  visit(group, "layer_decay_min_scale", o.layer_decay_min_scale, "S", "but not less than this");

  group = "learning rate";
  visit(group, "sched", o.sched, "SCHEDULER",
        "cosine, tanh, poly, step, multistep, constant (after the warm-up) or none");
  visit(group, "sched_on_updates", o.sched_on_updates, "", "follow the schedule at each update, not only each epoch");
  visit(group, "lr", o.lr, "LR", "learning rate; overrides --lr-base");
  visit(group, "lr_base", o.lr_base, "LR",
        "learning rate at --lr-base-size pictures an update (default: 1e-3 for AdamW and LAMB, 1e-4 for Lion, 0.1 for "
        "SGD)");
  visit(group, "lr_base_size", o.lr_base_size, "N", "what --lr-base is for");
  visit(group, "lr_base_scale", o.lr_base_scale, "SCALE",
        "how lr grows with the batch: linear or sqrt (default for AdamW and LAMB)");
  visit(group, "lr_k_decay", o.lr_k_decay, "K", "k-decay of cosine and poly");
  visit(group, "lr_cycle_mul", o.lr_cycle_mul, "MULT", "cosine, tanh, poly: each cycle is so much longer");
  visit(group, "lr_cycle_decay", o.lr_cycle_decay, "MULT", "and so much lower");
  visit(group, "lr_cycle_limit", o.lr_cycle_limit, "N", "cycles");
  visit(group, "warmup_lr", o.warmup_lr, "LR", "where the warm-up begins");
  visit(group, "min_lr", o.min_lr, "LR", "where the schedule ends");
  visit(group, "epochs", o.epochs, "N", "passes over the data");
  visit(group, "warmup_epochs", o.warmup_epochs, "N", "epochs of linear warm-up (default: a tenth of all, at most 5)");
  visit(group, "warmup_prefix", o.warmup_prefix, "", "warm up before the schedule begins, not within it");
  visit(group, "cooldown_epochs", o.cooldown_epochs, "N", "epochs at --min-lr after the others");
  visit(group, "decay_epochs", o.decay_epochs, "N", "step: epochs between decays");
  visit(group, "decay_rate", o.decay_rate, "RATE", "step, multistep: the factor of each decay; poly: the exponent");
  visit(group, "decay_milestones", o.decay_milestones, "EPOCH", "multistep: the epochs of the decays");

  group = "augmentation";
  visit(group, "no_aug", o.no_aug, "", "train on the pictures as they are");
  visit(
      group, "train_crop_mode", o.train_crop_mode, "MODE",
      "rrc random resized crop, rkrc or rkrr keeping the ratio, src simple random crop, pad: padded and cropped back");
  visit(group, "crop_padding", o.crop_padding, "N",
        "pixels added on each side by --train-crop-mode pad (black) and src (mirrored)");
  visit(group, "scale", o.scale, "PCT", "area of the random crop (default 0.08 1)");
  visit(group, "ratio", o.ratio, "RATIO", "aspect ratio of the random crop (default 0.75 1.33)");
  visit(group, "hflip", o.hflip, "P", "probability of a horizontal flip");
  visit(group, "vflip", o.vflip, "P", "probability of a vertical flip");
  visit(group, "aa", o.aa, "POLICY",
        "automatic augmentation instead of the jitter: rand-m9-mstd0.5-inc1, original, v0, 3a (with jitter), augmix …");
  visit(group, "color_jitter", o.color_jitter, "PCT",
        "strength for brightness, contrast, saturation (and hue); 0: none");
  visit(group, "color_jitter_prob", o.color_jitter_prob, "P", "probability of colour jitter");
  visit(group, "grayscale_prob", o.grayscale_prob, "P", "probability of making a picture gray");
  visit(group, "train_interpolation", o.train_interpolation, "NAME", "of the random crop: random, bilinear, bicubic …");
  visit(group, "reprob", o.reprob, "P", "probability of random erasing");
  visit(group, "remode", o.remode, "MODE", "what is put in its place: const, rand or pixel");
  visit(group, "recount", o.recount, "N", "boxes erased at most");
  visit(group, "resplit", o.resplit, "", "erase nothing in the first half of each batch");
  visit(group, "aug_repeats", o.aug_repeats, "N",
        "repeated augmentation: each picture N times in a row, in as many fewer of them an epoch; 0: off");
  visit(group, "mixup", o.mixup, "ALPHA", "MixUp with this alpha");
  visit(group, "cutmix", o.cutmix, "ALPHA", "CutMix with this alpha");
  visit(group, "cutmix_minmax", o.cutmix_minmax, "PCT", "CutMix with boxes between these shares of a side");
  visit(group, "mixup_prob", o.mixup_prob, "P", "probability of MixUp or CutMix for a batch");
  visit(group, "mixup_switch_prob", o.mixup_switch_prob, "P", "probability of CutMix where both are on");
  visit(group, "mixup_mode", o.mixup_mode, "MODE",
        "what shares a mixture: batch, pair, elem (nothing); half: elem, and half of the batch is left");
  visit(group, "mixup_off_epoch", o.mixup_off_epoch, "N", "neither from this epoch on; 0: never off");
  visit(group, "smoothing", o.smoothing, "S", "label smoothing");
  visit(group, "bce_loss", o.bce_loss, "", "binary cross-entropy for each class instead of cross-entropy");

  group = "distillation";
  visit(group, "kd_model_name", o.kd_model_name, "MODEL",
        "the teacher: a model folder (or name) to learn from as well");
  visit(group, "distillation_type", o.distillation_type, "TYPE",
        "what is learned from it: hard, the class that it chooses; soft, its probabilities; none");
  visit(group, "distillation_alpha", o.distillation_alpha, "A",
        "share of the loss with the teacher, 1 - A with labels");
  visit(group, "task_loss_weight", o.task_loss_weight, "W", "weight of the loss with labels, instead of 1 - A");
  visit(group, "distill_loss_weight", o.distill_loss_weight, "W",
        "weight of the loss with the teacher, instead of A (default: 1 - --task-loss-weight if that is given)");
  visit(group, "kd_temperature", o.kd_temperature, "TAU", "soft: temperature of both probabilities");
  visit(group, "unlabeled_dir", o.unlabeled_dir, "DIR",
        "more pictures, without labels, mixed in among the others: they have the loss with the teacher alone");

  group = "pretraining";
  visit(group, "pretrain", o.pretrain, "METHOD", "what is learned from pictures without labels: mae");
  visit(group, "mask_ratio", o.mask_ratio, "SHARE", "share of the patches that are hidden from the encoder");
  visit(group, "norm_pix_loss", o.norm_pix_loss, "",
        "predict each patch normalized by its own mean and deviation, not its pixels");
  visit(group, "decoder_dim", o.decoder_dim, "N", "width of the decoder");
  visit(group, "decoder_depth", o.decoder_depth, "N", "its blocks");
  visit(group, "decoder_heads", o.decoder_heads, "N", "its heads");

  group = "moving average";
  visit(group, "model_ema", o.model_ema, "", "keep an exponential moving average of the weights, and evaluate it");
  visit(group, "model_ema_decay", o.model_ema_decay, "D", "its decay an update");
  visit(group, "model_ema_warmup", o.model_ema_warmup, "", "with a smaller decay in the beginning");

  group = "run";
  visit(group, "seed", o.seed, "S", "all that is random follows from it");
  visit(group, "workers", o.workers, "N", "threads that decode pictures ahead; 0: none");
  visit(group, "threads", o.threads, "N", "compute threads; 0: all cores");
  visit(group, "log_interval", o.log_interval, "N", "updates between lines of progress");
  visit(group, "val_interval", o.val_interval, "N", "epochs between evaluations");
  visit(group, "recovery_interval", o.recovery_interval, "N",
        "updates between checkpoints inside an epoch; 0: one every ten minutes");
  visit(group, "output", o.output, "PATH", "where run folders are made");
  visit(group, "experiment", o.experiment, "NAME", "name of the run folder (default: date, model and picture size)");
  visit(group, "eval_metric", o.eval_metric, "METRIC", "what the best model is chosen by: top1, top5 or loss");
  visit(group, "tta", o.tta, "N", "2: evaluate by the average of each picture and its mirror image; 0: as it is");
  visit(group, "resume", o.resume, "PATH", "run folder to go on with, to the same bits as if it had never stopped");
}

// Error, naming the flag as the command line spells it, if a value makes no sense.
void validate(const TrainOptions& options);

// The weights of the losses: --distillation-alpha, or timm's --task-loss-weight and --distill-loss-weight, of which the
// first alone makes the second what is left to 1, and the second alone makes the first 1.
struct Distillation;
Distillation distillation_options(const TrainOptions& options);

// The learning rate: --lr, or --lr-base · (pictures an update / --lr-base-size), linear or by the square root.
double learning_rate(const TrainOptions& options);

// Options as config.toml holds them, and back; Error names a key that does not exist or a value of the wrong kind.
// `facts` (the version, the CPU …) are written as a last table [facts] that reading passes over.
std::string to_toml(const TrainOptions& options, const std::vector<std::pair<std::string, std::string>>& facts = {});
TrainOptions options_from_toml(const std::filesystem::path& path, TrainOptions defaults = {});

// An option as the command line spells it: "batch_size" is --batch-size.
std::string flag_of(std::string_view option);

// An option that differs between two sets, as config.toml names and writes it.
struct OptionChange {
  std::string name;
  std::string before;
  std::string after;
};
std::vector<OptionChange> changes(const TrainOptions& before, const TrainOptions& after);

}  // namespace vitrail::train
