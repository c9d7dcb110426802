// The orders of the exchange. They are in a file, so they survive a restart.
#pragma once

#include <cmath>
#include <cstdio>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "json.h"

struct Fill {
  std::string execId;
  long quantity = 0;
  std::string price;
};

/** The values of OrdStatus (39). */
namespace status {
const char isNew = '0', partlyFilled = '1', filled = '2', doneForDay = '3', cancelled = '4', pendingCancel = '6',
           rejected = '8', expired = 'C';
}

struct Order {
  std::string orderId;
  std::string clOrdId;
  /** The ClOrdID of the cancel request that was accepted or waits, if any. */
  std::string cancelId;
  std::string symbol;
  std::string side;
  std::string type;
  std::string timeInForce;
  std::string price;
  std::string account;
  long quantity = 0;
  char status = status::isNew;
  std::vector<Fill> fills;

  long filled() const {
    long sum = 0;
    for (const Fill& fill : fills) sum += fill.quantity;
    return sum;
  }

  bool isOpen() const {
    return status == status::isNew || status == status::partlyFilled || status == status::pendingCancel;
  }

  long leaves() const {
    if (!isOpen()) return 0;
    return filled() < quantity ? quantity - filled() : 0;
  }

  /** New, partly filled or filled, by its fills. */
  char statusByFills() const {
    if (filled() == 0) return status::isNew;
    return filled() >= quantity ? status::filled : status::partlyFilled;
  }

  std::string averagePrice() const {
    double value = 0;
    for (const Fill& fill : fills) value += std::stod(fill.price) * static_cast<double>(fill.quantity);
    char text[64];
    std::snprintf(text, sizeof text, "%.4f", filled() == 0 ? 0.0 : value / static_cast<double>(filled()));
    return text;
  }

  Fill* find(const std::string& execId) {
    for (Fill& fill : fills)
      if (fill.execId == execId) return &fill;
    return nullptr;
  }

  std::string json() const {
    std::string list;
    for (const Fill& fill : fills) {
      if (!list.empty()) list += ",";
      list += "{\"execId\":" + quoted(fill.execId) + ",\"quantity\":" + std::to_string(fill.quantity) +
              ",\"price\":" + quoted(fill.price) + "}";
    }
    return "{\"clOrdId\":" + quoted(clOrdId) + ",\"orderId\":" + quoted(orderId) + ",\"symbol\":" + quoted(symbol) +
           ",\"side\":" + quoted(side) + ",\"type\":" + quoted(type) + ",\"timeInForce\":" + quoted(timeInForce) +
           ",\"price\":" + quoted(price) + ",\"account\":" + quoted(account) +
           ",\"quantity\":" + std::to_string(quantity) + ",\"filled\":" + std::to_string(filled()) +
           ",\"leaves\":" + std::to_string(leaves()) + ",\"status\":" + quoted(std::string(1, status)) +
           ",\"fills\":[" + list + "]}";
  }
};

class Book {
 public:
  explicit Book(const std::string& path) {
    std::ifstream file(path);
    // A line that a crash cut off has no end mark.
    for (std::string line; std::getline(file, line);)
      if (!line.empty() && line.back() == '.') keep(read(line));
    file_.open(path, std::ios::app);
  }

  /** By the order's ClOrdID or by the one of its cancel request. */
  Order* find(const std::string& clOrdId) {
    const auto found = orders_.find(clOrdId);
    if (found != orders_.end()) return &found->second;
    const auto cancel = cancels_.find(clOrdId);
    return cancel == cancels_.end() ? nullptr : &orders_.at(cancel->second);
  }

  /** Stores the order as it is now. */
  void save(const Order& order) {
    keep(order);
    file_ << write(order) << std::endl;
  }

  std::vector<Order*> all() {
    std::vector<Order*> list;
    for (const std::string& id : sequence_) list.push_back(&orders_.at(id));
    return list;
  }

 private:
  void keep(const Order& order) {
    if (orders_.count(order.clOrdId) == 0) sequence_.push_back(order.clOrdId);
    orders_[order.clOrdId] = order;
    if (!order.cancelId.empty()) cancels_[order.cancelId] = order.clOrdId;
  }

  /** Its fields in a line, separated by FIX's own separator, which no field holds. */
  static std::string write(const Order& order) {
    std::ostringstream line;
    for (const std::string& text : {order.orderId, order.clOrdId, order.cancelId, order.symbol, order.side, order.type,
                                    order.timeInForce, order.price, order.account})
      line << text << '\001';
    line << order.quantity << '\001' << order.status << '\001' << order.fills.size() << '\001';
    for (const Fill& fill : order.fills) line << fill.execId << '\001' << fill.quantity << '\001' << fill.price << '\001';
    line << '.';
    return line.str();
  }

  static Order read(const std::string& line) {
    std::istringstream text(line);
    const auto field = [&text] {
      std::string value;
      std::getline(text, value, '\001');
      return value;
    };
    Order order;
    for (std::string* member : {&order.orderId, &order.clOrdId, &order.cancelId, &order.symbol, &order.side, &order.type,
                                &order.timeInForce, &order.price, &order.account})
      *member = field();
    order.quantity = std::stol(field());
    order.status = field().at(0);
    const int count = std::stoi(field());
    for (int i = 0; i < count; ++i) {
      Fill fill;
      fill.execId = field();
      fill.quantity = std::stol(field());
      fill.price = field();
      order.fills.push_back(fill);
    }
    return order;
  }

  std::map<std::string, Order> orders_;
  std::map<std::string, std::string> cancels_;
  /** The ClOrdIDs in the order in which they came. */
  std::vector<std::string> sequence_;
  std::ofstream file_;
};
