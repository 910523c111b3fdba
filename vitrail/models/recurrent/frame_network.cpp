#include "vitrail/models/recurrent/frame_network.h"

#include <algorithm>
#include <array>
#include <utility>

#include <nlohmann/json.hpp>

#include "vitrail/io/file.h"
#include "vitrail/io/json.h"
#include "vitrail/io/safetensors.h"
#include "vitrail/io/suggest.h"
#include "vitrail/models/base/arguments.h"
#include "vitrail/models/formats/weights.h"
#include "vitrail/models/recurrent/image_encoder.h"
#include "vitrail/models/recurrent/recurrent.h"
#include "vitrail/nn/drop.h"
#include "vitrail/ops/math/arithmetic.h"
#include "vitrail/ops/shape/embedding.h"
#include "vitrail/ops/shape/shape.h"

namespace vitrail::models {
namespace {

namespace fs = std::filesystem;

constexpr const char* frame_network_type = "recurrent_frames";
constexpr std::array<std::string_view, 3> target_names = {"sequence", "frames", "angle"};

// Where the rows of sequences that lie one after the other come from and go to.
struct Rows {
  explicit Rows(const Tensor& lengths) {
    const auto spans = lengths.span<std::int64_t>();
    longest = *std::max_element(spans.begin(), spans.end());
    for (const std::int64_t length : spans) {
      check(length >= 1, "a sequence of {} frames cannot be read", length);
      for (std::int64_t t = 0; t < longest; ++t) {
        padded.push_back(total + std::min(t, length - 1));
        if (t < length) {
          whole.push_back(std::ssize(padded) - 1);
        }
      }
      last.push_back(whole.back());
      first.push_back(std::ssize(padded) - longest);
      total += length;
    }
  }
  bool equal() const { return padded.size() == whole.size(); }

  std::int64_t total = 0;
  std::int64_t longest = 0;
  std::vector<std::int64_t> padded;       // [B, T]: the row of each step; behind the end of a sequence, its last
  std::vector<std::int64_t> whole;        // [N]: the place in [B, T] of each row
  std::vector<std::int64_t> first, last;  // [B]: those of the ends of each sequence
};

Tensor taken(const Tensor& x, const std::vector<std::int64_t>& rows) {
  return ops::index_select(x, 0, Tensor::from(rows, {std::ssize(rows)}));
}

}  // namespace

FrameTarget::Kind target_named(std::string_view name, const std::string& source) {
  const auto it = std::ranges::find(target_names, name);
  check(it != target_names.end(), "{} must be sequence, frames or angle, not '{}'", source, name);
  return static_cast<FrameTarget::Kind>(it - target_names.begin());
}

std::string_view name_of(FrameTarget::Kind kind) { return target_names[static_cast<std::size_t>(kind)]; }

FrameNetwork::FrameNetwork(Model frames, const std::string& fields, FrameTarget what, const std::string& source)
    : encoder(std::move(frames)), target(std::move(what)), network_config_(fields) {
  adopt_encoder(encoder, parameters, source);
  check(target.outputs() > 0, "{}: there are no classes to tell apart", source);
  const nlohmann::json json = io::parse_json(fields, source);
  io::Fields f(json, source);
  nn::RecurrentConfig c;
  c.bidirectional = f.get<bool>("bidirectional", false);
  read_cells(f, c);
  f.finish();
  c.input_size = encoder.net->num_features();
  const nn::Scope scope = nn::Scope(parameters) / "sequence";
  network_ = std::make_unique<const nn::Recurrent>(scope / "rnn", c);
  head_ = std::make_unique<const nn::Linear>(scope / "head", c.directions() * c.output_size(), target.outputs());
  initialize_own(parameters, is_own);
}

Tensor FrameNetwork::outputs(const Tensor& x, const Tensor& lengths, nn::Pass& pass) const {
  const Rows rows(lengths);
  check(rows.total == x.size(0), "the sequences have {} frames together, but there are {} images", rows.total,
        x.size(0));
  const auto batch = lengths.size(0);
  const Tensor features = ops::cast(encoder.net->forward(x, pass), pass.dtype);
  const Tensor sequences =
      ops::reshape(rows.equal() ? features : taken(features, rows.padded), {batch, rows.longest, features.size(1)});
  const Tensor all = (*network_)(sequences, {}, rows.equal() ? Tensor() : lengths, pass).output;
  Tensor states = ops::reshape(all, {batch * rows.longest, all.size(2)});
  if (target.each_frame()) {
    states = rows.equal() ? states : taken(states, rows.whole);
  } else {
    const std::int64_t width = network().output_size();
    const Tensor ends = taken(states, rows.last);
    states =
        network().bidirectional
            ? ops::concat({ops::narrow(ends, 1, 0, width), ops::narrow(taken(states, rows.first), 1, width, width)}, 1)
            : ends;
  }
  // The head runs in f32 whatever the pass's dtype is.
  return (*head_)(nn::Dropout{network().dropout}(ops::cast(states, DType::f32), pass));
}

std::int64_t FrameNetwork::layer_of(const std::string& parameter) const {
  const std::int64_t below = encoder.net->depth();
  if (!is_own(parameter)) {
    return std::min(encoder.net->layer_of(parameter), below);
  }
  return is_head(parameter) ? depth() + 1 : below + layer_of_recurrent(parameter);
}

bool is_frame_network_folder(const fs::path& folder) { return model_type_in(folder) == frame_network_type; }

std::unique_ptr<FrameNetwork> load_frame_network(const fs::path& folder) {
  const std::string source = (folder / config_file).string();
  const nlohmann::json config = io::read_json(source);
  io::Fields f(config, source);
  const auto type = f.get<std::string>("model_type");
  check(type == frame_network_type, "{}: 'model_type' is '{}', expected '{}'", source, type, frame_network_type);
  FrameTarget target;
  target.kind = target_named(f.get<std::string>("target"), source + ": 'target'");
  target.classes = f.get<std::vector<std::string>>("label_names", std::vector<std::string>());
  target.bins = f.get<std::int64_t>("angle_bins", 0, {0, largest_size});
  target.circular = f.get<bool>("circular", false);
  target.frames = f.get<std::string>("frames", "");
  f.object("network");  // the network reads it
  Model encoder = read_encoder(f);
  f.finish();
  auto model = std::make_unique<FrameNetwork>(std::move(encoder), f.raw("network").dump(), std::move(target),
                                              source + ": 'network'");
  const WeightsTarget weights = whole_network(model->parameters);
  load_weights(weights, open_weights(folder), {}, {});
  return model;
}

void save_frame_network(const FrameNetwork& model, const fs::path& folder) {
  const nlohmann::ordered_json config = {
      {"model_type", frame_network_type},       {"target", name_of(model.target.kind)},
      {"label_names", model.target.classes},    {"angle_bins", model.target.bins},
      {"circular", model.target.circular},      {"frames", model.target.frames},
      {"encoder", encoder_json(model.encoder)}, {"network", nlohmann::ordered_json::parse(model.network_config())}};
  io::replace_folder(folder, [&](const fs::path& temporary) {
    io::write_atomically(temporary / config_file, config.dump(2) + "\n");
    io::save_safetensors(temporary / weights_file, named_tensors(model.parameters));
  });
}

}  // namespace vitrail::models
