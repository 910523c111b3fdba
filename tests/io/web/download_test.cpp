#include "vitrail/io/web/download.h"

#include <cstdlib>
#include <thread>

#include <gmock/gmock.h>

#include "tests/support/golden.h"
#include "tests/support/http_server.h"
#include "vitrail/io/file.h"

namespace vitrail::io {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;

// A cache of its own, and a server.
class Download : public ::testing::Test {
 protected:
  Download() { setenv("VITRAIL_CACHE", (folder_ / "cache").c_str(), 1); }
  ~Download() override { unsetenv("VITRAIL_CACHE"); }

  static std::string content(std::size_t bytes, char first) {
    std::string text(bytes, first);
    for (std::size_t i = 0; i < bytes; ++i) {
      text[i] = static_cast<char>(first + static_cast<char>(i % 23));
    }
    return text;
  }
  static DownloadOptions quick(int tries = 3) { return {.tries = tries, .first_pause = 0.001}; }

  test::TemporaryFolder folder_;
  test::HttpServer server_;
};

TEST_F(Download, KeepsAFileInTheCache) {
  const std::string all = content(300000, 'a');
  server_.put("/a/train-000000.tar", all);
  const std::string url = server_.url("/a/train-000000.tar");
  std::int64_t done = 0;
  std::int64_t of = 0;
  DownloadOptions options = quick();
  options.progress = [&](std::int64_t bytes, std::int64_t total) {
    done = bytes;
    of = total;
    return true;
  };
  const std::filesystem::path file = cached(url, options);
  EXPECT_EQ(read_text(file), all);
  EXPECT_THAT(file.string(), AllOf(HasSubstr((folder_ / "cache").string()), EndsWith("/train-000000.tar")));
  EXPECT_EQ(done, 300000);
  EXPECT_EQ(of, 300000);
  EXPECT_EQ(cached(url), file);
  EXPECT_EQ(local_file(url), file);
  EXPECT_EQ(server_.ranges().size(), 1U) << "it is there already";
  server_.put("/b/train-000000.tar", "other");
  EXPECT_EQ(read_text(cached(server_.url("/b/train-000000.tar"))), "other") << "a file of the same name elsewhere";
  EXPECT_EQ(local_file("here.tar"), "here.tar");
}

TEST_F(Download, GoesOnWhereItBrokeOff) {
  const std::string all = content(250000, 'a');
  server_.put("/x.tar", all);
  server_.breaks_off = 100000;
  EXPECT_EQ(read_text(cached(server_.url("/x.tar"), quick(2))), all);
  EXPECT_THAT(server_.ranges(), ElementsAre("", "bytes=100000-", "bytes=200000-"));
}

TEST_F(Download, GoesOnInAnotherProcessUnlessTheFileHasChanged) {
  server_.put("/x.tar", content(250000, 'a'));
  DownloadOptions stopped = quick();
  stopped.progress = [](std::int64_t, std::int64_t) { return false; };
  EXPECT_THAT(test::error_of([&] { cached(server_.url("/x.tar"), stopped); }), HasSubstr("was stopped: it goes on"));
  EXPECT_EQ(read_text(cached(server_.url("/x.tar"))), content(250000, 'a'));
  EXPECT_THAT(server_.ranges().back(), HasSubstr("bytes=")) << "the rest";

  server_.put("/y.tar", content(250000, 'a'));
  EXPECT_THROW(cached(server_.url("/y.tar"), stopped), Error);
  server_.put("/y.tar", content(200000, 'A'));
  EXPECT_EQ(read_text(cached(server_.url("/y.tar"))), content(200000, 'A')) << "all of the new file";
}

TEST_F(Download, TriesABusyServerAgain) {
  server_.put("/x.tar", "shard");
  server_.busy = 2;
  EXPECT_EQ(read_text(cached(server_.url("/x.tar"), quick())), "shard");
  server_.put("/y.tar", "shard");
  server_.busy = 3;
  EXPECT_THAT(test::error_of([&] { cached(server_.url("/y.tar"), quick()); }),
              AllOf(HasSubstr(server_.url("/y.tar")), HasSubstr("even in 3 tries: the server answers 503")));
  server_.put("/empty", "");
  EXPECT_EQ(read_text(cached(server_.url("/empty"))), "");
}

TEST_F(Download, SaysWhatCannotBeHad) {
  EXPECT_THAT(test::error_of([&] { cached(server_.url("/gone.tar"), quick()); }),
              HasSubstr("cannot be downloaded: the server answers 404, not found"));
  EXPECT_EQ(server_.ranges().size(), 1U) << "which another try does not change";
  EXPECT_THAT(test::error_of([&] { cached("http://127.0.0.1:1/x.tar", quick(2)); }),
              HasSubstr("http://127.0.0.1:1/x.tar cannot be downloaded, even in 2 tries"));
  EXPECT_THAT(test::error_of([&] { cached("https://host"); }), HasSubstr("is no file on the web"));
  EXPECT_FALSE(is_url("file:///etc/passwd"));
  EXPECT_FALSE(is_url("photos"));
  setenv("VITRAIL_CACHE", "/proc/nowhere", 1);
  server_.put("/x.tar", "shard");
  EXPECT_THROW(cached(server_.url("/x.tar")), Error);
}

TEST_F(Download, OfSeveralAtOnceIsMadeByOne) {
  server_.put("/x.tar", content(400000, 'a'));
  std::vector<std::string> got(4);
  std::vector<std::thread> threads;
  for (std::string& one : got) {
    threads.emplace_back([&] { one = read_text(cached(server_.url("/x.tar"))); });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_THAT(got, ::testing::Each(content(400000, 'a')));
  EXPECT_EQ(server_.ranges().size(), 1U);
}

}  // namespace
}  // namespace vitrail::io
