#include "vitrail/train/pretrain/mocov3.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <nlohmann/json.hpp>

#include "vitrail/autograd/tape.h"
#include "vitrail/models/vit/vit.h"
#include "vitrail/models/vit/vit_init.h"
#include "vitrail/ops/math/arithmetic.h"
#include "vitrail/optim/ema.h"
#include "vitrail/optim/schedule.h"
#include "vitrail/tensor/error.h"
#include "vitrail/train/pretrain/losses.h"
#include "vitrail/train/run/gradient_sum.h"
#include "vitrail/train/run/run_folder.h"

namespace vitrail::train {
namespace {

namespace fs = std::filesystem;

const models::VisionTransformer* transformer_of(const models::Model& model) {
  return models::body_of<models::VisionTransformer>(*model.net);
}

// The learnt positions [1, prefix + rows · columns, D] of a Vision Transformer: of its patches row by row, behind some
// of the tokens that are none.
struct GridPositions {
  const nn::Parameter* table = nullptr;
  std::int64_t prefix = 0;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
};
std::optional<GridPositions> grid_positions(const models::Model& model) {
  const models::TokenLayout layout = model.net->token_layout(model.pretrained.height, model.pretrained.width);
  const nn::Parameter* const table = model.net->parameters.find("pos_embed");
  if (table == nullptr || table->buffer || table->value.rank() != 3) {
    return std::nullopt;
  }
  const std::int64_t prefix = table->value.size(1) - layout.rows * layout.columns;
  const bool fits = table->value.size(0) == 1 && prefix >= 0 && prefix <= layout.prefix;
  return fits ? std::optional(GridPositions{table, prefix, layout.rows, layout.columns}) : std::nullopt;
}

// Whether a Vision Transformer takes timm's weight_init, which the families of EVA and BEiT do not have.
bool takes_weight_init(const models::VisionTransformer& vit) {
  const models::VitConfig::Kind kind = vit.config().kind;
  return kind != models::VitConfig::Kind::eva && kind != models::VitConfig::Kind::beit;
}

// The linear layers of the blocks as timm's weight_init "moco" begins with them.
void initialize_blocks(const nn::ParameterStore& parameters, std::uint64_t seed) {
  const std::string_view weight = ".weight";
  for (const nn::Parameter& one : parameters.all()) {
    if (!one.name.starts_with("blocks.") || !one.name.ends_with(weight) || one.value.rank() != 2) {
      continue;
    }
    nn::fill(one.value, models::moco_init(one.name, one.value.shape()), {seed, hash(one.name)});
    const std::string bias = one.name.substr(0, one.name.size() - weight.size()) + ".bias";
    if (const nn::Parameter* const own = parameters.find(bias)) {
      nn::fill(own->value, nn::Init::zeros(), {seed, hash(bias)});
    }
  }
}

// A Vision Transformer that is made by its name starts as in MoCo v3's code; one of a folder goes on as it is.
models::Model open_moco_encoder(const PretrainMocov3Options& options, const fs::path& checkpoint) {
  const bool fresh = checkpoint.empty() && !models::names_folder(model_of(options.model).string());
  PretrainMocov3Options asked = options;
  if (fresh) {
    models::CreateOptions look;
    look.fill = nn::Fill::meta;
    nlohmann::json arguments = nlohmann::json::parse(asked.model_kwargs);
    const models::Model model = models::open_model(options.model, look);
    const models::VisionTransformer* const vit = transformer_of(model);
    if (vit != nullptr && takes_weight_init(*vit) && !arguments.contains("weight_init")) {
      arguments["weight_init"] = "moco";
      asked.model_kwargs = arguments.dump();
    }
  }
  models::Model model = open_encoder(asked, checkpoint, options.drop_path);
  if (fresh && transformer_of(model) != nullptr) {
    initialize_as_mocov3(model, static_cast<std::uint64_t>(options.seed));
  }
  return model;
}

class PretrainMocov3 final : public ViewTask {
 public:
  PretrainMocov3(const PretrainMocov3Options& options, const fs::path& checkpoint);

