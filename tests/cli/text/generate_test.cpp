// `vitrail train --task lm` and `vitrail generate`, as a person types them.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "tests/cli/language_model.h"
#include "vitrail/io/file.h"

namespace vitrail::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class Generate : public InAFolder {
 protected:
  static void SetUpTestSuite() {
    InAFolder::SetUpTestSuite();
    write("text.txt", repeated("der Bär ist da. ", 60));
    trained_ = vitrail("train " + path("text.txt") +
                       " --task lm --model-kwargs n_layer=2 n_head=2 n_embd=24 --block-size 40 "
                       "--epochs 30 --lr 1e-2 -b 4 --drop 0 --threads 1 --output " +
                       path("runs") + " --experiment one");
  }
  static Outcome generate(const std::string& arguments, const std::string& input = "") {
    return vitrail("generate " + path("runs/one") + " " + arguments + " --threads 1", input);
  }

  static inline Outcome trained_;
};

TEST_F(Generate, HoldsWeightsInInt8) {
  const Outcome f32 = generate("'der B' --max-new-tokens 20"), int8 = generate("'der B' --max-new-tokens 20 --int8");
  EXPECT_EQ(int8.status, 0) << int8.err;
  EXPECT_EQ(int8.out, f32.out) << "what was learnt by heart is not forgotten";
  EXPECT_EQ(generate("'der B' --max-new-tokens 20 --dtype int8").out, int8.out);
}

TEST_F(Generate, SaysHowMuchMemoryItTakes) {
  const auto said = [](const std::string& flags) { return generate("'der B' --max-new-tokens 10 " + flags).err; };
  // 2 blocks · (keys and values) · 24 numbers · 15 tokens.
  EXPECT_THAT(said("--num-beams 2"), HasSubstr("MB of weights, 0.0 MB for 2 texts of 15 tokens"));
  EXPECT_EQ(generate("'der B' --max-new-tokens 9 --cache-dtype int8").out, generate("'der B' --max-new-tokens 9").out);
  const auto bytes = [](const std::string& flags) {
    return nlohmann::json::parse(generate("'der B' --max-new-tokens 9 --json " + flags).out)["cache_bytes"].get<int>();
  };
  EXPECT_EQ(bytes(""), 2 * 2 * 24 * 64 * 4);
  EXPECT_EQ(bytes("--cache-dtype bf16"), 2 * 2 * 24 * 64 * 2);
  EXPECT_EQ(bytes("--cache-dtype int8"), 2 * 2 * 24 * 64 + 2 * 2 * 2 * 64 * 4);
}

TEST_F(Generate, ContinuesLinesSideBySide) {
  std::ofstream(path("lines.txt")) << "der \nist da. der B\ner\nB\n";
  const std::string flags = "--prompts " + path("lines.txt") + " --max-new-tokens 12 ";
  const std::string alone = generate(flags + "--batch-size 1").out;
  EXPECT_EQ(std::count(alone.begin(), alone.end(), '\n'), 4);
  EXPECT_EQ(generate(flags + "--batch-size 2").out, alone);
  EXPECT_EQ(generate(flags).out, alone);
  EXPECT_EQ(generate(flags + "--stop da").out, generate(flags + "--stop da --batch-size 1").out);
  const std::string looked_up = " --prompt-lookup-num-tokens 5 --max-matching-ngram-size 3";
  EXPECT_EQ(generate(flags + "--batch-size 1" + looked_up).out, alone);
  EXPECT_EQ(generate("'der B' --num-beams 2" + looked_up).status, 2);
  // A line that is not UTF-8 is left out if asked; so it is by the tokenizer.
  std::ofstream(path("latin.txt")) << "der \nB\xe4r\nB\n";
  const Outcome refused = generate("--prompts " + path("latin.txt"));
  EXPECT_THAT(refused.err, HasSubstr("latin.txt: line 2 is not UTF-8"));
  const Outcome skipped = generate("--prompts " + path("latin.txt") + " --skip-broken --max-new-tokens 3");
  EXPECT_EQ(skipped.status, 0) << skipped.err;
  EXPECT_THAT(skipped.err, HasSubstr("1 line that is not UTF-8 is left out"));
  EXPECT_EQ(std::count(skipped.out.begin(), skipped.out.end(), '\n'), 2);
  const Outcome encoded =
      vitrail("tokenizer encode " + path("runs/one/best") + " --input " + path("latin.txt") + " --skip-broken");
  EXPECT_THAT(encoded.err, HasSubstr("1 line that is not UTF-8 is left out"));
  EXPECT_EQ(encoded.out, vitrail("tokenizer encode " + path("runs/one/best") + " 'der ' B").out);
}

