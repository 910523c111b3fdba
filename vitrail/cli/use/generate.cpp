// `vitrail generate` continues a text, or completes pictures.
#include "vitrail/generate/generate.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/core.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "vitrail/cli/app.h"
#include "vitrail/cli/flags.h"
#include "vitrail/cli/interrupted.h"
#include "vitrail/cli/say.h"
#include "vitrail/cli/texts.h"
#include "vitrail/cli/use/generate_flags.h"
#include "vitrail/io/file.h"
#include "vitrail/io/wording.h"
#include "vitrail/models/quantize.h"
#include "vitrail/models/text/text_model.h"
#include "vitrail/text/corpus.h"
#include "vitrail/text/parts/decoders.h"
#include "vitrail/text/tokenizer.h"
#include "vitrail/train/run/interrupt.h"
#include "vitrail/train/run/run_folder.h"

namespace vitrail::cli {
namespace {

namespace fs = std::filesystem;
using generate::GenerationConfig;
using Ids = std::vector<std::int64_t>;

// Where the part of a text ends that will not change: what further tokens may complete to a character is left out.
std::size_t settled_end(std::string_view text) {
  constexpr std::string_view replacement = "\xEF\xBF\xBD";  // in the place of bytes that are no character
  while (text.ends_with(replacement)) {
    text.remove_suffix(replacement.size());
  }
  return text.size();
}

models::TextModel load(const GenerateFlags& flags, const fs::path& folder, DType dtype) {
  return models::load_text_model(folder, {.weights = flags.compute.int8 ? DType::i8 : dtype});
}

class Generator {
 public:
  explicit Generator(const GenerateFlags& flags)
      : flags_(flags),
        folder_(train::model_of(flags.model)),
        dtype_(flags.compute.apply()),
        model_(load(flags, folder_, dtype_)),
        body_(models::language_of(model_)),
        tokenizer_(open_tokenizer(folder_, body_.vocab_size())),
        config_(own_config(folder_, flags)) {
    check_usage(body_.keeps_keys() || (!flags.cache_dtype && flags.prompt_lookup_num_tokens == 0),
                "'{}' keeps no keys and values: it takes neither --cache-dtype nor --prompt-lookup-num-tokens",
                flags.model);
    check_usage(!flags.slide || body_.max_positions() != models::unbounded_positions,
                "--slide has no effect on '{}', which reads texts of any length", flags.model);
    note_idle_flags(flags_, config_of(flags_, config_, 0, body_.max_positions()));
  }

  // Continues one prompt, the one of this number, which errors call `source`.
  void run(const std::string& prompt, std::int64_t number, const std::string& source) {
    const Ids ids = encoded(prompt, source);
    const GenerationConfig config = config_of(flags_, config_, std::ssize(ids), body_.max_positions());
    check_room(std::ssize(ids), config, source);
    const bool streams = flags_.stream && config.num_beams == 1 && config.num_return_sequences == 1;
    if (flags_.stream && !streams && !said_memory_) {
      say("note: --stream shows one text as it comes, and does nothing with {} and {}\n",
          io::counted(config.num_beams, "beams"), io::counted(config.num_return_sequences, "texts"));
    }
    say_memory(std::ssize(ids), 1, config);
    std::size_t printed = 0;
    generate::GenerateOptions options = options_of({&ids, 1}, number, config);
    if (streams) {
      options.stop = [&](std::int64_t, std::span<const std::int64_t> added) {
        // What a run of bytes is read as is known at its end: if they are no whole characters, none of them is.
        Ids whole = ids;
        whole.insert(whole.end(), added.begin(), added.end());
        while (!whole.empty() && tokenizer_.has(whole.back()) &&
               text::is_byte_token(tokenizer_.token_of(whole.back()))) {
          whole.pop_back();
        }
        const std::string all = text_of({}, whole);
        if (const std::size_t end = settled_end(all); end > printed) {
          fmt::print("{}", all.substr(printed, end - printed));
          std::fflush(stdout);
          printed = end;
        }
        return stops(ids, added);
      };
    }
    generate::Statistics statistics;
    const auto sequences = generate::generate(body_, ids, config, options, &statistics);
    if (streams) {
      const std::string all = text_of(ids, sequences.front().ids);
      fmt::print("{}\n", std::string_view(all).substr(std::min(printed, all.size())));
    } else {
      print(prompt, ids, sequences, statistics, std::ssize(ids));
    }
  }

