/// \file
/// Tokenizers that sentencepiece reads.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "vitrail/text/engine.h"

namespace vitrail::text {

/// A `.model` or `.spm` file, with the pieces, ids and spans of the sentencepiece library, which does the work. It adds
/// no special tokens: what a model wants around a text is not in the file.
std::shared_ptr<const Engine> read_sentencepiece(const std::filesystem::path& file);
/// The same of the file's content; `name` is what it is called when it is saved.
std::shared_ptr<const Engine> make_sentencepiece(std::string bytes, const std::string& name);

/// The same as transformers' SiglipTokenizer: texts lose their punctuation, their capitals unless `config`, the
/// tokenizer_config.json beside the file, says otherwise, and further white space, and its `eos_token` ends them. Its
/// special tokens are not looked for in a text.
std::shared_ptr<const Engine> read_siglip(const std::filesystem::path& file, std::string config);

/// A folder of Marian's: `source.spm` cuts texts into pieces whose ids are in `vocab.json`, `</s>` ends them, and
/// `target.spm` joins the pieces of a translation, as MarianTokenizer of Hugging Face's transformers.
std::shared_ptr<const Engine> read_marian(const std::filesystem::path& folder);
/// The same for texts of the language that is translated to: `target.spm` cuts them too.
std::shared_ptr<const Engine> read_marian_target(const std::filesystem::path& folder);
/// Such a tokenizer of one file of sentencepiece for both languages, which `name` names in messages: `</s>` has the id
/// 0, `<unk>` 1, then come its pieces in order, and last `<pad>`.
std::shared_ptr<const Engine> make_marian(const std::string& bytes, const std::string& name);

}  // namespace vitrail::text