// Bytes that stand for a character are tokens of their own, and none of them can be read until all are there, nor
// taken for one before it is known that those behind it are another.
TEST_F(Generate, StreamsWholeCharacters) {
  std::ofstream(path("bytes.json")) << R"({"added_tokens": [], "normalizer": null, "pre_tokenizer": null,
    "post_processor": null, "decoder": {"type": "Sequence", "decoders": [{"type": "ByteFallback"}, {"type": "Fuse"}]},
    "model": {"type": "BPE", "byte_fallback": true, "unk_token": "<unk>", "fuse_unk": false, "merges": [],
      "vocab": {"<unk>": 0, "a": 1, "b": 2, " ": 3, "<0xF0>": 4, "<0x9F>": 5, "<0x98>": 6, "<0x80>": 7}}})";
  std::ofstream text(path("smileys.txt"));
  for (int i = 0; i < 120; ++i) {
    text << "a\xF0\x9F\x98\x80\xF0\x9F\x98\x80 b ";
  }
  text.close();
  const Outcome trained = vitrail("train " + path("smileys.txt") + " --task lm --tokenizer " + path("bytes.json") +
                                  " --model-kwargs n_layer=1 n_head=2 n_embd=16 --block-size 40 --epochs 20 --lr 1e-2 "
                                  "-b 4 --drop 0 --threads 1 --output " +
                                  path("runs") + " --experiment smileys");
  ASSERT_EQ(trained.status, 0) << trained.err;
  for (const char* count : {"5", "6", "8", "9", "12", "20"}) {
    const std::string flags = "generate " + path("runs/smileys") + " 'b a' --threads 1 --max-new-tokens " + count;
    const Outcome whole = vitrail(flags);
    const Outcome streamed = vitrail(flags + " --stream");
    ASSERT_EQ(streamed.status, 0) << streamed.err;
    EXPECT_EQ(streamed.out, whole.out) << count;
  }
}

TEST_F(Generate, EndsBeamsBehindAWord) {
  const Outcome outcome = generate("'der B' --num-beams 3 --max-new-tokens 20 --stop ist");
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "der Bär ist\n");
}

TEST_F(Generate, RunsFromAFolderInInt8) {
  const Outcome made = vitrail("quantize " + path("runs/one") + " --output " + path("small"));
  ASSERT_EQ(made.status, 0) << made.err;
  EXPECT_THAT(made.out, HasSubstr("weights by output in int8"));
  const Outcome small = vitrail("generate " + path("small") + " 'der B' --max-new-tokens 20");
  EXPECT_EQ(small.out, generate("'der B' --max-new-tokens 20 --int8").out) << small.err;
  EXPECT_THAT(vitrail("quantize " + path("small") + " --output " + path("again")).err, HasSubstr("quantized already"));
  const std::string compared = "quantize " + path("runs/one") + " --output " + path("compared") + " --threads 1 ";
  EXPECT_EQ(vitrail(compared + "--src " + path("text.txt") + " --tgt " + path("text.txt")).status, 2);
  refuses(compared + "--skip-broken", "--skip-broken has no effect without --eval or --src", 2);
  const Outcome skipped =
      vitrail("quantize " + path("runs/one") + " --output " + path("skipped") + " --threads 1 --eval " +
              write("broken.txt", repeated("der Bär ist da.\n", 4) + "B\xe4r\n") + " --skip-broken");
  EXPECT_EQ(skipped.status, 0) << skipped.err;
  EXPECT_THAT(skipped.err, HasSubstr("1 line that is not UTF-8 is left out"));
  const Outcome outcome = vitrail(compared + "--json --eval " + path("text.txt"));
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const nlohmann::json perplexity = nlohmann::json::parse(outcome.out)["perplexity"];
  EXPECT_NEAR(perplexity["int8"].get<double>() / perplexity["float"].get<double>(), 1, 0.01);
  EXPECT_THAT(vitrail("quantize gpt2 --output " + path("again")).err, HasSubstr("whose weights are random"));
  EXPECT_THAT(
      vitrail("train " + path("text.txt") + " --task lm --model " + path("small") + " --output " + path("x")).err,
      HasSubstr("held for inference and cannot be trained"));
}