  // Continues several prompts side by side, and prints what comes of them in their order.
  void run(const std::vector<std::string>& prompts) {
    std::vector<Ids> ids;
    std::int64_t longest = 0, all = 0;
    ids.reserve(prompts.size());
    for (const std::string& prompt : prompts) {
      ids.push_back(encoded(prompt, line_of_prompts(ids.size())));
      longest = std::max(longest, std::ssize(ids.back()));
      all += std::ssize(ids.back());
    }
    const GenerationConfig config = config_of(flags_, config_, 0, body_.max_positions());
    generate::GenerateOptions options = options_of(ids, 0, config);
    const bool as_many_as_fit = !flags_.max_new_tokens && !config_.says_length;
    for (std::size_t i = 0; i < ids.size(); ++i) {
      const std::int64_t length = std::ssize(ids[i]);
      check_room(length, config, line_of_prompts(i), as_many_as_fit);
      if (as_many_as_fit) {
        options.limits.push_back(std::max<std::int64_t>(1, body_.max_positions() - length));
      }
    }
    say_memory(longest, std::min<std::int64_t>(flags_.batch_size, std::ssize(ids)), config);
    generate::Statistics statistics;
    const auto sequences = generate::generate_all(body_, ids, config, flags_.batch_size, options, &statistics);
    for (std::size_t i = 0; i < ids.size(); ++i) {
      if (!sequences[i].empty() && !sequences[i].front().ids.empty()) {  // else it was interrupted before
        print(prompts[i], ids[i], sequences[i], statistics, all);
      }
    }
  }

  // Whether a text may begin with nothing but the model's own token.
  bool begins() const { return config_.bos_token_id.has_value(); }
  // What errors call the prompt of this index in --prompts.
  std::string line_of_prompts(std::size_t index) const {
    return fmt::format("{}: line {}", flags_.prompts == "-" ? "standard input" : flags_.prompts, index + 1);
  }

 private:
  // Throws Error if nothing may follow a prompt, or if it and what is to follow, one token at least if it is
  // `as_many_as_fit`, are longer than what the model takes.
  void check_room(std::int64_t prompt, const GenerationConfig& config, const std::string& source,
                  bool as_many_as_fit = false) const {
    const std::int64_t positions = body_.max_positions();
    const std::int64_t most_new = as_many_as_fit ? 1 : config.most_new_tokens(prompt);
    check(most_new > 0, "{} has {}, and max_length {} leaves no room for new ones", source,
          io::counted(prompt, "tokens"), config.max_length);
    check(flags_.slide || prompt <= positions,
          "{} has {} tokens, but the model is made for at most {}: --slide reads its end and goes on", source, prompt,
          positions);
    check(flags_.slide || prompt + most_new - 1 <= positions,
          "{} has {}, and with {} new ones it would be longer than the {} that the model is made for: --slide goes on "
          "beyond them",
          source, io::counted(prompt, "tokens"), most_new, positions);
  }

  // Says on stderr, once, what the model takes, and the texts that may come of so many prompts, the longest of which is
  // given.
  void say_memory(std::int64_t prompt, std::int64_t prompts, const GenerationConfig& config) {
    if (std::exchange(said_memory_, true)) {
      return;
    }
    const auto weights = static_cast<std::size_t>(models::parameter_bytes(*model_.net));
    const std::int64_t tokens = std::min(prompt + config.most_new_tokens(prompt), body_.max_positions());
    const std::int64_t texts = std::max(config.num_beams, config.num_return_sequences) * prompts;
    const std::size_t cache =
        body_.state_bytes(tokens, flags_.cache_dtype.value_or(dtype_)) * static_cast<std::size_t>(texts);
    const auto megabytes = [](std::size_t bytes) { return static_cast<double>(bytes) / 1e6; };
    say("memory: {:.1f} MB of weights, {:.1f} MB for {} of {} tokens\n", megabytes(weights), megabytes(cache),
        io::counted(texts, "texts"), tokens);
  }

  std::string text_of(Ids ids, std::span<const std::int64_t> added) const {
    // What stands for no token of the tokenizer is no text, as in transformers.
    std::ranges::copy_if(added, std::back_inserter(ids), [&](std::int64_t id) { return tokenizer_.has(id); });
    return tokenizer_.decode(ids);
  }
  // Whether one of the stop words ends in what was added to a prompt; it may begin in the prompt.
  bool stops(const Ids& ids, std::span<const std::int64_t> added) const {
    if (stop_words().empty()) {
      return false;
    }
    const std::string text = text_of(ids, added);
    const std::size_t prompt = text_of(ids, {}).size();
    return std::ranges::any_of(stop_words(), [&](const std::string& word) {
      return text.find(word, prompt - std::min(prompt, word.size() - 1)) != std::string::npos;
    });
  }
  const std::vector<std::string>& stop_words() const {
    return flags_.stop.empty() ? config_.stop_strings : flags_.stop;
  }
  // What is continued when this prompt is.
  Ids encoded(const std::string& prompt, const std::string& source) const {
    Ids ids = tokenizer_.encode(prompt).ids;
    note_unknown(tokenizer_, ids, source);
    const std::optional<std::int64_t>& begin = config_.bos_token_id;
    if (ids.empty() && begin) {
      ids.push_back(*begin);
    }
    check(!ids.empty(), "{} is empty: there is nothing to continue", source);
    return ids;
  }

