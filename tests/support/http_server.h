// A web server of this machine that has a few files, and the troubles that servers have.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

namespace vitrail::test {

class HttpServer {
 public:
  HttpServer() : socket_(socket(AF_INET, SOCK_STREAM, 0)) {
    setenv("no_proxy", "127.0.0.1", 1);  // where others go through a proxy
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    if (bind(socket_, reinterpret_cast<sockaddr*>(&address), size) == 0 && listen(socket_, 8) == 0 &&
        getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &size) == 0) {
      port_ = ntohs(address.sin_port);
      thread_ = std::thread([this] { serve(); });
    }
  }
  ~HttpServer() {
    stopping_ = true;
    shutdown(socket_, SHUT_RDWR);
    if (thread_.joinable()) {
      thread_.join();
    }
    close(socket_);
  }
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  std::string url(const std::string& path) const { return fmt::format("http://127.0.0.1:{}{}", port_, path); }
  void put(const std::string& path, std::string content) {
    const std::lock_guard lock(mutex_);
    files_[path] = std::move(content);
  }
  // The ranges that were asked for, "" for a whole file, of all requests so far.
  std::vector<std::string> ranges() const {
    const std::lock_guard lock(mutex_);
    return ranges_;
  }

  std::atomic<int> busy = 0;                // so many requests are answered by 503
  std::atomic<std::size_t> breaks_off = 0;  // after so many bytes of a file; 0: never

 private:
  static std::string header(const std::string& request, const std::string& name) {
    const std::size_t at = request.find("\r\n" + name + ": ");
    return at == std::string::npos
               ? ""
               : request.substr(at + name.size() + 4, request.find("\r\n", at + 2) - at - name.size() - 4);
  }

  void serve() {
    while (!stopping_) {
      const int peer = accept(socket_, nullptr, nullptr);
      if (peer < 0) {
        continue;
      }
      std::string request;
      for (char buffer[1024]; request.find("\r\n\r\n") == std::string::npos;) {
        const ssize_t got = recv(peer, buffer, sizeof(buffer), 0);
        if (got <= 0) {
          break;
        }
        request.append(buffer, static_cast<std::size_t>(got));
      }
      const std::string reply = answer(request);
      for (std::size_t sent = 0; sent < reply.size();) {
        const ssize_t step = send(peer, reply.data() + sent, reply.size() - sent, MSG_NOSIGNAL);
        if (step <= 0) {
          break;
        }
        sent += static_cast<std::size_t>(step);
      }
      close(peer);
    }
  }

  std::string answer(const std::string& request) {
    const std::lock_guard lock(mutex_);
    ranges_.push_back(header(request, "Range"));
    if (busy > 0) {
      --busy;
      return "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 4\r\nConnection: close\r\n\r\nbusy";
    }
    const std::size_t begin = request.find(' ') + 1;
    const auto file = files_.find(request.substr(begin, request.find(' ', begin) - begin));
    if (file == files_.end()) {
      return "HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\nConnection: close\r\n\r\ngone";
    }
    const std::string& content = file->second;
    const std::string tag = fmt::format("\"{:x}\"", std::hash<std::string>()(content));
    const std::string range = header(request, "Range");  // "bytes=100-"
    const bool goes_on = !range.empty() && header(request, "If-Range") == tag;
    const std::size_t first = goes_on ? std::min<std::size_t>(std::stoull(range.substr(6)), content.size()) : 0;
    std::string body = content.substr(first);
    const std::string head = fmt::format(
        "HTTP/1.1 {}\r\nETag: {}\r\nContent-Length: {}\r\n{}Connection: close\r\n\r\n",
        goes_on ? "206 Partial Content" : "200 OK", tag, body.size(),
        goes_on ? fmt::format("Content-Range: bytes {}-{}/{}\r\n", first, content.size() - 1, content.size()) : "");
    if (breaks_off > 0 && body.size() > breaks_off) {
      body.resize(breaks_off);
    }
    return head + body;
  }

  int socket_;
  int port_ = 0;
  std::atomic<bool> stopping_ = false;
  std::thread thread_;
  mutable std::mutex mutex_;
  std::map<std::string, std::string> files_;
  std::vector<std::string> ranges_;
};

}  // namespace vitrail::test
