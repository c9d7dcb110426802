// An exchange's FIX gateway for tests: QuickFIX keeps the session, exchange.h has the orders, and the control channel makes
// it misbehave. Everything runs in one thread. The sockets are our own, so that a test can lose or hold back single messages.
#include <cstdlib>
#include <deque>
#include <list>

#include "exchange.h"
#include "wire.h"

namespace {

/** Sends what QuickFIX logs to the log of messages, which has the messages already. */
class EventLog : public FIX::Log, public FIX::LogFactory {
 public:
  explicit EventLog(WireLog& log) : log_(log) {}
  FIX::Log* create() override { return this; }
  FIX::Log* create(const FIX::SessionID&) override { return this; }
  void destroy(FIX::Log*) override {}
  void clear() override {}
  void backup() override {}
  void onIncoming(const std::string&) override {}
  void onOutgoing(const std::string&) override {}
  void onEvent(const std::string& text) override { log_.event(text); }

 private:
  WireLog& log_;
};

class Gateway {
 public:
  explicit Gateway(const Values& options)
      : log_(options.at("folder") + "/messages.jsonl"),
        events_(log_),
        exchange_(options.at("folder"), options.at("username"), options.at("password")),
        store_(options.at("folder") + "/store"),
        factory_(exchange_, store_, &events_) {
    const bool isFixt = options.at("version") == "FIXT.1.1";
    const FIX::SessionID id(options.at("version"), options.at("sender"), options.at("target"));
    session_ = factory_.create(id, settings(options, isFixt));
    exchange_.session = session_;
    std::tie(listener_, port_) = listenOn(std::stoi(get(options, "port", "0")));
    std::tie(controlListener_, controlPort_) = listenOn(0);
  }

  std::string ports() const {
    return "{\"port\":" + std::to_string(port_) + ",\"controlPort\":" + std::to_string(controlPort_) + "}";
  }

  [[noreturn]] void run() {
    for (;;) {
      wait();
      serveControl();
      if (!isFrozen_) serveFix();
      forgetClosed();
    }
  }

 private:
  struct Control : Stream {
    using Stream::Stream;
    std::string unread;
  };

  static FIX::Dictionary settings(const Values& options, bool isFixt) {
    FIX::Dictionary settings;
    settings.setString(FIX::CONNECTION_TYPE, "acceptor");
    // The day of the session ends when no test runs: twelve hours from now.
    const std::time_t end = std::time(nullptr) + 12 * 3600;
    tm parts{};
    gmtime_r(&end, &parts);
    char time[16];
    std::strftime(time, sizeof time, "%H:00:00", &parts);
    settings.setString(FIX::START_TIME, time);
    settings.setString(FIX::END_TIME, time);
    const std::string dictionaries = options.at("dictionaries");
    if (isFixt) {
      settings.setString(FIX::DEFAULT_APPLVERID, "FIX.5.0SP2");
      settings.setString(FIX::TRANSPORT_DATA_DICTIONARY, dictionaries + "/FIXT11.xml");
      settings.setString(FIX::APP_DATA_DICTIONARY, dictionaries + "/FIX50SP2.xml");
    } else {
      settings.setString(FIX::DATA_DICTIONARY, dictionaries + "/FIX44.xml");
    }
    return settings;
  }

  void wait() {
    std::vector<pollfd> fds{{controlListener_, POLLIN, 0}};
    for (const Control& control : controls_) fds.push_back({control.fd(), POLLIN, 0});
    if (!isFrozen_) {
      fds.push_back({listener_, POLLIN, 0});
      for (const Connection& connection : connections_)
        fds.push_back({connection.fd(), static_cast<short>(connection.wantsToWrite() ? POLLIN | POLLOUT : POLLIN), 0});
    }
    poll(fds.data(), fds.size(), exchange_.timers.wait(100));
  }