  // `prompts`, of which the first has this number, must outlive the options.
  generate::GenerateOptions options_of(std::span<const Ids> prompts, std::int64_t first,
                                       const GenerationConfig& config) const {
    generate::GenerateOptions options{.dtype = dtype_, .seed = flags_.seed.value_or(0), .slides = flags_.slide};
    options.cache_dtype = flags_.cache_dtype;
    options.prompt_lookup_num_tokens = flags_.prompt_lookup_num_tokens;
    options.max_matching_ngram_size = flags_.max_matching_ngram_size.value_or(options.max_matching_ngram_size);
    if (!stop_words().empty()) {  // else no token needs to be decoded before the end
      options.stop = [this, prompts, first, texts = config.num_return_sequences](std::int64_t text,
                                                                                 std::span<const std::int64_t> added) {
        return stops(prompts[static_cast<std::size_t>(text / texts - first)], added);
      };
    }
    for (std::size_t i = 0; i < prompts.size(); ++i) {
      options.numbers.push_back(first + static_cast<std::int64_t>(i));
    }
    options.interrupted = train::Interrupt::requested;
    return options;
  }

  // Prints what has come of a prompt; `prompt_tokens` are those of the whole run, which the statistics are about.
  void print(const std::string& prompt, const Ids& ids, const std::vector<generate::Sequence>& sequences,
             const generate::Statistics& s, std::int64_t prompt_tokens) const {
    if (!flags_.json) {
      for (const generate::Sequence& sequence : sequences) {
        fmt::print("{}\n", text_of(ids, sequence.ids));
      }
      return;
    }
    nlohmann::ordered_json json;
    json["prompt"] = prompt;
    std::size_t longest = 0;
    for (const generate::Sequence& sequence : sequences) {
      nlohmann::ordered_json one = {{"text", text_of(ids, sequence.ids)}, {"ids", sequence.ids}};
      if (sequence.score != 0 || flags_.num_beams.value_or(config_.num_beams) > 1) {
        one["score"] = sequence.score;
      }
      longest = std::max(longest, sequence.ids.size());
      json["sequences"].push_back(std::move(one));
    }
    json["prompt_tokens"] = ids.size();
    json["new_tokens"] = longest;
    json["prompt_tokens_per_second"] = static_cast<double>(prompt_tokens) / s.prompt_seconds;
    json["tokens_per_second"] = s.tokens_per_second();
    json["cache_bytes"] = s.cache_bytes;
    fmt::print("{}\n", json.dump());
  }