  nn::Network& network() override { return *network_; }
  Tensor loss(nn::Pass& pass) override;
  void updating(std::int64_t update) override;
  std::vector<Tensor> statistics() const override { return running_statistics(momentum_->parameters); }
  io::NamedTensors state() const override { return momentum_state(*momentum_); }
  std::string loss_axis() const override { return "contrastive loss"; }

 protected:
  const EncoderNetwork& trained() const override { return *network_; }

 private:
  float temperature() const {
    return static_cast<float>(options_.moco_t.value_or(transformer_of(network_->encoder) != nullptr ? 0.2 : 1));
  }

  const PretrainMocov3Options options_;
  std::unique_ptr<ProjectedEncoder> network_;   // with the predictor
  std::unique_ptr<ProjectedEncoder> momentum_;  // without
  std::int64_t followed_ = -1;                  // the update before whose batches the momentum encoder has followed
};

PretrainMocov3::PretrainMocov3(const PretrainMocov3Options& options, const fs::path& checkpoint)
    : ViewTask(options), options_(options) {
  models::Model encoder = open_moco_encoder(options_, checkpoint);
  const bool tokens = transformer_of(encoder) != nullptr;
  const nn::ProjectorConfig projector = {.hidden = options_.moco_mlp_dim,
                                         .out = options_.moco_dim,
                                         .layers = tokens ? 3 : 2,
                                         .last_norm = nn::LastNorm::plain};
  const nn::ProjectorConfig predictor = {.in = options_.moco_dim,
                                         .hidden = options_.moco_mlp_dim,
                                         .out = options_.moco_dim,
                                         .layers = 2,
                                         .last_norm = tokens ? nn::LastNorm::plain : nn::LastNorm::none};
  network_ = std::make_unique<ProjectedEncoder>(std::move(encoder), projector, predictor);
  momentum_ = std::make_unique<ProjectedEncoder>(open_encoder(options_, checkpoint, options_.drop_path), projector);
  network_->decays_tokens = true;
  check(tokens || options_.stop_grad_conv1, "--no-stop-grad-conv1 has no effect on {}, which is no Vision Transformer",
        options_.model);
  if (tokens) {
    if (grid_positions(network_->encoder)) {
      network_->parameters.set_trainable("pos_embed", false);
    }
    for (const char* name : {"patch_embed.proj.weight", "patch_embed.proj.bias"}) {
      if (options_.stop_grad_conv1 && network_->parameters.find(name) != nullptr) {
        network_->parameters.set_trainable(name, false);
      }
    }
  }
  if (!checkpoint.empty()) {
    load_trained(checkpoint);
  }
  copy_parameters(*network_, *momentum_);
  open_views(options_.view_transforms(network_->encoder.pretrained));
}

// The momentum encoder follows before its own forward of the step.
void PretrainMocov3::updating(std::int64_t update) {
  if (std::exchange(followed_, update) != update) {  // unless all batches were broken
    optim::follow(momentum_->parameters, network_->parameters,
                  options_.moco_m_cos ? mocov3_momentum(options_.moco_m, share_before(update)) : options_.moco_m);
  }
}

Tensor PretrainMocov3::loss(nn::Pass& pass) {
  const auto [h0, h1] = encode_two(*network_, batch(), pass);
  const auto predicted = [&](const Tensor& h) { return (*network_->predictor)(network_->head(h, pass), pass); };
  const Tensor q0 = predicted(h0);
  const Tensor q1 = predicted(h1);
  Tensor k0;
  Tensor k1;
  {
    const autograd::NoGrad no_grad;
    const auto [m0, m1] = encode_two(*momentum_, batch(), pass);
    k0 = momentum_->head(m0, pass);
    k1 = momentum_->head(m1, pass);
  }
  return contrastive_loss(q0, k1, temperature()) + contrastive_loss(q1, k0, temperature());
}

}  // namespace

PretrainMocov3Options::PretrainMocov3Options() {
  model = "vit_small_patch16_224";
  batch_size = 256;
  lr_base = 1.5e-4;
  weight_decay = 0.1;
  weight_decay_all = true;
}

void PretrainMocov3Options::describe(OptionList& list) {
  add_view_options(list, *this);
  list.group("pretraining");
  list.add("moco_dim", moco_dim, "N", "Width of what is compared").at_least(1).settled();
  list.add("moco_mlp_dim", moco_mlp_dim, "N", "Width inside projector and predictor").at_least(1).settled();
  list.add("moco_m", moco_m, "M", "Momentum of the momentum encoder").share();
  list.add("moco_m_cos", moco_m_cos, "", "Let the momentum grow to 1 by half a cosine");
  list.add("moco_t", moco_t, "T", "Temperature (default: 0.2 for a Vision Transformer, 1 for others)").positive();
  list.add("stop_grad_conv1", stop_grad_conv1, "",
           "Leave the patch embedding of a Vision Transformer as it is at first, for stability")
      .settled();
  list.add("crop_min", crop_min, "SHARE", "Least share of an image's area that a view shows").positive().share();
  add_view_run_options(list, *this, {"deviation", "effective_rank"});
}

std::vector<data::Transform> PretrainMocov3Options::view_transforms(const data::ImageConfig& images) const {
  ViewRecipe first = {.scale = {crop_min, 1}, .blur_prob = 1, .interpolation = "bilinear"};
  ViewRecipe second = first;
  second.blur_prob = 0.1;
  second.solarize_prob = 0.2;
  return {view_transform(images, first), view_transform(images, second)};
}

std::unique_ptr<Task> PretrainMocov3Options::make(const fs::path& checkpoint) const {
  return std::make_unique<PretrainMocov3>(*this, checkpoint);
}

void initialize_as_mocov3(const models::Model& model, std::uint64_t seed) {
  const models::VisionTransformer* vit = transformer_of(model);
  check(vit != nullptr, "'{}' is no Vision Transformer", model.architecture);
  const nn::ParameterStore& parameters = model.net->parameters;
  const auto start = [&](const char* name, const nn::Init& init) {
    if (const nn::Parameter* parameter = parameters.find(name)) {
      nn::fill(parameter->value, init, {seed, hash(name)});
    }
  };
  const nn::Size2 patch = vit->config().patch_size;
  const double fans = static_cast<double>(3 * patch[0] * patch[1] + vit->config().embed_dim);
  start("patch_embed.proj.weight", nn::Init::uniform(static_cast<float>(std::sqrt(6 / fans))));
  start("patch_embed.proj.bias", nn::Init::zeros());
  start("cls_token", nn::Init::normal(1e-6F));
  if (!takes_weight_init(*vit)) {
    initialize_blocks(parameters, seed);
  }
  if (const std::optional<GridPositions> positions = grid_positions(model)) {
    const Tensor& table = positions->table->value;
    table.copy_from(mocov3_positions(positions->rows, positions->columns, table.size(2), positions->prefix));
    table.touch();
  }
}

Tensor mocov3_positions(std::int64_t rows, std::int64_t columns, std::int64_t dim, std::int64_t prefix) {
  check(dim % 4 == 0, "positions of sines and cosines in two dimensions need a width divisible by 4, not {}", dim);
  const std::int64_t quarter = dim / 4;
  const Tensor table = Tensor::zeros({1, prefix + rows * columns, dim});
  float* out = table.data<float>() + prefix * dim;
  for (std::int64_t n = 0; n < rows * columns; ++n, out += dim) {
    const std::int64_t line = n / columns;
    for (std::int64_t i = 0; i < quarter; ++i) {
      const double omega = std::pow(10000.0, -static_cast<double>(i) / static_cast<double>(quarter));
      const double row = static_cast<double>(line) * omega;
      const double column = static_cast<double>(n % columns) * omega;
      out[i] = static_cast<float>(std::sin(row));
      out[quarter + i] = static_cast<float>(std::cos(row));
      out[2 * quarter + i] = static_cast<float>(std::sin(column));
      out[3 * quarter + i] = static_cast<float>(std::cos(column));
    }
  }
  return table;
}

double mocov3_momentum(double start, double share) { return optim::cosine_between(start, 1, share); }

}  // namespace vitrail::train