TEST_F(Generate, ContinuesWhatWasLearned) {
  ASSERT_EQ(trained_.status, 0) << trained_.err;
  EXPECT_THAT(trained_.out, HasSubstr("what it writes by itself: "));
  const Outcome greedy = generate("'der B' --max-new-tokens 11");
  EXPECT_EQ(greedy.status, 0) << greedy.err;
  EXPECT_EQ(greedy.out, "der Bär ist da. \n");
  EXPECT_EQ(generate("'der B' --max-new-tokens 11 --stream").out, greedy.out);
  EXPECT_EQ(generate("- --max-new-tokens 11", "der B").out, greedy.out);
  EXPECT_EQ(generate("'der B' --num-beams 3 --max-new-tokens 11").out, greedy.out);
  EXPECT_EQ(generate("'der B' --stop ist").out, "der Bär ist\n");
  EXPECT_EQ(generate("'der B' --stop Bä").out, "der Bä\n");                         // which begins in the prompt
  EXPECT_EQ(generate("'der B' --stop 'r B' --max-new-tokens 2").out, "der Bär\n");  // which ends there
  std::ofstream(path("prompts.txt")) << "der \ndie\n";
  EXPECT_THAT(generate("--prompts " + path("prompts.txt") + " --max-new-tokens 2").out, StartsWith("der Bä\ndie"));
  EXPECT_EQ(generate("'der B' --do-sample --temperature 2 --seed 4 --max-new-tokens 9").out,
            generate("'der B' --do-sample --temperature 2 --seed 4 --max-new-tokens 9").out);
}

TEST_F(Generate, TellsOfItsPaceAsJson) {
  const Outcome outcome = generate("'der B' --num-beams 4 --num-return-sequences 2 --max-new-tokens 6 --json");
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const nlohmann::json json = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(json["prompt"], "der B");
  EXPECT_EQ(json["prompt_tokens"], 5);
  EXPECT_EQ(json["new_tokens"], 6);
  ASSERT_EQ(json["sequences"].size(), 2U);
  EXPECT_EQ(json["sequences"][0]["text"], "der Bär ist");
  EXPECT_GT(json["sequences"][0]["score"], json["sequences"][1]["score"]);
  EXPECT_GT(json["tokens_per_second"], 0);
}

TEST_F(Generate, IsEvaluatedOnAText) {
  const std::string eval = "eval " + path("runs/one") + " " + path("text.txt") + " --threads 1 ";
  const Outcome plain = vitrail(eval);
  ASSERT_EQ(plain.status, 0) << plain.err;
  EXPECT_THAT(plain.out, StartsWith("loss "));
  EXPECT_THAT(plain.out, HasSubstr("959 tokens in blocks of 40"));
  const nlohmann::json json =
      nlohmann::json::parse(vitrail(eval + "--by-position --json --output " + path("report")).out);
  EXPECT_EQ(json["tokens"], 959);
  EXPECT_EQ(json["block_size"], 40);
  EXPECT_DOUBLE_EQ(json["perplexity"], std::exp(json["loss"].get<double>()));
  EXPECT_LT(json["loss"], 0.3) << "it has learned the text";
  EXPECT_NEAR(json["bits_per_byte"].get<double>() / json["bits_per_character"].get<double>(), 16.0 / 17, 1e-6);
  ASSERT_EQ(json["loss_by_position"].size(), 40U);
  EXPECT_GT(json["loss_by_position"][0], json["loss_by_position"][20]) << "more in view says more";
  const nlohmann::json strides = nlohmann::json::parse(vitrail(eval + "--stride 10 --json").out);
  EXPECT_EQ(strides["tokens"], 959);
  EXPECT_EQ(strides["stride"], 10);
  const Outcome both =
      vitrail(eval + "--block-size 20 --by-position --output " + path("both") + " --beside " + path("report"));
  EXPECT_EQ(both.status, 0) << both.err;
  EXPECT_THAT(both.out, HasSubstr("tokens in view"));
  std::ifstream chart(path("both/by_position.svg"));
  const std::string svg(std::istreambuf_iterator<char>(chart), {});
  EXPECT_THAT(svg, HasSubstr("Loss by position"));

  const auto fails = [](const Outcome& outcome, int status, const std::string& words) {
    EXPECT_EQ(outcome.status, status) << words;
    EXPECT_THAT(outcome.err, HasSubstr(words));
  };
  fails(vitrail(eval + "--beside x"), 2, "it needs --by-position and --output");
  fails(vitrail(eval + "--tta 2"), 2, "is a model of texts: it takes neither --tta nor --frames");
  fails(vitrail(eval + "--block-size 41"), 1, "a block of 41 tokens is more than the 40 positions of the model");
  fails(vitrail("eval vit_tiny_patch16_224 x --stride 3"), 2, "it takes no flags of language models");
  fails(vitrail("eval gpt2 " + path("text.txt")), 1, "whose weights are random");
}

