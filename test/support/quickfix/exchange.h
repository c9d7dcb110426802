// What the exchange does with orders, cancels and status requests.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "book.h"
#include "engine.h"

inline std::string get(const FIX::FieldMap& fields, int tag) {
  return fields.isSetField(tag) ? fields.getField(tag) : "";
}

inline std::string get(const Values& values, const std::string& name, const std::string& otherwise = "") {
  const auto found = values.find(name);
  return found == values.end() ? otherwise : found->second;
}

inline long number(const Values& values, const std::string& name, long otherwise) {
  const auto found = values.find(name);
  return found == values.end() ? otherwise : std::stol(found->second);
}

inline bool startsWith(const std::string& text, const std::string& start) { return text.compare(0, start.size(), start) == 0; }

/** Calls functions when their time has come. */
class Timers {
 public:
  using Clock = std::chrono::steady_clock;

  void after(long ms, std::function<void()> run) {
    if (ms <= 0) return run();
    waiting_.emplace(Clock::now() + std::chrono::milliseconds(ms), std::move(run));
  }

  void runDue() {
    while (!waiting_.empty() && waiting_.begin()->first <= Clock::now()) {
      const auto run = waiting_.begin()->second;
      waiting_.erase(waiting_.begin());
      run();
    }
  }

  /** Milliseconds until the next one, at most so many. */
  int wait(int most) const {
    if (waiting_.empty()) return most;
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(waiting_.begin()->first - Clock::now()).count() + 1;
    return left < 0 ? 0 : left > most ? most : static_cast<int>(left);
  }

 private:
  std::multimap<Clock::time_point, std::function<void()>> waiting_;
};

