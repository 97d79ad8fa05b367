// Result<T, E>: a value or an error, both of them impossible to overlook.
//
// A dropped Result does not compile ([[nodiscard]] and -Werror in CI); reading the value of an
// error, or the error of a value, aborts. Names follow std::expected, which g++ 12 does not have
// in C++20; Debian's tl::expected 1.0.0 lets both mistakes through.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "kernels/base/check.hpp"

namespace oomlab {

// What a person is told about bad input or a failed call: one line, with place and remedy.
struct Error {
    enum class Kind { usage, parse, io, environment, internal };
    Kind kind = Kind::internal;
    std::string message;

    static Error usage(std::string m) { return {Kind::usage, std::move(m)}; }
    static Error parse(std::string m) { return {Kind::parse, std::move(m)}; }
    static Error io(std::string m) { return {Kind::io, std::move(m)}; }
    static Error environment(std::string m) { return {Kind::environment, std::move(m)}; }
    static Error internal(std::string m) { return {Kind::internal, std::move(m)}; }
};

// The documented exit code of an error: 2 bad file or flag, 3 this machine cannot, 5 ours.
inline int exit_code(const Error& e) {
    switch (e.kind) {
        case Error::Kind::usage:
        case Error::Kind::parse:
        case Error::Kind::io: return 2;
        case Error::Kind::environment: return 3;
        case Error::Kind::internal: return 5;
    }
    return 5;
}

template <class E>
struct Failure {
    E error;
};
template <class E>
Failure<std::decay_t<E>> fail(E&& e) {
    return {std::forward<E>(e)};
}

template <class T, class E = Error>
class [[nodiscard]] Result {
  public:
    Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
    Result(Failure<E> f) : state_(std::in_place_index<1>, std::move(f.error)) {}

    bool has_value() const { return state_.index() == 0; }
    explicit operator bool() const { return has_value(); }

    T& operator*() & { return value(); }
    const T& operator*() const& { return value(); }
    T&& operator*() && { return std::move(value()); }
    T* operator->() { return &value(); }
    const T* operator->() const { return &value(); }
    T& value() {
        OOMLAB_CHECK(has_value());
        return *std::get_if<0>(&state_);
    }
    const T& value() const {
        OOMLAB_CHECK(has_value());
        return *std::get_if<0>(&state_);
    }
    E& error() {
        OOMLAB_CHECK(!has_value());
        return *std::get_if<1>(&state_);
    }
    const E& error() const {
        OOMLAB_CHECK(!has_value());
        return *std::get_if<1>(&state_);
    }

  private:
    std::variant<T, E> state_;
};

template <class E>
class [[nodiscard]] Result<void, E> {
  public:
    Result() = default;
    Result(Failure<E> f) : error_(std::move(f.error)) {}

    bool has_value() const { return !error_.has_value(); }
    explicit operator bool() const { return has_value(); }
    E& error() {
        OOMLAB_CHECK(!has_value());
        return *error_;
    }
    const E& error() const {
        OOMLAB_CHECK(!has_value());
        return *error_;
    }

  private:
    std::optional<E> error_;
};

}  // namespace oomlab

// Early return: `OOMLAB_TRY(value, call());` or `OOMLAB_TRY_VOID(call());`
#define OOMLAB_CONCAT_(a, b) a##b
#define OOMLAB_CONCAT(a, b) OOMLAB_CONCAT_(a, b)
#define OOMLAB_TRY(name, call) OOMLAB_TRY_(name, call, OOMLAB_CONCAT(try_result_, __LINE__))
#define OOMLAB_TRY_(name, call, tmp)                     \
    auto tmp = (call);                                   \
    if (!tmp) return ::oomlab::fail(std::move(tmp.error())); \
    auto name = std::move(*tmp)
#define OOMLAB_TRY_VOID(call)                                     \
    do {                                                          \
        auto try_result_ = (call);                                \
        if (!try_result_) return ::oomlab::fail(std::move(try_result_.error())); \
    } while (false)
