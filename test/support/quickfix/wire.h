// Sockets, and the log of every message that came in or went out.
#pragma once

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <ctime>
#include <fstream>
#include <stdexcept>
#include <string>
#include <utility>

#include "engine.h"
#include "json.h"

/** Lines of JSON with the time, the direction and what became of the message. Appended, also over restarts. */
class WireLog {
 public:
  explicit WireLog(const std::string& path) : file_(path, std::ios::app) {}

  void message(const char* direction, const char* outcome, int connection, const std::string& bytes) {
    file_ << "{\"at\":" << quoted(now()) << ",\"direction\":\"" << direction << "\",\"outcome\":\"" << outcome
          << "\",\"connection\":" << connection << ",\"message\":" << quoted(bytes) << "}" << std::endl;
  }

  void event(const std::string& text) {
    file_ << "{\"at\":" << quoted(now()) << ",\"event\":" << quoted(text) << "}" << std::endl;
  }

 private:
  static std::string now() {
    timespec time{};
    clock_gettime(CLOCK_REALTIME, &time);
    tm parts{};
    gmtime_r(&time.tv_sec, &parts);
    char text[64];
    const std::size_t length = std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &parts);
    std::snprintf(text + length, sizeof text - length, ".%03ldZ", time.tv_nsec / 1'000'000);
    return text;
  }

  std::ofstream file_;
};

/** Listens on 127.0.0.1. Port 0 takes a free one. Returns the socket and its port. */
inline std::pair<int, int> listenOn(int port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  const int yes = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<uint16_t>(port));
  socklen_t length = sizeof address;
  if (bind(fd, reinterpret_cast<sockaddr*>(&address), length) != 0 || listen(fd, 16) != 0 ||
      getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length) != 0)
    throw std::runtime_error("cannot listen on port " + std::to_string(port) + ": " + std::strerror(errno));
  return {fd, ntohs(address.sin_port)};
}

/** A connected socket that never blocks. */
class Stream {
 public:
  explicit Stream(int fd) : fd_(fd) {
    const int yes = 1;
    setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  virtual ~Stream() { close(); }

  int fd() const { return fd_; }
  bool isOpen() const { return fd_ >= 0; }
  bool wantsToWrite() const { return !waiting_.empty(); }

  void write(const std::string& bytes) {
    waiting_ += bytes;
    flush();
  }

  void flush() {
    while (isOpen() && !waiting_.empty()) {
      const ssize_t count = ::send(fd_, waiting_.data(), waiting_.size(), MSG_NOSIGNAL);
      if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
      if (count < 0) return close();
      waiting_.erase(0, static_cast<std::size_t>(count));
    }
    if (isOpen() && closing_ && endedAt_ == Clock::time_point::max()) {
      shutdown(fd_, SHUT_WR);
      endedAt_ = Clock::now();
    }
  }

  /** Returns all bytes that are there. */
  std::string read() {
    std::string bytes;
    char part[16384];
    while (isOpen()) {
      const ssize_t count = recv(fd_, part, sizeof part, 0);
      if (count > 0) {
        bytes.append(part, static_cast<std::size_t>(count));
      } else {
        if (count < 0 && errno == EINTR) continue;
        if (count == 0 || errno != EAGAIN) ended_ = true;
        break;
      }
    }
    return bytes;
  }

  /** Whether the other side sends no more. */
  bool hasEnded() const { return ended_; }

  /** Writes what waits and no more. What the other side had written before it learns of it can still be read. */
  void end() {
    closing_ = true;
    flush();
  }

  /** The same without what waits. */
  void endNow() {
    waiting_.clear();
    end();
  }

  /** Whether it has ended, and the other side has too, or has had the time for it. */
  bool isDone() const {
    return closing_ && (ended_ || (endedAt_ != Clock::time_point::max() && Clock::now() - endedAt_ > std::chrono::seconds(2)));
  }

  void close() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
  }

 private:
  using Clock = std::chrono::steady_clock;

  int fd_;
  Clock::time_point endedAt_ = Clock::time_point::max();
  bool closing_ = false;
  bool ended_ = false;
  std::string waiting_;
};

/** A connection of a FIX client. QuickFIX's session writes through it. */
class Connection : public Stream, public FIX::Responder {
 public:
  Connection(int fd, int number, WireLog& log) : Stream(fd), number(number), log_(log) {}

  bool send(const std::string& message) override {
    log_.message("out", muted ? "discarded" : "sent", number, message);
    if (!muted) write(message);
    return true;
  }

  void disconnect() override {
    isOver = true;
    end();
  }

  /** The next whole message of those that were read. */
  bool nextMessage(std::string& message) {
    if (held.empty()) return parser.readFixMessage(message);
    message.swap(held);
    held.clear();
    return true;
  }

  const int number;
  /** A message that came in and waits until the gateway is no longer frozen. */
  std::string held;
  /** The session takes its messages for sent, and not a byte is written. */
  bool muted = false;
  bool isOver = false;
  FIX::Session* session = nullptr;
  FIX::Parser parser;

 private:
  WireLog& log_;
};