class Exchange : public FIX::Application {
 public:
  Exchange(const std::string& folder, const std::string& user, const std::string& password)
      : book_(folder + "/orders"), user_(user), password_(password) {
    // Unique also over restarts.
    const auto since = std::chrono::system_clock::now().time_since_epoch();
    run_ = std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(since).count());
  }

  FIX::Session* session = nullptr;
  Timers timers;

  // What the control channel sets.
  std::map<std::string, Values> rules;
  Values cancelRule, statusRule, logonRule;
  bool isMarketOpen = true;
  /** Tags and values for the next answer to a Logon. */
  std::vector<std::pair<int, std::string>> logonFields;
  /** What to do with the message that is being taken, instead of the usual. */
  Values instead;

  Book& book() { return book_; }

  Order& order(const std::string& clOrdId) {
    Order* found = book_.find(clOrdId);
    if (found == nullptr) throw std::runtime_error("there is no order " + clOrdId);
    return *found;
  }

  /** A trade. Also of an order that is over: then its status stays. */
  std::string fill(Order& order, long quantity, const std::string& price) {
    Fill fill;
    fill.execId = nextId("E");
    fill.quantity = quantity;
    fill.price = !price.empty() ? price : !order.price.empty() ? order.price : "10.00";
    const bool pends = order.status == status::pendingCancel;
    const bool isOver = !order.isOpen();
    order.fills.push_back(fill);
    if (!isOver && (!pends || order.statusByFills() == status::filled)) order.status = order.statusByFills();
    book_.save(order);
    FIX::Message message = report(order, 'F', fill.execId);
    message.setField(32, std::to_string(fill.quantity));
    message.setField(31, fill.price);
    send(message);
    return fill.execId;
  }

  /** Reports a change of status: Cancelled, Expired, Done for day. */
  std::string end(Order& order, char to, const std::string& text) {
    order.status = to;
    book_.save(order);
    FIX::Message message = report(order, to, nextId("E"));
    if (!text.empty()) message.setField(58, text);
    return send(message);
  }

  /** Ends the day, and reports nothing of it: all orders expire but those that are good till cancelled. */
  void endDaySilently() {
    for (Order* order : book_.all()) {
      if (!order->isOpen() || order->timeInForce == "1") continue;
      order->status = status::expired;
      book_.save(*order);
    }
  }

  std::string restate(Order& order, long quantity, const std::string& reason) {
    order.quantity = quantity;
    if (order.isOpen()) order.status = order.statusByFills();
    book_.save(order);
    FIX::Message message = report(order, 'D', nextId("E"));
    message.setField(378, reason);
    return send(message);
  }

  std::string cancelTrade(Order& order, const std::string& execId) {
    std::vector<Fill> left;
    for (const Fill& fill : order.fills)
      if (fill.execId != execId) left.push_back(fill);
    if (left.size() == order.fills.size()) throw std::runtime_error("the order has no trade " + execId);
    const bool follows = order.isOpen() || order.status == status::filled;
    order.fills = left;
    if (follows) order.status = order.statusByFills();
    book_.save(order);
    FIX::Message message = report(order, 'H', nextId("E"));
    message.setField(19, execId);
    return send(message);
  }

  /** The trade has the new ExecID from then on. */
  std::string correctTrade(Order& order, const std::string& execId, long quantity, const std::string& price) {
    Fill* fill = order.find(execId);
    if (fill == nullptr) throw std::runtime_error("the order has no trade " + execId);
    const bool follows = order.isOpen() || order.status == status::filled;
    const std::string id = nextId("E");
    *fill = Fill{id, quantity, price};
    if (follows) order.status = order.statusByFills();
    book_.save(order);
    FIX::Message message = report(order, 'G', id);
    message.setField(19, execId);
    message.setField(32, std::to_string(quantity));
    message.setField(31, price);
    return send(message);
  }

  /** The report with this ExecID as it was sent first. */
  FIX::Message sentReport(const std::string& execId) const {
    const auto found = reports_.find(execId);
    if (found == reports_.end()) throw std::runtime_error("no report with ExecID " + execId + " was sent since the start");
    return found->second;
  }

  /** A report about an order that nobody has sent. */
  std::string reportUnknown(const Values& values) {
    Order order;
    order.orderId = nextId("O");
    order.clOrdId = get(values, "clOrdId", "NOBODYS-ORDER");
    order.symbol = get(values, "symbol", "UNKNOWN");
    order.side = "1";
    order.type = "2";
    order.price = "10.00";
    order.quantity = 100;
    const char type = get(values, "execType", "F").at(0);
    const std::string id = nextId("E");
    if (type == 'F') order.fills.push_back(Fill{id, 100, "10.00"});
    order.status = type == 'F' ? status::filled : type;
    FIX::Message message = report(order, type, id);
    if (type == 'F') {
      message.setField(32, "100");
      message.setField(31, "10.00");
    }
    return send(message);
  }

  std::string send(FIX::Message& message) {
    session->send(message);
    return get(message, 17);
  }

  void onCreate(const FIX::SessionID&) override {}
  void onLogon(const FIX::SessionID&) override {}
  /** QuickFIX takes no Logon after it has sent a Logout by itself, until it is told to. */
  void onLogout(const FIX::SessionID&) override { session->logon(); }

  void toAdmin(FIX::Message& message, const FIX::SessionID&) override {
    if (get(message.getHeader(), 35) != "A") return;
    for (const auto& field : logonFields) message.setField(field.first, field.second);
    logonFields.clear();
  }

  void toApp(FIX::Message& message, const FIX::SessionID&) override {
    const std::string execId = get(message, 17);
    if (!execId.empty() && !message.getHeader().isSetField(43)) reports_.emplace(execId, message);
  }

  void fromAdmin(const FIX::Message& message, const FIX::SessionID&) override {
    if (get(message.getHeader(), 35) != "A") return;
    if (get(logonRule, "as") == "logout") throw FIX::RejectLogon(get(logonRule, "text", "logons are refused"));
    if (get(message, 553) != user_ || get(message, 554) != password_) throw FIX::RejectLogon("wrong username or password");
  }

  void fromApp(const FIX::Message& message, const FIX::SessionID&) override {
    const std::string type = get(message.getHeader(), 35);
    const std::string action = get(instead, "action");
    if (action == "ignore") return;
    if (action == "sessionReject") throw FIX::IncorrectTagValue(static_cast<int>(::number(instead, "tag", 54)));
    if (action == "businessReject") return rejectBusiness(message, type);
    if (type == "D") return takeOrder(message);
    if (type == "F") return takeCancel(message);
    if (type == "H") return takeStatusRequest(message);
    if (type == "AF") return takeMassStatusRequest(message);
    throw FIX::UnsupportedMessageType();
  }

 private:
  void takeOrder(const FIX::Message& message) {
    Order order;
    order.orderId = nextId("O");
    order.clOrdId = get(message, 11);
    order.symbol = get(message, 55);
    order.side = get(message, 54);
    order.type = get(message, 40);
    order.timeInForce = get(message, 59);
    order.price = get(message, 44);
    order.account = get(message, 1);
    order.quantity = std::stol(get(message, 38));
    if (book_.find(order.clOrdId) != nullptr) return reject(order, "6", "duplicate ClOrdID", 0, false);
    const Values rule = ruleFor(order.symbol);
    const std::string as = get(rule, "as");
    const long afterMs = ::number(rule, "afterMs", 0);
    if (as == "ignore") return;
    if (!isMarketOpen || as == "closed") return reject(order, "2", "the market is closed", afterMs, true);
    if (as == "reject") return reject(order, get(rule, "reason", "0"), get(rule, "text", "rejected"), afterMs, true);
    book_.save(order);
    if (as == "silent") return;
    const std::string id = order.clOrdId;
    timers.after(afterMs, [this, id, rule] { answer(this->order(id), rule); });
  }

  /** New, and what can be traded at once. */
  void answer(Order& order, const Values& rule) {
    FIX::Message accepted = report(order, '0', nextId("E"));
    send(accepted);
    const std::string as = get(rule, "as");
    const long half = order.quantity / 2;
    std::vector<long> parts;
    if (as == "fill") parts = {order.quantity};
    if (as == "partial") parts = {::number(rule, "quantity", half)};
    if (as == "parts") parts = {half / 2, half - half / 2, order.quantity - half};
    long there = 0;
    for (const long part : parts) there += part;
    const bool isFillOrKill = order.timeInForce == "4";
    if (!isFillOrKill || there >= order.quantity)
      for (const long part : parts)
        if (part > 0) fill(order, part, get(rule, "price"));
    if ((isFillOrKill || order.timeInForce == "3") && order.isOpen())
      end(order, get(rule, "unfilled") == "cancelled" ? status::cancelled : status::expired, "not traded at once");
  }

  /** A rejected order is in the book, so that its status can be asked for; one with a ClOrdID that is there is not. */
  void reject(Order order, const std::string& reason, const std::string& text, long afterMs, bool isKept) {
    order.status = status::rejected;
    if (isKept) book_.save(order);
    timers.after(afterMs, [this, order, reason, text] {
      FIX::Message message = report(order, '8', nextId("E"));
      message.setField(103, reason);
      message.setField(58, text);
      send(message);
    });
  }

  void takeCancel(const FIX::Message& message) {
    const std::string cancelId = get(message, 11);
    Order* order = book_.find(get(message, 41));
    if (order == nullptr) return rejectCancel(message, nullptr, "1", "unknown order");
    const std::string as = get(cancelRule, "as", "accept");
    if (as == "silent") return;
    if (as == "reject") return rejectCancel(message, order, get(cancelRule, "reason", "2"), get(cancelRule, "text", "refused"));
    if (as == "tooLate" || !order->isOpen()) return rejectCancel(message, order, "0", "too late to cancel");
    if (order->status == status::pendingCancel) return rejectCancel(message, order, "3", "a cancel is pending");
    order->cancelId = cancelId;
    if (startsWith(as, "pending")) {
      order->status = status::pendingCancel;
      book_.save(*order);
      FIX::Message pending = report(*order, '6', nextId("E"));
      send(pending);
    }
    book_.save(*order);
    if (as == "pending") return;
    const std::string id = order->clOrdId;
    timers.after(::number(cancelRule, "afterMs", 0), [this, id] {
      if (this->order(id).isOpen()) end(this->order(id), status::cancelled, "");
    });
  }

  void rejectCancel(const FIX::Message& request, const Order* order, const std::string& reason, const std::string& text) {
    FIX::Message message;
    message.getHeader().setField(35, "9");
    message.setField(37, order == nullptr ? "NONE" : order->orderId);
    message.setField(11, get(request, 11));
    message.setField(41, get(request, 41));
    message.setField(39, order == nullptr ? "8" : std::string(1, order->status));
    message.setField(434, "1");
    message.setField(102, reason);
    message.setField(58, text);
    message.setField(60, timeNow());
    send(message);
  }

  void takeStatusRequest(const FIX::Message& message) {
    const std::string as = get(statusRule, "as", "answer");
    if (as == "silent") return;
    const std::string id = get(message, 11), request = get(message, 790), symbol = get(message, 55), side = get(message, 54);
    timers.after(::number(statusRule, "afterMs", 0), [this, as, id, request, symbol, side] {
      const Order* found = as == "unknown" ? nullptr : book_.find(id);
      Order unknown;
      unknown.orderId = "NONE";
      unknown.clOrdId = id;
      unknown.symbol = symbol;
      unknown.side = side;
      unknown.status = status::rejected;
      FIX::Message answer = report(found == nullptr ? unknown : *found, 'I', nextId("S"));
      if (!request.empty()) answer.setField(790, request);
      if (found == nullptr) {
        answer.setField(103, "5");
        answer.setField(58, "unknown order");
      }
      send(answer);
    });
  }

  void takeMassStatusRequest(const FIX::Message& message) {
    if (get(statusRule, "as", "answer") == "silent") return;
    std::vector<const Order*> open;
    for (const Order* order : book_.all())
      if (order->isOpen()) open.push_back(order);
    const std::string request = get(message, 584);
    const auto answer = [&](const Order& order, bool isLast) {
      FIX::Message report = this->report(order, 'I', nextId("S"));
      report.setField(584, request);
      report.setField(911, std::to_string(open.size()));
      if (isLast) report.setField(912, "Y");
      if (open.empty()) report.setField(58, "no open orders");
      send(report);
    };
    for (const Order* order : open) answer(*order, order == open.back());
    if (!open.empty()) return;
    Order none;
    none.orderId = "NONE";
    none.symbol = "[N/A]";
    none.side = "7";
    none.status = status::rejected;
    answer(none, true);
  }

  void rejectBusiness(const FIX::Message& refused, const std::string& type) {
    FIX::Message message;
    message.getHeader().setField(35, "j");
    message.setField(45, get(refused.getHeader(), 34));
    message.setField(372, type);
    message.setField(380, get(instead, "reason", "4"));
    message.setField(58, get(instead, "text", "not now"));
    const std::string id = get(refused, 11);
    if (!id.empty()) message.setField(379, id);
    send(message);
  }

  FIX::Message report(const Order& order, char execType, const std::string& execId) {
    FIX::Message message;
    message.getHeader().setField(35, "8");
    const auto set = [&message](int tag, const std::string& value) {
      if (!value.empty()) message.setField(tag, value);
    };
    const bool isOfCancel = !order.cancelId.empty() && (execType == '6' || execType == '4');
    set(37, order.orderId);
    set(11, isOfCancel ? order.cancelId : order.clOrdId);
    if (isOfCancel) set(41, order.clOrdId);
    set(17, execId);
    set(150, std::string(1, execType));
    set(39, std::string(1, order.status));
    set(1, order.account);
    set(55, order.symbol);
    set(54, order.side);
    if (order.quantity > 0) set(38, std::to_string(order.quantity));
    set(40, order.type);
    set(44, order.price);
    set(59, order.timeInForce);
    set(151, std::to_string(order.leaves()));
    set(14, std::to_string(order.filled()));
    set(6, order.averagePrice());
    set(60, timeNow());
    return message;
  }

  /** The rule of the symbol, or the one of all, or what the symbol's name asks for. */
  Values ruleFor(const std::string& symbol) const {
    const auto own = rules.find(symbol);
    if (own != rules.end()) return own->second;
    if (startsWith(symbol, "REJECT")) return {{"as", "reject"}, {"reason", symbol.size() > 6 ? symbol.substr(6) : "0"}};
    if (startsWith(symbol, "FILL")) return {{"as", "fill"}};
    if (startsWith(symbol, "PARTS")) return {{"as", "parts"}};
    if (startsWith(symbol, "PARTIAL")) return {{"as", "partial"}};
    if (startsWith(symbol, "SILENT")) return {{"as", "silent"}};
    if (startsWith(symbol, "IGNORE")) return {{"as", "ignore"}};
    if (startsWith(symbol, "LATE")) return {{"as", "rest"}, {"afterMs", "500"}};
    if (startsWith(symbol, "CLOSED")) return {{"as", "closed"}};
    const auto all = rules.find("*");
    return all != rules.end() ? all->second : Values{{"as", "rest"}};
  }

  static std::string timeNow() { return FIX::UtcTimeStampConvertor::convert(FIX::UtcTimeStamp(), 3); }

  std::string nextId(const std::string& kind) { return kind + run_ + "-" + std::to_string(++lastId_); }

  Book book_;
  const std::string user_, password_;
  std::string run_;
  long lastId_ = 0;
  std::map<std::string, FIX::Message> reports_;
};
