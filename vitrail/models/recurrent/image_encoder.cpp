#include "vitrail/models/recurrent/image_encoder.h"

#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "vitrail/io/json.h"
#include "vitrail/models/base/registry.h"
#include "vitrail/models/formats/preprocessor.h"

namespace vitrail::models {
namespace {

void read_preparation(io::Fields& f, PretrainedConfig& p) {
  const std::vector<std::int64_t> size =
      f.get<std::vector<std::int64_t>>("input_size", {p.channels, p.height, p.width});
  constexpr std::int64_t largest = 1 << 16;
  check(size.size() == 3 && size[0] == p.channels && size[1] > 0 && size[1] <= largest && size[2] > 0 &&
            size[2] <= largest,
        "{}: 'input_size' must be [{}, height, width]", f.source(), p.channels);
  p.height = size[1];
  p.width = size[2];
  p.interpolation = f.get<std::string>("interpolation", p.interpolation);
  p.crop_pct = f.get<double>("crop_pct", p.crop_pct, {1e-3, 10});
  p.crop_mode = f.get<std::string>("crop_mode", p.crop_mode);
  p.mean = f.get<std::vector<double>>("mean", p.mean);
  p.std = f.get<std::vector<double>>("std", p.std);
  check(p.mean.size() == p.std.size() && std::ssize(p.mean) == p.channels,
        "{}: 'mean' and 'std' have {} and {} numbers, but images have {} channels", f.source(), p.mean.size(),
        p.std.size(), p.channels);
}

}  // namespace

void adopt_encoder(Model& encoder, nn::ParameterStore& parameters, const std::string& source) {
  check(encoder.net->num_classes() == 0, "{}: the image model of a recurrent network has no classifier", source);
  parameters = std::move(encoder.net->parameters);
}

void initialize_own(const nn::ParameterStore& parameters, const std::function<bool(const std::string&)>& is_own) {
  for (const nn::Parameter& parameter : parameters.all()) {
    if (is_own(parameter.name) && parameters.options().fill == nn::Fill::leave) {
      parameters.initialize(parameter.name);
    }
  }
}

nlohmann::ordered_json encoder_json(const Model& encoder) {
  const PretrainedConfig& p = encoder.pretrained;
  nlohmann::ordered_json json = {
      {"architecture", encoder.architecture},
      {"arguments", nlohmann::ordered_json::parse(encoder.arguments)},
      {"input_size", {p.channels, p.height, p.width}},  // which arguments tell of models of one size alone
      {"interpolation", p.interpolation},
      {"crop_pct", p.crop_pct},
      {"crop_mode", p.crop_mode},
      {"mean", p.mean},
      {"std", p.std}};
  if (p.processor) {
    json["image_processor"] = processor_json(*p.processor);
  }
  return json;
}

Model read_encoder(io::Fields& config) {
  io::Fields f = config.object("encoder");
  f.object("arguments");  // the family reads them
  Model encoder = build_model(f.get<std::string>("architecture"), config.raw("encoder")["arguments"],
                              config.source() + ": 'encoder'", {.fill = nn::Fill::leave});
  read_preparation(f, encoder.pretrained);
  if (f.kind("image_processor") != io::Kind::absent) {
    encoder.pretrained.processor = read_processor(f.raw("image_processor"), f.source() + ": 'image_processor'");
  }
  f.finish();
  return encoder;
}

}  // namespace vitrail::models