  const GenerateFlags& flags_;
  fs::path folder_;
  DType dtype_;
  models::TextModel model_;
  const models::LanguageBody& body_;
  text::Tokenizer tokenizer_;
  GenerationConfig config_;
  bool said_memory_ = false;
};

void generate_texts(const GenerateFlags& flags) {
  check_usage(!flags.prompt || flags.prompts.empty(), "PROMPT and --prompts exclude each other");
  check_usage(
      !flags.stream || (!flags.json && flags.num_beams.value_or(1) == 1 && flags.num_return_sequences.value_or(1) == 1),
      "--stream prints one text as it comes: it goes with neither --json, beams nor --num-return-sequences");
  check_usage(!flags.slide || (flags.num_beams.value_or(1) == 1 && flags.prompt_lookup_num_tokens == 0),
              "--slide goes on with one text: it goes with neither beams nor prompt lookup");
  check_usage(flags.prompt_lookup_num_tokens == 0 ||
                  (flags.num_beams.value_or(1) == 1 && flags.num_return_sequences.value_or(1) == 1),
              "--prompt-lookup-num-tokens is for one text at a time: it goes with neither beams nor "
              "--num-return-sequences");
  check_usage(!(flags.min_new_tokens > flags.max_new_tokens) || !flags.max_new_tokens,
              "--min-new-tokens {} is more than --max-new-tokens", flags.min_new_tokens.value_or(0));
  check_usage(std::ranges::find(flags.stop, "") == flags.stop.end(), "--stop is empty: every text would end at once");
  const train::Interrupt interrupt;
  const fs::path folder = train::model_of(flags.model);
  check_trained_on_texts(folder, flags.model);
  if (fs::exists(folder / "preprocessor_config.json")) {
    check_usage(flags.prompts.empty() && !flags.stream && !flags.json && flags.stop.empty() && !flags.max_new_tokens &&
                    !flags.min_new_tokens && !flags.slide && !flags.cache_dtype && flags.prompt_lookup_num_tokens == 0,
                "'{}' completes pictures: it takes none of --prompts, --stream, --json, --stop, --max-new-tokens, "
                "--min-new-tokens, --slide, --cache-dtype and --prompt-lookup-num-tokens",
                flags.model);
    const DType dtype = flags.compute.apply();
    const models::TextModel model = load(flags, folder, dtype);
    const models::LanguageBody& body = models::language_of(model);
    const GenerationConfig config = config_of(flags, own_config(folder, flags), 1, body.max_positions());
    note_idle_flags(flags, config);
    complete_pictures(body, folder, flags.prompt, flags.pictures, config, flags.seed.value_or(0), dtype);
    return;
  }
  check_usage(!flags.pictures.given(), "'{}': the model's words are no colours: it takes neither --rows nor --output",
              flags.model);
  Generator generator(flags);
  check_usage(flags.prompt || !flags.prompts.empty() || generator.begins(),
              "name a PROMPT, - for the standard input, or --prompts FILE");
  if (flags.prompt && flags.prompt != "-" && io::is_file(*flags.prompt)) {
    say_note(fmt::format("'{}' is continued as a text: --prompts {} reads the file, a prompt a line", *flags.prompt,
                         io::shell_word(*flags.prompt)));
  }
  std::vector<std::string> prompts = {flags.prompt.value_or("")};
  const bool from_input = flags.prompts == "-" || flags.prompt == "-";
  if (from_input || !flags.prompts.empty()) {
    std::string all =
        from_input ? io::read_standard_input() : std::string(io::without_byte_order_mark(io::read_text(flags.prompts)));
    if (flags.skip_broken) {
      std::int64_t skipped = 0;
      all = text::without_broken_lines(all, skipped);
      note_skipped_lines(skipped);
    }
    text::check_corpus(all, from_input ? "standard input" : flags.prompts);
    prompts = flags.prompts.empty() ? std::vector{all} : io::lines_of(all);
    check(!prompts.empty(), "'{}' has no prompts", flags.prompts);
  }
  if (prompts.size() > 1 && flags.batch_size > 1 && !flags.stream && !flags.slide) {
    generator.run(prompts);
    end_if_interrupted();
    return;
  }
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    generator.run(prompts[i], static_cast<std::int64_t>(i),
                  !flags.prompts.empty() ? generator.line_of_prompts(i)
                  : flags.prompt == "-"  ? "the prompt in the standard input"
                                         : "the prompt");
    end_if_interrupted();
  }
}

}  // namespace

void add_generate(CLI::App& app) {
  CLI::App& command = *app.add_subcommand("generate", "Continue a text with a language model, or complete pictures");
  const auto flags = std::make_shared<GenerateFlags>();
  command.add_option("MODEL", flags->model, "Folder of a language model and its tokenizer, or a run folder")
      ->required()
      ->type_name("");
  command
      .add_option("PROMPT", flags->prompt,
                  "What is continued; -: from stdin; for a model of pixels an image or a folder of them")
      ->type_name("");
  command.add_option("--prompts", flags->prompts, "Continue each line of a file, - for the standard input")
      ->type_name("FILE");
  command.add_flag("--skip-broken", flags->skip_broken, "Leave out lines that are not UTF-8, and count them")
      ->needs("--prompts");
  command
      .add_option("-b,--batch-size", flags->batch_size,
                  "Lines of --prompts that are continued together; where one ends, the next begins")
      ->capture_default_str()
      ->needs("--prompts")
      ->check(at_least(1))
      ->type_name("N");
  add_cache_flag(command, flags->cache_dtype);
  add_search_flags(command, *flags);
  add_sampling_flags(command, *flags);
  command.add_option("--rows", flags->pictures.rows, "Rows of a picture that are given (default: half of them)")
      ->check(whole_number())
      ->type_name("N")
      ->group("Pictures");
  expect_ending(command.add_option("--output", flags->pictures.output, "Image of the completed pictures")
                    ->type_name("FILE.png")
                    ->group("Pictures"),
                ".png");
  command.add_flag("--stream", flags->stream, "Print the text as it comes");
  command.add_flag("--json", flags->json, "Print an object for each prompt: texts, token ids and pace");
  add_compute_flags_with_int8(command, flags->compute);
  add_examples(command,
               {"vitrail generate runs/shakespeare \"To be, or\" --stream",
                "vitrail generate my_gpt2 \"Once upon a time\" --do-sample --temperature 0.8 --top-k 40 --seed 1",
                "vitrail generate my_llama --prompts questions.txt --num-beams 4 --json",
                "vitrail generate runs/pixels cat.png --do-sample --num-return-sequences 4 --output cats.png"});
  command.callback([flags] { generate_texts(*flags); });
}

}  // namespace vitrail::cli