  void serveFix() {
    exchange_.timers.runDue();
    for (int fd; (fd = accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0;)
      connections_.emplace_back(fd, ++connectionCount_, log_);
    for (Connection& connection : connections_) {
      connection.flush();
      take(connection, connection.read());
      // A connection is also closed because a write failed.
      if ((connection.hasEnded() || !connection.isOpen()) && !connection.isOver && !isFrozen_) drop(connection);
      if (connection.isDone()) connection.close();
    }
    session_->next();
  }

  /** Takes all whole messages. What follows a freeze waits. */
  void take(Connection& connection, const std::string& bytes) {
    connection.parser.addToStream(bytes);
    for (std::string message; !isFrozen_;) {
      try {
        if (!connection.nextMessage(message)) return;
      } catch (const FIX::MessageParseError&) {
        log_.event("bytes that are no message");
        continue;
      }
      if (connection.isOver || !connection.isOpen()) {
        log_.message("in", "discarded", connection.number, message);
        continue;
      }
      if (connection.session == nullptr && !findSession(connection, message)) continue;
      const Values next = takeNext(message);
      const std::string action = get(next, "action");
      if (action == "freeze") {
        isFrozen_ = true;
        connection.held = message;
        return;
      }
      const bool isLost = action == "disconnectBefore";
      log_.message("in", isLost ? "discarded" : "processed", connection.number, message);
      if (isLost || action == "disconnectAfter") connection.muted = true;
      exchange_.instead = next;
      if (!isLost) process(connection, message);
      exchange_.instead.clear();
      if (connection.muted) drop(connection);
    }
  }

  void process(Connection& connection, const std::string& message) {
    try {
      session_->next(message, FIX::UtcTimeStamp());
    } catch (const FIX::InvalidMessage&) {
      if (!session_->isLoggedOn()) connection.disconnect();
    } catch (const std::exception& error) {
      log_.event(std::string("failed: ") + error.what());
    }
  }

  /** A connection belongs to the session from its first message on, which must be a Logon. */
  bool findSession(Connection& connection, const std::string& message) {
    bool isTaken = false;
    for (const Connection& other : connections_) isTaken = isTaken || (other.session != nullptr && !other.isOver);
    const bool isLogon = message.find("\00135=A\001") != std::string::npos;
    const bool isOurs = FIX::Session::lookupSession(message, true) == session_;
    const std::string refusal = get(exchange_.logonRule, "as");
    const bool isSilent = refusal == "silent";
    if (isLogon && isOurs && !isTaken && !isSilent && refusal != "disconnect") {
      connection.session = session_;
      session_->setResponder(&connection);
      return true;
    }
    log_.message("in", "discarded", connection.number, message);
    log_.event(isTaken ? "a second connection is refused" : isSilent ? "this Logon is not answered" : "this Logon is refused");
    if (!isSilent) connection.disconnect();
    return false;
  }

  /** What the test wants to happen with this message, once or as often as it said. */
  Values takeNext(const std::string& message) {
    for (auto next = nexts_.begin(); next != nexts_.end(); ++next) {
      if (message.find("\00135=" + get(*next, "type") + "\001") == std::string::npos) continue;
      const Values found = *next;
      const long left = ::number(found, "count", 1) - 1;
      if (left > 0)
        (*next)["count"] = std::to_string(left);
      else
        nexts_.erase(next);
      return found;
    }
    return {};
  }

  /** Breaks the connection. What the client has written, and no one took, is still read for the log. */
  void drop(Connection& connection) {
    const bool isOfSession = connection.session != nullptr && !connection.isOver;
    connection.isOver = true;
    connection.muted = true;
    connection.endNow();
    if (isOfSession) session_->disconnect();
  }

  Connection* current() {
    for (Connection& connection : connections_)
      if (connection.session != nullptr && connection.isOpen() && !connection.isOver) return &connection;
    return nullptr;
  }

  Connection& connected() {
    Connection* connection = current();
    if (connection == nullptr) throw std::runtime_error("nobody is connected");
    return *connection;
  }

  void forgetClosed() {
    connections_.remove_if([](const Connection& connection) { return !connection.isOpen(); });
    controls_.remove_if([](const Control& control) { return !control.isOpen(); });
  }

  void serveControl() {
    for (int fd; (fd = accept4(controlListener_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0;)
      controls_.emplace_back(fd);
    for (Control& control : controls_) {
      control.flush();
      control.unread += control.read();
      for (std::size_t end; (end = control.unread.find('\n')) != std::string::npos;) {
        const std::string line = control.unread.substr(0, end);
        control.unread.erase(0, end + 1);
        control.write(answer(line) + "\n");
      }
      if (control.hasEnded()) control.close();
    }
  }

  std::string answer(const std::string& line) {
    std::string id = "0";
    try {
      const Values values = FlatJson::read(line);
      id = get(values, "id", "0");
      const auto handler = handlers_.find(get(values, "do"));
      if (handler == handlers_.end()) throw std::runtime_error("there is no control " + get(values, "do"));
      return "{\"id\":" + id + ",\"result\":" + handler->second(values) + "}";
    } catch (const std::exception& error) {
      return "{\"id\":" + id + ",\"error\":" + quoted(error.what()) + "}";
    }
  }

  using Handler = std::function<std::string(const Values&)>;

  /** What the control channel can ask for. Each returns its result as JSON. */
  std::map<std::string, Handler> controls() {
    const auto keep = [](Values& where) {
      return [&where](const Values& values) {
        where = values;
        return std::string("{}");
      };
    };
    const auto ofOrder = [this](std::string (Gateway::*change)(Order&, const Values&)) {
      return [this, change](const Values& values) {
        return execId((this->*change)(exchange_.order(get(values, "order")), values));
      };
    };
    return {
        {"state", [this](const Values&) { return state(); }},
        {"orders", [this](const Values&) { return orders(); }},
        {"rule", [this](const Values& values) { return exchange_.rules[get(values, "symbol", "*")] = values, "{}"; }},
        {"cancels", keep(exchange_.cancelRule)},
        {"statuses", keep(exchange_.statusRule)},
        {"logons", keep(exchange_.logonRule)},
        {"market", [this](const Values& values) { return exchange_.isMarketOpen = get(values, "open") == "true", "{}"; }},
        {"next", [this](const Values& values) { return nexts_.push_back(values), "{}"; }},
        {"logonAnswer", [this](const Values& values) { return exchange_.logonFields = fields(get(values, "fields")), "{}"; }},
        {"forget", [this](const Values&) { return forget(); }},
        {"fill", ofOrder(&Gateway::fill)},
        {"cancel", ofOrder(&Gateway::cancel)},
        {"expire", ofOrder(&Gateway::expire)},
        {"doneForDay", ofOrder(&Gateway::doneForDay)},
        {"endDaySilently", [this](const Values&) { return exchange_.endDaySilently(), "{}"; }},
        {"restate", ofOrder(&Gateway::restate)},
        {"cancelTrade", ofOrder(&Gateway::cancelTrade)},
        {"correctTrade", ofOrder(&Gateway::correctTrade)},
        {"reportUnknown", [this](const Values& values) { return execId(exchange_.reportUnknown(values)); }},
        {"repeat", [this](const Values& values) { return repeat(values); }},
        {"send", [this](const Values& values) { return send(values); }},
        {"garbage", [this](const Values& values) { return garbage(get(values, "bytes")); }},
        {"skipOutgoing", [this](const Values& values) { return skipOutgoing(::number(values, "count", 1)); }},
        {"expectIncoming", [this](const Values& values) { return expectIncoming(::number(values, "by", 0)); }},
        {"resetNumbers", [this](const Values&) { return session_->reset(), state(); }},
        {"disconnect", [this](const Values&) { return disconnect(); }},
        {"logout", [this](const Values& values) { return session_->logout(get(values, "text")), session_->next(), "{}"; }},
        {"freeze", [this](const Values&) { return isFrozen_ = true, "{}"; }},
        {"thaw", [this](const Values&) { return thaw(); }},
    };
  }

  std::string fill(Order& order, const Values& values) {
    return exchange_.fill(order, ::number(values, "quantity", order.quantity - order.filled()), get(values, "price"));
  }
  std::string cancel(Order& order, const Values& values) {
    return exchange_.end(order, status::cancelled, get(values, "text"));
  }
  std::string expire(Order& order, const Values& values) {
    return exchange_.end(order, status::expired, get(values, "text"));
  }
  std::string doneForDay(Order& order, const Values& values) {
    return exchange_.end(order, status::doneForDay, get(values, "text"));
  }
  std::string restate(Order& order, const Values& values) {
    return exchange_.restate(order, ::number(values, "quantity", order.quantity), get(values, "reason", "5"));
  }
  std::string cancelTrade(Order& order, const Values& values) { return exchange_.cancelTrade(order, get(values, "execId")); }
  std::string correctTrade(Order& order, const Values& values) {
    return exchange_.correctTrade(order, get(values, "execId"), ::number(values, "quantity", 0), get(values, "price"));
  }

  std::string skipOutgoing(long count) {
    session_->setNextSenderMsgSeqNum(session_->getExpectedSenderNum() + static_cast<int>(count));
    return state();
  }

  std::string expectIncoming(long by) {
    session_->setNextTargetMsgSeqNum(session_->getExpectedTargetNum() + static_cast<int>(by));
    return state();
  }

  static std::string execId(const std::string& id) { return "{\"execId\":" + quoted(id) + "}"; }

  std::string state() {
    const auto text = [](bool value) { return value ? "true" : "false"; };
    return std::string("{\"isConnected\":") + text(current() != nullptr) + ",\"isLoggedOn\":" + text(session_->isLoggedOn()) +
           ",\"isFrozen\":" + text(isFrozen_) + ",\"nextOut\":" + std::to_string(session_->getExpectedSenderNum()) +
           ",\"nextIn\":" + std::to_string(session_->getExpectedTargetNum()) +
           ",\"connections\":" + std::to_string(connectionCount_) + "}";
  }

  std::string orders() {
    std::string list;
    for (const Order* order : exchange_.book().all()) list += (list.empty() ? "" : ",") + order->json();
    return "{\"orders\":[" + list + "]}";
  }

  /** Forgets all that was set for later messages. */
  std::string forget() {
    exchange_.rules.clear();
    exchange_.cancelRule.clear();
    exchange_.statusRule.clear();
    exchange_.logonRule.clear();
    exchange_.logonFields.clear();
    exchange_.isMarketOpen = true;
    nexts_.clear();
    return "{}";
  }

  std::string repeat(const Values& values) {
    FIX::Message message = exchange_.sentReport(get(values, "execId"));
    const std::string as = get(values, "as", "again");
    if (as == "possDup") {
      FIX::Header& header = message.getHeader();
      header.setField(43, "Y");
      header.setField(122, header.getField(52));
      header.setField(52, FIX::UtcTimeStampConvertor::convert(FIX::UtcTimeStamp(), 3));
      connected().send(message.toString());
    } else {
      if (as == "possResend") message.getHeader().setField(97, "Y");
      exchange_.send(message);
    }
    return "{}";
  }

  /** Sends any message, with the session's next number. */
  std::string send(const Values& values) {
    FIX::Message message;
    message.getHeader().setField(35, get(values, "type"));
    for (const auto& field : fields(get(values, "fields"))) message.setField(field.first, field.second);
    session_->send(message);
    return "{}";
  }

  std::string garbage(const std::string& bytes) {
    Connection& connection = connected();
    log_.message("out", "raw", connection.number, bytes);
    connection.write(bytes);
    return "{}";
  }

  /** Also of a frozen gateway: the log then has what was not read until now. */
  std::string disconnect() {
    for (Connection& connection : connections_) {
      if (isFrozen_) {
        connection.parser.addToStream(connection.read());
        for (std::string message; readWhole(connection, message);)
          log_.message("in", "discarded", connection.number, message);
      }
      drop(connection);
    }
    return "{}";
  }

  static bool readWhole(Connection& connection, std::string& message) {
    try {
      return connection.nextMessage(message);
    } catch (const FIX::MessageParseError&) {
      return false;
    }
  }

  std::string thaw() {
    isFrozen_ = false;
    for (Connection& connection : connections_) take(connection, "");
    return "{}";
  }

  /** Tags and values from `58=text|45=3`. */
  static std::vector<std::pair<int, std::string>> fields(const std::string& text) {
    std::vector<std::pair<int, std::string>> list;
    std::istringstream parts(text);
    for (std::string part; std::getline(parts, part, '|');) {
      const std::size_t equals = part.find('=');
      list.emplace_back(std::stoi(part.substr(0, equals)), part.substr(equals + 1));
    }
    return list;
  }

  WireLog log_;
  EventLog events_;
  Exchange exchange_;
  FIX::FileStoreFactory store_;
  FIX::SessionFactory factory_;
  FIX::Session* session_ = nullptr;
  int listener_ = -1, port_ = 0, controlListener_ = -1, controlPort_ = 0;
  std::list<Connection> connections_;
  std::list<Control> controls_;
  std::deque<Values> nexts_;
  int connectionCount_ = 0;
  bool isFrozen_ = false;
  const std::map<std::string, Handler> handlers_ = controls();
};

}  // namespace

/** Options are `name=value`. The file `ports.json` in the folder says that it listens, and where. */
int main(int count, char** arguments) {
  Values options{{"version", "FIXT.1.1"}, {"sender", "EXCHANGE"}, {"target", "BROKER"}, {"username", ""}, {"password", ""}};
  for (int i = 1; i < count; ++i) {
    const std::string option = arguments[i];
    const std::size_t equals = option.find('=');
    options[option.substr(0, equals)] = equals == std::string::npos ? "" : option.substr(equals + 1);
  }
  try {
    Gateway gateway(options);
    const std::string path = options.at("folder") + "/ports.json";
    std::ofstream(path + ".new") << gateway.ports() << std::endl;
    if (std::rename((path + ".new").c_str(), path.c_str()) != 0) throw std::runtime_error("cannot write " + path);
    gateway.run();
  } catch (const std::exception& error) {
    std::cerr << error.what() << std::endl;
    return 1;
  }
}