TEST_F(Generate, ObeysTheModelsOwnConfigAndSaysSo) {
  const std::string folder = path("with_config");
  std::filesystem::copy(path("runs/one/best"), folder);
  std::ofstream(folder + "/generation_config.json") << R"({"max_new_tokens": 3, "num_beams": 2, "eos_token_id": null})";
  const Outcome outcome = vitrail("generate " + folder + " 'der B'");
  EXPECT_EQ(outcome.out, "der Bär \n");
  EXPECT_THAT(outcome.err, HasSubstr("generation_config.json: num_beams 2, max_new_tokens 3"));
  EXPECT_EQ(vitrail("generate " + folder + " 'der B' --max-new-tokens 1").out, "der Bä\n");
  std::ofstream(folder + "/generation_config.json") << R"({"top_p": 2})";
  EXPECT_THAT(vitrail("generate " + folder + " x").err, HasSubstr("generation_config.json: top_p must be above 0"));
}

TEST_F(Generate, SaysWhatIsWrong) {
  const auto fails = [](const Outcome& outcome, int status, const std::string& words) {
    EXPECT_EQ(outcome.status, status) << words;
    EXPECT_THAT(outcome.err, HasSubstr(words));
    EXPECT_EQ(outcome.out, "");
  };
  fails(generate("x --do-sample --top-p 0"), 2, "--top-p must be above 0 and at most 1, not 0");
  fails(generate("x --num-beams 2 --num-return-sequences 3"), 2,
        "--num-return-sequences 3 must not be more than --num-beams 2");
  fails(generate("x --prompts y"), 2, "PROMPT and --prompts exclude each other");
  fails(generate("x --stream --json"), 2, "--stream prints one text as it comes");
  fails(generate(""), 2, "name a PROMPT, - for the standard input, or --prompts FILE");
  fails(generate("''"), 1, "the prompt is empty: there is nothing to continue");
  fails(generate("'der' --max-new-tokens 50"), 1, "longer than the 40 that the model is made for: --slide");
  const std::string long_prompt = " '" + std::string(20, 'd') + std::string(21, 'a') + "' --max-new-tokens 3";
  fails(generate(long_prompt), 1, "has 41 tokens, but the model is made for at most 40: --slide reads its end");
  EXPECT_EQ(generate(long_prompt + " --slide").status, 0);
  fails(vitrail("generate gpt2 x"), 1, "'gpt2' is the name of a model, whose weights are random");
  fails(vitrail("generate nowhere x"), 1, "nowhere");
  const std::string seen =
      "attention " + path("runs/one") + " --text '" + std::string(50, 'd') + "' --output " + path("seen");
  fails(vitrail(seen), 1, "--text has 50 tokens, but the model is made for at most 40: --truncate cuts it");
  EXPECT_EQ(vitrail(seen + " --truncate").status, 0);
  fails(vitrail("bench train --model gpt22"), 1, "there is no model 'gpt22' (did you mean 'gpt2'");
  fails(vitrail("info gpt22"), 1, "there is no model 'gpt22' (did you mean 'gpt2'");
  write("config.json", R"({"architecture": "lstn", "input_size": 3, "hidden_size": 4})");
  fails(vitrail("forward " + path("") + " --input x.safetensors --output y.safetensors"), 1, "did you mean 'lstm'");
}

