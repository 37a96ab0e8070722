// llmd.hpp: llmd.h for C++17, with exceptions, std::function and handles that free themselves.
//
//     llmd::Daemon daemon;
//     daemon.connect();
//     llmd::Request request(daemon);
//     request.add_message("user", "Hello");
//     request.chat([](llmd::Piece piece) { std::cout << piece.text; return true; });
//
// The rules of llmd.h for threads and for the validity of results hold here too. Everything throws
// llmd::Error if it fails, and std::bad_alloc if memory runs out.
#ifndef LLMD_HPP
#define LLMD_HPP

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "llmd.h"

namespace llmd {

// What went wrong: `what()` says it, `hint()` says what to do about it and may be empty.
class Error : public std::runtime_error {
  public:
    Error(llmd_status status, const char* message, const char* hint)
        : std::runtime_error(message), status_(status), hint_(hint) {}
    llmd_status status() const noexcept { return status_; }
    const std::string& hint() const noexcept { return hint_; }

  private:
    llmd_status status_;
    std::string hint_;
};

// A piece of an answer. `kind` is one of LLMD_PIECE_…; the text is valid during the callback only.
struct Piece {
    int kind;
    std::string_view text;
};

// Gets each piece; returns false to cancel the call. An exception cancels it too and reaches the caller.
using OnPiece = std::function<bool(Piece)>;

namespace detail {

inline void check(llmd_status status, const char* message, const char* hint) {
    if (status == LLMD_NO_MEMORY) throw std::bad_alloc();
    if (status != LLMD_OK) throw Error(status, message, hint);
}

struct Listener {
    const OnPiece& on_piece;
    bool has_refused = false;
    std::exception_ptr thrown = nullptr;
};

// No exception may pass through the library, which is written in C.
inline int pass_on(void* user, int kind, const char* text, std::size_t length) noexcept {
    auto* listener = static_cast<Listener*>(user);
    try {
        listener->has_refused = !listener->on_piece(Piece{kind, std::string_view(text, length)});
        return listener->has_refused ? 1 : 0;
    } catch (...) {
        listener->thrown = std::current_exception();
        return 1;
    }
}

struct Close {
    void operator()(::llmd_daemon* daemon) const noexcept { llmd_close(daemon); }
    void operator()(::llmd_request* request) const noexcept { llmd_request_free(request); }
};

}  // namespace detail

class Daemon {
  public:
    Daemon() {
        ::llmd_daemon* made = nullptr;
        detail::check(llmd_open(&made), "libllmd has another version than llmd.h",
                      "compile the program again");
        handle_.reset(made);
    }

    Daemon& set(const char* option, std::string_view value) {
        check(llmd_set(get(), option, value.data(), value.size()));
        return *this;
    }
    void connect() { check(llmd_connect(get())); }
    void load(std::string_view model) { check(llmd_load(get(), model.data(), model.size())); }

    // Empty before connect() or load().
    std::string address() const {
        const char* found = llmd_address(get());
        return found == nullptr ? std::string() : std::string(found);
    }

    std::vector<std::string> models() {
        std::size_t count = 0;
        check(llmd_models(get(), &count));
        std::vector<std::string> names;
        for (std::size_t i = 0; i < count; i++) names.emplace_back(llmd_model_name(get(), i));
        return names;
    }

    ::llmd_daemon* get() const noexcept { return handle_.get(); }

  private:
    void check(llmd_status status) const { detail::check(status, llmd_message(get()), llmd_hint(get())); }

    std::unique_ptr<::llmd_daemon, detail::Close> handle_;
};

class Request {
  public:
    explicit Request(Daemon& daemon) {
        ::llmd_request* made = nullptr;
        const llmd_status status = llmd_request_new(daemon.get(), &made);
        detail::check(status, llmd_message(daemon.get()), llmd_hint(daemon.get()));
        handle_.reset(made);
    }

    Request& set(const char* option, std::string_view value) {
        check(llmd_request_set(get(), option, value.data(), value.size()));
        return *this;
    }
    Request& add_message(const char* role, std::string_view text) {
        check(llmd_add_message(get(), role, text.data(), text.size()));
        return *this;
    }
    Request& add_message_json(std::string_view json) {
        check(llmd_add_message_json(get(), json.data(), json.size()));
        return *this;
    }
    void clear_messages() { check(llmd_clear_messages(get())); }

    // Return the answer. A callback that cancels the call is no error: the answer so far is returned.
    std::string chat(const OnPiece& on_piece = nullptr) {
        return answered(on_piece,
                        [this](llmd_on_piece each, void* user) { return llmd_chat(get(), each, user); });
    }
    std::string complete(std::string_view prompt, const OnPiece& on_piece = nullptr) {
        return answered(on_piece, [&](llmd_on_piece each, void* user) {
            return llmd_complete(get(), prompt.data(), prompt.size(), each, user);
        });
    }

    // May be called from any thread while another uses the request.
    void cancel() noexcept { llmd_cancel(get()); }

    std::string reasoning() const {
        std::size_t length = 0;
        const char* text = llmd_reasoning(get(), &length);
        return std::string(text, length);
    }
    std::string finish_reason() const { return llmd_finish_reason(get()); }
    std::size_t prompt_tokens() const noexcept { return llmd_prompt_tokens(get()); }
    std::size_t answer_tokens() const noexcept { return llmd_answer_tokens(get()); }

    std::vector<std::vector<float>> embed(const std::vector<std::string>& texts) {
        std::vector<const char*> starts;
        std::vector<std::size_t> lengths;
        for (const std::string& text : texts) {
            starts.push_back(text.data());
            lengths.push_back(text.size());
        }
        check(llmd_embed(get(), starts.data(), lengths.data(), starts.size()));
        std::vector<std::vector<float>> vectors;
        for (std::size_t i = 0; i < texts.size(); i++) {
            std::size_t dimensions = 0;
            const float* vector = llmd_vector(get(), i, &dimensions);
            vectors.emplace_back(vector, vector + dimensions);
        }
        return vectors;
    }

    std::size_t count_tokens() {
        std::size_t count = 0;
        check(llmd_count_tokens(get(), &count));
        return count;
    }
    std::vector<std::int32_t> tokenize(std::string_view text) {
        check(llmd_tokenize(get(), text.data(), text.size()));
        std::size_t count = 0;
        const std::int32_t* tokens = llmd_tokens(get(), &count);
        return std::vector<std::int32_t>(tokens, tokens + count);
    }
    std::string detokenize(const std::vector<std::int32_t>& tokens) {
        check(llmd_detokenize(get(), tokens.data(), tokens.size()));
        return answer();
    }

    ::llmd_request* get() const noexcept { return handle_.get(); }

  private:
    void check(llmd_status status) const {
        detail::check(status, llmd_request_message(get()), llmd_request_hint(get()));
    }
    std::string answer() const {
        std::size_t length = 0;
        const char* text = llmd_answer(get(), &length);
        return std::string(text, length);
    }

    template <class Call>
    std::string answered(const OnPiece& on_piece, Call call) {
        detail::Listener listener{on_piece};
        const llmd_status status = on_piece ? call(detail::pass_on, &listener) : call(nullptr, nullptr);
        if (listener.thrown) std::rethrow_exception(listener.thrown);
        if (status != LLMD_CANCELLED || !listener.has_refused) check(status);
        return answer();
    }

    std::unique_ptr<::llmd_request, detail::Close> handle_;
};

}  // namespace llmd

#endif
