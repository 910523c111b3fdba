/// \file
/// Which kind of model a name or a folder stands for.
#pragma once

#include <string>
#include <string_view>

namespace vitrail::models {

/// The kinds of models, of which each has functions of its own to open it.
enum class ModelKind {
  images,     ///< of images or clips: open_model()
  joint,      ///< of images and texts: load_clip(); open_model() takes its image model
  texts,      ///< open_text_model()
  captioner,  ///< load_captioner()
  frames,     ///< of sequences of images: load_frame_network()
  detector,   ///< load_detector()
  answerer,   ///< of questions about images: load_vqa(), or load_blip()
  sets,       ///< load_set_model()
};

/// What is said of a kind of model.
struct KindWords {
  std::string_view is_or_does;  ///< behind the model's name: "captions images"
  std::string_view use;         ///< which commands and tasks take it, a clause
};
const KindWords& words_of(ModelKind kind);

/// The kind of the model that `name_or_folder` stands for; ModelKind::images where it stands for none.
ModelKind kind_of(const std::string& name_or_folder);
/// Throws Error unless there is an architecture of images "NAME" or "NAME.TAG"; it lists similar names, those of models
/// of texts among them, or says where to find them.
void check_architecture(const std::string& name);
/// Whether open_model() takes models of this kind.
bool has_image_model(ModelKind kind);
/// Throws Error, which says what it is and what takes it, if `name_or_folder` stands for a model that open_model() does
/// not take. `given` is how the model was named, if not so.
void check_has_image_model(const std::string& name_or_folder, const std::string& given = "");

}  // namespace vitrail::models