TEST_F(Generate, HasModelsThatInfoDescribes) {
  const Outcome info = vitrail("info " + path("runs/one"));
  EXPECT_EQ(info.status, 0) << info.err;
  EXPECT_THAT(info.out, HasSubstr("which predicts the next token"));
  const nlohmann::json json = nlohmann::json::parse(vitrail("info smollm2-135m --json").out);
  EXPECT_EQ(json["parameters"], 134515008);
  EXPECT_EQ(json["num_kv_heads"], 3);
}

class GenerateWithFlags : public LanguageModel {};

TEST_F(GenerateWithFlags, NamesThoseThatChangeNothing) {
  ASSERT_EQ(learned_.status, 0) << learned_.err;
  const Outcome greedy = generate("'der B' --temperature 0.5 --top-k 5 --seed 3 --length-penalty 2 --max-new-tokens 3");
  EXPECT_EQ(greedy.status, 0);
  EXPECT_THAT(greedy.err, HasSubstr("without --do-sample, --temperature, --top-k, --seed changes nothing"));
  EXPECT_THAT(greedy.err, HasSubstr("without --num-beams, --length-penalty changes nothing"));
  EXPECT_THAT(generate("'der B' --max-matching-ngram-size 3 --max-new-tokens 3").err,
              HasSubstr("without --prompt-lookup-num-tokens, --max-matching-ngram-size changes nothing"));
  EXPECT_THAT(generate("'der B' --do-sample --top-k 5 --seed 3 --max-new-tokens 3").err, Not(HasSubstr("note: ")));
  EXPECT_EQ(generate("'der B' --no-repeat-ngram-size 0 --max-new-tokens 3").status, 0);
  fails(generate("'der B' --stop ''"), 2, "--stop is empty");
  fails(generate("'der B' --top-p 0 --do-sample"), 2, "--top-p must be above 0");
  fails(generate("'der B' --dtype fp16"), 2, "--dtype: fp16 not in {f32,bf16,int8");
}

TEST_F(GenerateWithFlags, SaysWhatAPromptLacks) {
  fails(generate("'der B' --max-new-tokens 30"), 1,
        "the prompt has 5 tokens, and with 30 new ones it would be longer than the 20 that the model is made for: "
        "--slide goes on beyond them");
  fails(generate("'der B' --max-new-tokens 30 --slide --num-beams 2"), 2, "--slide goes on with one text");
  fails(generate("--prompts " + write("prompts.txt", "der\n\nist\n")), 1, "prompts.txt: line 2 is empty");
  fails(generate("--prompts " + write("latin.txt", "der\nB\xe4r\n")), 1,
        "latin.txt: line 2 is not UTF-8: byte 2 of it is 0xe4");
  EXPECT_EQ(generate("--prompts - --max-new-tokens 2", "der\nist\n").out,
            generate("--prompts " + write("two.txt", "der\nist\n") + " --max-new-tokens 2").out);
  EXPECT_THAT(generate("'der x' --max-new-tokens 2").err, HasSubstr("1 of 5 tokens is [UNK]"));
}

class GenerateFromRuns : public InAFolder {};

TEST_F(GenerateFromRuns, DrawsForEachLineOfPromptsByItself) {
  const std::string text = write("hamlet.txt", "to be or not to be that is the question of all of them\n");
  const Outcome trained = train(text, "gpt",
                                " --task lm --model-kwargs n_layer=1 n_head=2 n_embd=16 --block-size 32 --batch-size 2 "
                                "--val-share 0 --threads 1");
  ASSERT_EQ(trained.status, 0) << trained.err;
  const std::string generate = "generate " + path("runs/gpt") + " --max-new-tokens 20 --threads 1 ";
  const std::string prompts = "--prompts " + write("prompts.txt", "to\nto\n");
  const auto lines = [](const std::string& out) {
    return std::pair{out.substr(0, out.find('\n')), out.substr(out.find('\n') + 1)};
  };
  const std::string sampled = vitrail(generate + prompts + " --do-sample").out;
  ASSERT_FALSE(sampled.empty());
  EXPECT_NE(lines(sampled).first + "\n", lines(sampled).second);
  EXPECT_EQ(vitrail(generate + prompts + " --do-sample --batch-size 1").out, sampled);
  EXPECT_THAT(sampled, StartsWith(printed(generate + "to --do-sample")));
  const std::string greedy = vitrail(generate + prompts).out;
  EXPECT_EQ(lines(greedy).first + "\n", lines(greedy).second);
}

