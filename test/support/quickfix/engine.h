// QuickFIX 1.15. Its headers declare which exceptions a function throws, which C++17 no longer allows.
#pragma once

#include <chrono>
#include <exception>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#define throw(...)
#include <quickfix/Application.h>
#include <quickfix/FileStore.h>
#include <quickfix/Log.h>
#include <quickfix/Message.h>
#include <quickfix/Parser.h>
#include <quickfix/Session.h>
#include <quickfix/SessionFactory.h>
#include <quickfix/SessionSettings.h>
#undef throw