TEST_F(GenerateFromRuns, KeepsHowAModelGenerates) {
  write("text.txt", "a cat and a dog and a cat and a dog and a bird and a cat and a bird and a dog\n");
  const std::string flags = " --task lm --block-size 4 --epochs 1 -b 2 --threads 1 --output " + path("runs");
  ASSERT_EQ(vitrail("train " + path("text.txt") + " --model-kwargs n_layer=1 n_head=1 n_embd=8" + flags +
                    " --experiment first")
                .status,
            0);
  const std::string said = R"({"max_new_tokens": 3, "repetition_penalty": 1.3})";
  write("runs/first/best/generation_config.json", said);
  ASSERT_EQ(
      vitrail("train " + path("text.txt") + " --model " + path("runs/first") + flags + " --experiment second").status,
      0);
  EXPECT_EQ(io::read_text(path("runs/second/best/generation_config.json")), said);
}

TEST_F(GenerateFromRuns, ObeysAGenerationConfig) {
  std::ofstream(path("corpus.txt")) << words(0, 60);
  const std::string run = path("runs/writer");
  ASSERT_EQ(
      vitrail("train " + path("corpus.txt") + " --task lm --tokenizer char --model gpt2 --model-kwargs n_layer=1 " +
              "n_embd=8 n_head=1 --block-size 32 -b 4 --epochs 1 --threads 1 --output " + path("runs") +
              " --experiment writer")
          .status,
      0);
  const std::string generate = "generate " + run + " \"word \" --max-new-tokens 8 --threads 1";
  const std::string plain = vitrail(generate).out;
  const auto with = [&](const std::string& fields) {
    std::ofstream(run + "/best/generation_config.json") << fields;
    return vitrail(generate);
  };
  const std::string stop = plain.substr(std::string("word ").size(), 1);  // its first new character
  const Outcome stopped = with("{\"stop_strings\": [\"" + (stop == "\n" ? "\\n" : stop) + "\"]}");
  EXPECT_EQ(stopped.status, 0) << stopped.err;
  EXPECT_EQ(stopped.out, "word " + stop + "\n");
  EXPECT_THAT(stopped.err, HasSubstr("stop_strings ["));
  EXPECT_THAT(with(R"({"suppress_tokens": [3], "max_length": 20})").err, HasSubstr("suppress_tokens [3]"));
  for (const char* field : {R"("top_h": 0.1)", R"("max_time": 1)", R"("exponential_decay_length_penalty": [2, 3.0])"}) {
    const Outcome refused = with(std::string("{") + field + "}");
    EXPECT_EQ(refused.status, 1);
    EXPECT_THAT(refused.err, HasSubstr("not supported"));
  }
}

TEST_F(GenerateFromRuns, SaysWhatRecurrentNetworksDoNotHave) {
  const std::string text = write("long.txt", "to be or not to be that is the question of all of them that are there\n");
  const Outcome reader = train(text, "lstm",
                               " --task lm --model lstm --model-kwargs hidden_size=8 num_layers=1 --bptt 4 "
                               "--batch-size 2 --val-share 0 --threads 1");
  ASSERT_EQ(reader.status, 0) << reader.err;
  const Outcome slides = vitrail("generate " + path("runs/lstm") + " to --slide");
  EXPECT_EQ(slides.status, 2) << slides.err;
  EXPECT_THAT(slides.err, HasSubstr("--slide has no effect on"));
  const Outcome translator =
      train("", "seq2seq",
            " --task translate --src " + text + " --tgt " + text +
                " --model lstm_bahdanau --model-kwargs hidden_size=8 --vocab-size 20 --threads 1");
  ASSERT_EQ(translator.status, 0) << translator.err;
  const Outcome keeps = vitrail("translate " + path("runs/seq2seq") + " " + text + " --cache-dtype int8");
  EXPECT_EQ(keeps.status, 2) << keeps.err;
  EXPECT_THAT(keeps.err, HasSubstr("keeps no keys and values: it takes no --cache-dtype"));
}

}  // namespace
}  // namespace vitrail::test
